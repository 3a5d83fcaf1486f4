import { type Copy, newCopy, type Sender, type Setup, type State, senderOf, stepsOf } from './claims.ts';
import type { Action } from './search.ts';

/**
 * Checks what was seen from outside of a reference: whether there is an order of the steps of the model in
 * which each request gets its answer, and the journal has these rows. It follows the events in time with all
 * states in which the service can be after each.
 */

/** A request as it was sent once, and its answer. Times are of one clock. */
export type Sending = {
  /** The number of the request: sendings of equal requests have the same one. */
  readonly request: number;
  readonly from: number;
  readonly to: number;
  /** `00`, `00 replayed`, the code of a refusal, or `unknown` if there was no answer. */
  readonly code: string;
  /** The id of the transaction of a success. */
  readonly id: string | null;
};

/** What is known of a reference. */
export type Trace = {
  readonly reference: string;
  /** Whether the reference and its voucher may be on different servers. */
  readonly isSharded: boolean;
  readonly sendings: readonly Sending[];
  /** The rows of the journal in the end, each with the number of the request that it fits, or -1. */
  readonly rows: readonly { readonly id: string; readonly request: number }[];
  /** The id of the claim in the end. */
  readonly claim: string | null;
};

/** On one server, the function that books a request also claims its reference (sql/006-redeem.sql). */
function inOneStep(sender: Sender): readonly Action<State>[] {
  const { at, request, key } = sender;
  const step = (what: string, isUsed: boolean, answer: (state: State) => string): Action<State> => ({
    says: what,
    when: ({ copies, claims }) => copies[at]?.step === 'not-sent' && key in claims === isUsed,
    does(state) {
      state.copies[at] = { ...newCopy(), step: 'answered', answer: answer(state) };
    },
  });
  return [
    step('finds its reference used', true, ({ claims }) =>
      claims[key]?.request === request ? 'replayed' : '94',
    ),
    step('is declined', false, () => 'declined'),
    step('is booked', false, (state) => {
      const id = `${at}`;
      state.claims[key] = { id, request };
      state.journal.push({ id, hour: 0, request });
      return 'booked';
    }),
  ];
}

/** @returns why the model refuses a trace, in a sentence; undefined if it accepts it */
export function whyRefused(trace: Trace): string | undefined {
  const { reference, sendings, isSharded } = trace;
  const requests = 1 + Math.max(0, ...sendings.map(({ request }) => request));
  const answered = sendings.filter(({ code }) => code !== 'unknown');
  const setup: Setup = {
    requests: Array.from({ length: requests }, (_, voucher) => ({ merchant: 1, reference: 'r', voucher })),
    // After the copies with an answer, each request has a place for those without one.
    copies: [...answered.map(({ request }) => request), ...Array(requests).keys()],
    // `textOf` forgets how many there were.
    idsMax: 1,
  };
  const ofCopy = isSharded ? stepsOf : inOneStep;
  const steps = setup.copies.map((_, at) => ofCopy(senderOf(setup, at)));
  const unanswered = new Set<number>();
  const closure = (from: readonly State[]) => closureOf(from, { steps, requests, unanswered });
  let reached: readonly State[] = [startOf(setup.copies.length)];
  for (const { sending, isAnswer } of eventsOf(tellingOf(trace))) {
    const at = answered.indexOf(sending);
    if (at < 0) unanswered.add(sending.request);
    else if (isAnswer) reached = closure(reached).flatMap((state) => answeredIn(state, at, sending));
    else reached = reached.map((state) => ({ ...state, copies: state.copies.with(at, newCopy()) }));
    if (reached.length > 0) continue;
    const who = `request ${sending.request + 1}`;
    return `${reference}: no order of the steps explains that ${who} is answered ${sending.code}`;
  }
  return whyDiffering(trace, closure(reached));
}

/** Of the sendings of a request without an answer, only the first one matters: it may go on at any time. */
function tellingOf({ sendings }: Trace): Sending[] {
  const unanswered = new Set<number>();
  const byTime = [...sendings].sort((one, other) => one.from - other.from);
  return byTime.filter(({ request, code }) => {
    const isTelling = code !== 'unknown' || !unanswered.has(request);
    if (code === 'unknown') unanswered.add(request);
    return isTelling;
  });
}

const eventsOf = (sendings: readonly Sending[]) =>
  sendings
    .flatMap((sending) => [
      { time: sending.from, sending, isAnswer: false },
      { time: sending.to, sending, isAnswer: true },
    ])
    .sort((one, other) => one.time - other.time);

/** A text that is equal for traces that differ only in their reference, their times and the values of ids. */
export function shapeOf(trace: Trace): string {
  const { isSharded, rows, claim } = trace;
  const sendings = tellingOf(trace);
  const order = eventsOf(sendings).map(({ sending, isAnswer }) => [sendings.indexOf(sending), isAnswer]);
  const ids = [claim, ...rows.map(({ id }) => id), ...sendings.map(({ id }) => id)];
  const known = [...new Set(ids)];
  const [named, requests] = [ids.map((id) => id && known.indexOf(id)), rows.map(({ request }) => request)];
  const asked = sendings.map(({ request, code }) => [request, code]);
  return JSON.stringify([isSharded, order, asked, requests, named]);
}

