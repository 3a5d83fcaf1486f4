import { type Action, protocol } from './search.ts';

/**
 * A reference and its voucher on two shards (sql/008-claims.sql, src/ledger/claims.ts). Each call of a
 * function in `sql/` is one step: it is a transaction on one shard, under the lock of its claim or voucher.
 */

/** What a client asks: equal requests have the same merchant, reference, voucher and amount. */
type Request = {
  readonly merchant: number;
  readonly reference: string;
  /** Null: the reference is given up (src/redemptions/give-up.ts). */
  readonly voucher: number | null;
};

/** A request as it is sent once. Several copies of one request may be under way. */
export type Copy = {
  step: 'not-sent' | 'claims' | 'voids' | 'reassigns' | 'books' | 'answered' | 'ended';
  /** The id of its transaction, if the claim is new. */
  id: string;
  /** The id with which it continues: its own, or the one of a claim. */
  under: string;
  voided: string[];
  /** The number of ids that it has made. */
  ids: number;
  answer: string;
};

/** Undefined: nothing is known of the voucher, which may pay or not. */
type Voucher = { blocked: boolean; balance: number } | undefined;

export type State = {
  /** The hour of the clock. Ids hold the hour at which they were made. */
  hour: number;
  /** By merchant and reference: the id of the claim, and its request. */
  claims: Record<string, { id: string; request: number }>;
  vouchers: Voucher[];
  journal: { id: string; hour: number; request: number }[];
  voids: string[];
  copies: Copy[];
  crashes: number;
};

type Fault = 'old-id' | 'booked-id-voided' | 'void-not-kept' | 'claim-overwritten';

const canPay = (voucher: Voucher) => !voucher || (!voucher.blocked && voucher.balance > 0);
const canDecline = (voucher: Voucher) => !voucher || voucher.blocked || voucher.balance === 0;

/** The requests, and of each copy the request that it sends. */
export type Setup = {
  readonly requests: readonly Request[];
  readonly copies: readonly number[];
  /** A copy that would need more ids than this ends without an answer, so that the states are finite. */
  readonly idsMax: number;
};

const hourOf = (id: string) => Number(id.split('@')[1]);

/** A copy, and how its request reads in a trace. */
export type Sender = Setup & {
  readonly at: number;
  readonly request: number;
  readonly asked: Request;
  /** The merchant and the reference. */
  readonly key: string;
};

const copyOf = (state: State, { at }: Sender) => state.copies[at] as Copy;

const says = ({ at, asked: { merchant, reference, voucher } }: Sender, what: string) =>
  `copy ${at + 1} (merchant ${merchant}, reference ${reference}, voucher ${voucher ?? 'none'}) ${what}`;

function answer(state: State, sender: Sender, text: string): void {
  Object.assign(copyOf(state, sender), { step: 'answered', answer: text, id: '', voided: [], ids: 0 });
}

/** newId: an id has the time of its request. */
function takeNewId(state: State, sender: Sender): void {
  const own = copyOf(state, sender);
  own.id = `${sender.at}.${own.ids++}@${state.hour}`;
  if (own.ids > sender.idsMax) answer(state, sender, '91');
  else own.step = 'claims';
}

function addVoid(state: State, sender: Sender): void {
  const { under } = copyOf(state, sender);
  if (!state.voids.includes(under)) state.voids = [...state.voids, under].sort();
}

/** claimReference: `claim`, in the bucket of the reference. */
function claim(state: State, sender: Sender): void {
  const own = copyOf(state, sender);
  const found = state.claims[sender.key] ?? { id: own.id, request: sender.request };
  state.claims[sender.key] = found;
  own.under = found.id;
  if (sender.requests[found.request]?.voucher === null)
    answer(state, sender, sender.asked.voucher === null ? 'given up' : '94');
  else if (own.voided.includes(found.id)) own.step = 'reassigns';
  else own.step = found.request === sender.request ? 'books' : 'voids';
}

