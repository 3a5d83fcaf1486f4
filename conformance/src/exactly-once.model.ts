import type { Sent } from './exactly-once.history.ts';

/**
 * The sequential model of a batch: what a server must answer to its calls one after another. Calls at the
 * same time must be answered as in some order of them, which exactly-once.search.ts looks for.
 */

type Entry = {
  readonly voucher: number;
  readonly amount: number;
  /** The amount of its update, if there was one. */
  readonly updatedTo: number | null;
};

export type State = {
  readonly order: {
    readonly reference: string;
    readonly quantity: number;
    readonly amount: number | null;
  } | null;
  /** By voucher; null for one that is not active. */
  readonly balances: readonly (number | null)[];
  /** By voucher, the wrong PINs in a row. */
  readonly wrongPins: readonly number[];
  /** By operation and reference. */
  readonly entries: Readonly<Record<string, Entry>>;
  /** The ids that answers have shown, with their times, by operation and reference. */
  readonly ids: Readonly<Record<string, string>>;
};

export const NEW_STATE: State = { order: null, balances: [], wrongPins: [], entries: {}, ids: {} };

/** The state as a text, which is the same for states that are the same. */
export function textOf({ entries, ids, ...rest }: State): string {
  return JSON.stringify([rest, Object.entries(entries).sort(), Object.entries(ids).sort()]);
}

/** The run uses no voucher for as long as a lock lasts. */
const WRONG_PINS_MAX = 5;
/** The refusals of a generation or activation that the model of a batch cannot foresee. */
const BEYOND_THE_BATCH = ['13', '50', '61'];

/** What a call must be answered, and the state after it. */
type Decision = {
  readonly code: string;
  readonly replayed?: boolean;
  readonly shown?: number | null;
  /** The names of the ids in the answer. */
  readonly ids?: readonly string[];
  /** Whether it debits the float. */
  readonly debits?: boolean;
  readonly next: State;
};

/** Whether the answer leaves open if the call had an effect. */
export function isOpen({ code }: Sent): boolean {
  return code === null || code === '91' || code === '96';
}

/** The state after a call, or undefined if its answer is wrong in this state. */
export function step(state: State, call: Sent): State | undefined {
  const decision = decide(state, call);
  if (isOpen(call)) return decision.next;
  if (decision.debits && BEYOND_THE_BATCH.includes(call.code ?? '')) return state;
  const { code, replayed = false, shown = null, ids = [], next } = decision;
  if (call.code !== code || call.replayed !== replayed || call.shown !== shown) return undefined;
  return learn(next, ids, call.ids);
}

/** What a right server answers to a call in this state: its code, what it shows, and if it is a replay. */
export function rightAnswer(state: State, call: Sent): string {
  const decision = decide(state, call);
  const { code, replayed = false, shown = null } = decision;
  const isSame = call.code === code && call.replayed === replayed && call.shown === shown;
  return `${answerOf({ code, replayed, shown })}${isSame ? ' with what it showed before' : ''}`;
}

/** An answer in words. */
export const answerOf = ({ code, replayed, shown }: Pick<Sent, 'code' | 'replayed' | 'shown'>): string =>
  [code, ...(shown === null ? [] : [shown]), ...(replayed ? ['replayed'] : [])].join(' ');

const withoutTime = (id: string) => id.split(' ')[0];

/** The state with the ids of an answer, or undefined if it shows other ones than before. */
function learn(state: State, names: readonly string[], shown: readonly string[]): State | undefined {
  if (names.length !== shown.length) return undefined;
  if (names.every((name, at) => state.ids[name] === shown[at])) return state;
  const ids = { ...state.ids };
  for (const [at, name] of names.entries()) {
    const id = shown[at] as string;
    const isTaken = Object.values(ids).some((other) => withoutTime(other) === withoutTime(id));
    if (ids[name] === undefined && isTaken) return undefined;
    ids[name] ??= id;
    if (ids[name] !== id) return undefined;
  }
  return { ...state, ids };
}

function decide(state: State, call: Sent): Decision {
  switch (call.do) {
    case 'generate':
      return generate(state, call);
    case 'activate':
      return activate(state, call);
    case 'redeem':
      return redeem(state, call);
    case 'update':
      return update(state, call);
    case 'balance':
      return balance(state, call);
    case 'lookup':
      return lookUp(state, call);
  }
}

const refuse = (code: string, next: State): Decision => ({ code, next });