const startOf = (copies: number): State => ({
  hour: 0,
  claims: {},
  vouchers: [],
  journal: [],
  voids: [],
  copies: Array.from({ length: copies }, () => ENDED),
  crashes: 0,
});

const ENDED = { ...newCopy(), step: 'ended' as const };

const ANSWERS: Readonly<Record<string, string>> = { '00': 'booked', '00 replayed': 'replayed', '94': '94' };

function answeredIn(state: State, at: number, { code }: Sending): State[] {
  const copy = state.copies[at];
  if (copy?.step !== 'answered' || copy.answer !== (ANSWERS[code] ?? 'declined')) return [];
  return [{ ...state, copies: state.copies.with(at, ENDED) }];
}

type Steps = {
  /** Of each copy, and then of a copy without an answer of each request. */
  readonly steps: readonly (readonly Action<State>[])[];
  readonly requests: number;
  /** The requests of which copies have no answer. */
  readonly unanswered: ReadonlySet<number>;
};

/** All states that are reached by steps that nobody sees. */
function closureOf(from: readonly State[], how: Steps): State[] {
  const found = new Set(from.map(textOf));
  // States are added at the end while they are read.
  for (const text of found) for (const next of nextOf(text, how)) found.add(next);
  return [...found].map((text) => JSON.parse(text));
}

function nextOf(text: string, { steps, requests, unanswered }: Steps): string[] {
  const state = JSON.parse(text) as State;
  const after = (from: State, at: number) =>
    (steps[at] ?? []).flatMap(({ when, does }) => {
      if (!when(from)) return [];
      const next = JSON.parse(JSON.stringify(from)) as State;
      does(next);
      if (at >= steps.length - requests) next.copies[at] = ENDED;
      return [textOf(next)];
    });
  const late = [...unanswered].flatMap((request) => {
    const at = steps.length - requests + request;
    return placesOf(state, request).flatMap((copy) =>
      after({ ...state, copies: state.copies.with(at, copy) }, at),
    );
  });
  return [...steps.flatMap((_, at) => after(state, at)), ...late];
}

/** Where a copy without an answer may be: it may have stopped anywhere, and go on at any time. */
function placesOf({ claims, voids }: State, request: number): Copy[] {
  const [claim] = Object.values(claims);
  if (!claim) return [newCopy()];
  const isVoid = voids.includes(claim.id);
  const isSame = claim.request === request;
  const at = (step: Copy['step']): Copy => ({ ...newCopy(), step, under: claim.id, id: 'late@0' });
  return [...(isSame ? [at('books')] : [at('voids')]), ...(isVoid ? [at('reassigns')] : [])];
}

/** An id that is not the claim's any more. It was voided before. */
const OLD = 'old@0';

/**
 * The text of a state. It leaves out what has no effect any more, and renames the ids, so that equal states
 * have equal texts.
 */
function textOf(state: State): string {
  const [claim] = Object.values(state.claims);
  const ids = new Set(state.copies.map(({ under }) => under));
  const isOld = (id: string) => id !== claim?.id && (ids.has(id) || state.voids.includes(id));
  const kept = (copy: Copy): Copy => {
    const isLate = isOld(copy.under);
    const isStale = isLate && (copy.step === 'voids' || copy.step === 'reassigns');
    const step = isStale ? 'claims' : copy.step;
    const under = isLate ? OLD : copy.under;
    return {
      ...copy,
      step,
      id: isOld(copy.id) ? OLD : copy.id,
      under: ['books', 'voids', 'reassigns'].includes(step) ? under : '',
      voided: copy.voided.filter((id) => id === claim?.id),
      ids: 0,
    };
  };
  const copies = state.copies.map(kept);
  const voids = [OLD, ...state.voids.filter((id) => id === claim?.id)];
  const names = new Map([[OLD, OLD]]);
  const rename = (id: string) => names.get(id) ?? (names.set(id, `#${names.size}@0`).get(id) as string);
  return JSON.stringify({ ...state, copies, voids }).replaceAll(/[#.\w]+@0/g, rename);
}

/** Compares the end of a trace with the books. */
function whyDiffering(
  { reference, sendings, rows, claim }: Trace,
  reached: readonly State[],
): string | undefined {
  const [row, second] = rows;
  if (second) return `${reference}: it is booked twice, as ${row?.id} and ${second.id}`;
  const other = sendings.find(({ code, id }) => code.startsWith('00') && id !== row?.id);
  if (other) return `${reference}: ${other.code} as ${other.id}, and the journal has ${row?.id ?? 'nothing'}`;
  if (row && claim !== row.id) return `${reference}: it is booked as ${row.id}, and the claim is of ${claim}`;
  const isSame = ({ journal, claims }: State) =>
    journal.length === rows.length &&
    journal.every(({ request }) => request === row?.request) &&
    Object.keys(claims).length === (claim === null ? 0 : 1);
  if (reached.some(isSame)) return undefined;
  const end = row ? `a row of request ${row.request + 1}` : 'no row';
  return `${reference}: no order of the steps ends with ${end}`;
}