function claiming(sender: Sender, fault: string | undefined): readonly Action<State>[] {
  const step = (name: Copy['step'], what: string, does: Action<State>['does']): Action<State> => ({
    says: says(sender, what),
    when: (state) => copyOf(state, sender).step === name,
    does,
  });
  return [
    step('not-sent', 'is sent, and claims the reference', (state) => {
      takeNewId(state, sender);
      claim(state, sender);
    }),
    step('claims', 'claims the reference again', (state) => claim(state, sender)),
    // `void_transaction`, in the bucket of the voucher of the claim.
    step('voids', 'voids the id of another claim', (state) => {
      const own = copyOf(state, sender);
      if (fault !== 'booked-id-voided' && isBooked(state, own)) return answer(state, sender, '94');
      if (fault !== 'void-not-kept') addVoid(state, sender);
      own.voided.push(own.under);
      own.step = 'reassigns';
    }),
    // `reassign_claim`, in the bucket of the reference.
    step('reassigns', 'takes the claim over', (state) => {
      const own = copyOf(state, sender);
      const isFirst = fault === 'claim-overwritten' || state.claims[sender.key]?.id === own.under;
      own.step = isFirst ? 'books' : 'claims';
      if (!isFirst) return;
      state.claims[sender.key] = { id: own.id, request: sender.request };
      own.under = own.id;
      if (sender.asked.voucher === null) answer(state, sender, 'given up');
    }),
  ];
}

const isBooked = ({ journal }: State, { under }: Copy) => journal.some(({ id }) => id === under);

/** `redeem` with p_claimed, in the bucket of the voucher: what it finds decides. */
function booking(sender: Sender, fault: string | undefined): readonly Action<State>[] {
  const isVoid = (state: State) => {
    const { under } = copyOf(state, sender);
    return state.voids.includes(under) || (fault !== 'old-id' && hourOf(under) !== state.hour);
  };
  const voucherOf = ({ vouchers }: State) => vouchers[sender.asked.voucher ?? 0];
  const step = (what: string, finds: (state: State) => boolean, does: Action<State>['does']) => ({
    says: says(sender, what),
    when: (state: State) => copyOf(state, sender).step === 'books' && finds(state),
    does,
  });
  const isOpen = (state: State) => !isBooked(state, copyOf(state, sender)) && !isVoid(state);
  return [
    step(
      'finds its id booked',
      (state) => isBooked(state, copyOf(state, sender)),
      (state) => answer(state, sender, 'replayed'),
    ),
    step(
      'finds its id voided, or too old',
      (state) => !isBooked(state, copyOf(state, sender)) && isVoid(state),
      (state) => {
        addVoid(state, sender);
        copyOf(state, sender).voided.push(copyOf(state, sender).under);
        takeNewId(state, sender);
      },
    ),
    step(
      'is declined',
      (state) => isOpen(state) && canDecline(voucherOf(state)),
      (state) => answer(state, sender, 'declined'),
    ),
    step(
      'is booked',
      (state) => isOpen(state) && canPay(voucherOf(state)),
      (state) => {
        const voucher = voucherOf(state);
        if (voucher) voucher.balance--;
        state.journal.push({
          id: copyOf(state, sender).under,
          hour: state.hour,
          request: sender.request,
        });
        answer(state, sender, 'booked');
      },
    ),
  ];
}

export function senderOf(setup: Setup, at: number): Sender {
  const request = setup.copies[at] ?? 0;
  const asked = setup.requests[request] as Request;
  return { ...setup, at, request, asked, key: `${asked.merchant} ${asked.reference}` };
}

/** The steps of a copy of a request. */
export function stepsOf(sender: Sender, fault?: string): readonly Action<State>[] {
  return [...claiming(sender, fault), ...booking(sender, fault)];
}

export const newCopy = (): Copy => ({ step: 'not-sent', id: '', under: '', voided: [], ids: 0, answer: '' });

/** A copy whose process was killed, or that is not sent at all. */
const ended = (): Copy => ({ ...newCopy(), step: 'ended' });

/**
 * Two copies of a request, two other requests under its reference, and another merchant's request. Of these
 * five, three are sent, in each way.
 */
const SETUP: Setup = {
  requests: [
    { merchant: 1, reference: 'a', voucher: 0 },
    { merchant: 1, reference: 'a', voucher: 1 },
    { merchant: 2, reference: 'a', voucher: 0 },
    { merchant: 1, reference: 'a', voucher: null },
  ],
  copies: [0, 0, 1, 2, 3],
  idsMax: 2,
};