function generate(state: State, { reference, quantity, amount }: Sent): Decision {
  const { order } = state;
  const answer = { code: '00', shown: amount, ids: ['batch', 'vouchers'] };
  if (order) {
    const isSame = order.reference === reference && order.quantity === quantity && order.amount === amount;
    return isSame ? { ...answer, replayed: true, next: state } : refuse('94', state);
  }
  const made = { reference: reference ?? '', quantity: quantity ?? 0, amount };
  const next: State = {
    ...state,
    order: made,
    balances: Array.from({ length: made.quantity }, () => amount),
    wrongPins: Array.from({ length: made.quantity }, () => 0),
  };
  return { ...answer, debits: amount !== null, next };
}

/** Compares the PIN. @returns the refusal, or undefined for a right PIN; and the state after it */
function checkPin(state: State, { voucher, pin }: Sent): { refusal: string | undefined; next: State } {
  const at = voucher ?? -1;
  const before = state.wrongPins[at] ?? 0;
  if (before >= WRONG_PINS_MAX) return { refusal: '75', next: state };
  const isRight = pin === 'right';
  if (isRight && before === 0) return { refusal: undefined, next: state };
  const wrongPins = state.wrongPins.with(at, isRight ? 0 : before + 1);
  return { refusal: isRight ? undefined : '55', next: { ...state, wrongPins } };
}

function redeem(state: State, call: Sent): Decision {
  const { reference, amount: asked, voucher: at } = call;
  const [amount, voucher, name] = [asked ?? 0, at ?? -1, `redeem ${reference}`];
  const prior = state.entries[name];
  if (!(voucher in state.balances)) return refuse('14', state);
  if (prior && (prior.voucher !== voucher || prior.amount !== amount)) return refuse('94', state);
  const { refusal, next } = checkPin(state, call);
  if (refusal) return refuse(refusal, next);
  const answer = { code: '00', shown: amount, ids: [name] };
  if (prior) return { ...answer, replayed: true, next };
  const left = next.balances[voucher] ?? null;
  if (left === null) return refuse('40', next);
  if (left === 0) return refuse('42', next);
  if (left < amount) return refuse('51', next);
  return { ...answer, next: enter(next, name, { voucher, amount, updatedTo: null }, left - amount) };
}

/** A transaction, and the balance of its voucher after it. */
function enter(state: State, name: string, entry: Entry, left: number): State {
  return {
    ...state,
    balances: state.balances.with(entry.voucher, left),
    entries: { ...state.entries, [name]: entry },
  };
}

function activate(state: State, { reference, voucher: at, amount: asked }: Sent): Decision {
  const [amount, voucher, name] = [asked ?? 0, at ?? -1, `activate ${reference}`];
  const prior = state.entries[name];
  if (!(voucher in state.balances)) return refuse('14', state);
  if (prior && (prior.voucher !== voucher || prior.amount !== amount)) return refuse('94', state);
  const answer = { code: '00', shown: amount, ids: [name] };
  if (prior) return { ...answer, replayed: true, next: state };
  if (state.balances[voucher] !== null) return refuse('41', state);
  return { ...answer, debits: true, next: enter(state, name, { voucher, amount, updatedTo: null }, amount) };
}

function update(state: State, { reference, amount: asked }: Sent): Decision {
  const [amount, name] = [asked ?? 0, `redeem ${reference}`];
  const original = state.entries[name];
  if (!original) return refuse('60', state);
  const { updatedTo } = original;
  const idsOf = (newAmount: number) => [
    name,
    `redeem CANCEL-${reference}`,
    ...(newAmount > 0 ? [`redeem NEW-${reference}`] : []),
  ];
  if (updatedTo !== null) return { code: '58', shown: updatedTo, ids: idsOf(updatedTo), next: state };
  const left = (state.balances[original.voucher] ?? 0) + original.amount - amount;
  if (left < 0) return refuse('51', state);
  const next = enter(state, name, { ...original, updatedTo: amount }, left);
  return { code: '00', shown: amount, ids: idsOf(amount), next };
}

function balance(state: State, call: Sent): Decision {
  const { voucher } = call;
  if (!((voucher ?? -1) in state.balances)) return refuse('14', state);
  const { refusal, next } = checkPin(state, call);
  if (refusal) return refuse(refusal, next);
  return { code: '00', shown: next.balances[voucher ?? -1] ?? 0, next };
}

function lookUp(state: State, { reference, variant }: Sent): Decision {
  const name = ['redeem', 'activate']
    .map((each) => `${each} ${reference}`)
    .find((each) => each in state.entries);
  const nothing = refuse(variant === 'a' ? '60' : '99', state);
  const entry = name === undefined ? undefined : state.entries[name];
  if (name === undefined || !entry || entry.updatedTo === 0) return nothing;
  if (entry.updatedTo === null) return { code: '00', shown: entry.amount, ids: [name], next: state };
  return { code: '00', shown: entry.updatedTo, ids: [`redeem NEW-${reference}`], next: state };
}