/** The copies that are sent, by their place in `copies`. */
const SENT = [
  [0, 1, 2],
  [0, 1, 3],
  [0, 1, 4],
  [0, 2, 4],
];

const isUnderWay = (step: Copy['step']) => !['not-sent', 'answered', 'ended'].includes(step);

const around: readonly Action<State>[] = [
  {
    // A request takes less than half an hour.
    says: 'two hours pass',
    when: ({ hour, copies }) => hour === 0 && copies.every(({ step }) => !isUnderWay(step)),
    does(state) {
      state.hour = 2;
    },
  },
  {
    says: 'voucher 0 is unblocked',
    when: ({ vouchers }) => vouchers[0]?.blocked === true,
    does(state) {
      if (state.vouchers[0]) state.vouchers[0].blocked = false;
    },
  },
  ...SETUP.copies.map((_, at) => ({
    says: `the process of copy ${at + 1} is killed`,
    when: ({ copies, crashes }: State) => crashes === 0 && isUnderWay(copies[at]?.step ?? 'ended'),
    does(state: State) {
      state.crashes++;
      state.copies[at] = ended();
    },
  })),
];

const requestOf = (at: number) => SETUP.requests[at] as Request;
const isUnder = (at: number, other: number) =>
  requestOf(at).merchant === requestOf(other).merchant &&
  requestOf(at).reference === requestOf(other).reference;

/** The answers to copies, each with its request, and what was booked under its reference. */
const answers = ({ copies, journal }: State) =>
  copies.flatMap(({ step, answer, under }, at) => {
    const request = SETUP.copies[at] as number;
    const rows = journal.filter((row) => isUnder(row.request, request));
    return step === 'answered' ? [{ answer, under, request, rows }] : [];
  });

export const claims = protocol<State, Fault>({
  title: 'claim and voucher on two shards',
  faults: {
    'old-id': 'a repeat hours after a decline is booked under the id of its old claim',
    'booked-id-voided': 'void_transaction does not look whether the id was booked',
    'void-not-kept': 'void_transaction does not keep that the id must not be booked',
    'claim-overwritten': 'reassign_claim does not compare the id of the claim',
  },
  initial: SENT.map((sent) => ({
    hour: 0,
    claims: {},
    vouchers: [
      { blocked: true, balance: 1 },
      { blocked: false, balance: 1 },
    ],
    journal: [],
    voids: [],
    copies: SETUP.copies.map((_, at) => (sent.includes(at) ? newCopy() : ended())),
    crashes: 0,
  })),
  actions: (fault) => [...SETUP.copies.flatMap((_, at) => stepsOf(senderOf(SETUP, at), fault)), ...around],
  always: {
    'a reference is booked once': ({ journal }) =>
      journal.every((row) => journal.filter((other) => isUnder(row.request, other.request)).length === 1),
    'an id is booked once, or voided': ({ journal, voids }) =>
      journal.every(
        ({ id }) => !voids.includes(id) && journal.filter((other) => other.id === id).length === 1,
      ),
    // The rows of a slice have ids between an hour before it and an hour after it (src/books/days.ts).
    'the books find each row by the time in its id': ({ journal }) =>
      journal.every(({ id, hour }) => Math.abs(hourOf(id) - hour) <= 1),
    'a balance is what was not redeemed': ({ vouchers, journal }) =>
      vouchers.every(
        (voucher, at) =>
          (voucher?.balance ?? 0) ===
          1 - journal.filter(({ request }) => requestOf(request).voucher === at).length,
      ),
    'a success is answered with the row that was booked': (state) =>
      answers(state).every(
        ({ answer, under, request, rows }) =>
          !['booked', 'replayed'].includes(answer) || (rows[0]?.id === under && rows[0].request === request),
      ),
    'a used reference (94) was used by another request': (state) =>
      answers(state).every(
        ({ answer, request, rows }) =>
          answer !== '94' ||
          (rows[0] !== undefined && rows[0].request !== request) ||
          requestOf(state.claims['1 a']?.request ?? 0).voucher === null,
      ),
    'nothing is booked under a reference that was given up': (state) =>
      answers(state).every(({ answer, rows }) => answer !== 'given up' || rows.length === 0),
  },
  atEnd: {},
});
