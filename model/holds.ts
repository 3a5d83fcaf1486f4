import { type Action, protocol } from './search.ts';

/**
 * An activation that a float pays, on several shards (src/ledger/holds.ts): the money goes from the float to
 * the transit account, and from there to the voucher or back. Each call of a function in `sql/` is one step.
 * The id of an activation is the one of its claim, so copies of a request share it.
 */

type Step = 'waits' | 'holds' | 'activates' | 'ends' | 'voids' | 'releases' | 'answered' | 'killed';

/** A request that is being served; the sweep has the same last steps. */
type Worker = { step: Step; activation: number; isFunded: boolean };

type State = {
  /** By merchant, now and before. */
  floats: number[];
  before: readonly number[];
  transit: number;
  /** By activation: whether money was held, and whether the hold has ended. */
  holds: ('none' | 'open' | 'ended' | 'released')[];
  vouchers: { blocked: boolean; activatedBy: number | null }[];
  booked: number[];
  voids: number[];
  workers: Worker[];
  kills: number;
};

type Fault = 'not-voided' | 'held-again' | 'swept-blindly';

/** The merchant and the voucher of each activation. Each costs 1. */
const ACTIVATIONS = [
  { merchant: 0, voucher: 0 },
  { merchant: 0, voucher: 1 },
  { merchant: 1, voucher: 0 },
];
/** Two copies of the first activation, and one of each other. */
const COPIES = [0, 0, 1, 2];
/** The place of the sweep among the workers. */
const SWEEP = COPIES.length;

const WAITING: Worker = { step: 'waits', activation: 0, isFunded: false };

function stepsOf(at: number, fault: Fault | undefined): Action<State>[] {
  const worker = (state: State) => state.workers[at] as Worker;
  const who = at === SWEEP ? 'the sweep' : `copy ${at + 1} of activation ${COPIES[at]}`;
  const voucherOf = (state: State) =>
    state.vouchers[ACTIVATIONS[worker(state).activation]?.voucher ?? 0] as State['vouchers'][number];
  const merchantOf = (state: State) => ACTIVATIONS[worker(state).activation]?.merchant ?? 0;
  const step = (name: Step, says: string, does: Action<State>['does']): Action<State> => ({
    says: `${who} ${says}`,
    when: (state) => worker(state).step === name,
    does,
  });
  const end = (state: State) => {
    Object.assign(worker(state), at === SWEEP ? WAITING : { step: 'answered', isFunded: false });
  };
  return [
    // `hold_floats`, once for each id.
    step('holds', 'is sent, and takes its price from the float', (state) => {
      const own = worker(state);
      const isKnown = state.holds[own.activation] !== 'none' && fault !== 'held-again';
      own.isFunded = isKnown || (state.floats[merchantOf(state)] ?? 0) > 0;
      own.step = 'activates';
      if (isKnown || !own.isFunded) return;
      state.floats[merchantOf(state)] = (state.floats[merchantOf(state)] ?? 0) - 1;
      state.transit++;
      state.holds[own.activation] = 'open';
    }),
    // `activate` with p_claimed and p_unfunded.
    step('activates', 'asks for its voucher to be activated', (state) => {
      const { activation, isFunded } = worker(state);
      const voucher = voucherOf(state);
      const isBooked = state.booked.includes(activation);
      const isDeclined =
        state.voids.includes(activation) || voucher.blocked || voucher.activatedBy !== null || !isFunded;
      if (!isBooked && !isDeclined) {
        voucher.activatedBy = activation;
        state.booked = [...state.booked, activation].sort();
        state.transit--;
      }
      if (!isFunded) return end(state);
      worker(state).step = isBooked || !isDeclined ? 'ends' : fault === 'not-voided' ? 'releases' : 'voids';
    }),
    // `end_holds`.
    step('ends', 'ends its hold', (state) => {
      const { activation } = worker(state);
      if (state.holds[activation] === 'open') state.holds[activation] = 'ended';
      end(state);
    }),
    // releaseHold: `void_transaction`.
    step('voids', 'voids its id', (state) => {
      const { activation } = worker(state);
      const isBooked = state.booked.includes(activation);
      if (!isBooked && !state.voids.includes(activation)) state.voids = [...state.voids, activation].sort();
      worker(state).step = isBooked ? 'ends' : 'releases';
    }),
    // `release_holds`.
    step('releases', 'gives its price back to the float', (state) => {
      const { activation } = worker(state);
      if (state.holds[activation] === 'open') {
        state.holds[activation] = 'released';
        state.floats[merchantOf(state)] = (state.floats[merchantOf(state)] ?? 0) + 1;
        state.transit--;
      }
      end(state);
    }),
  ];
}

const copies = (fault: Fault | undefined): Action<State>[] =>
  COPIES.flatMap((activation, at) => [
    ...stepsOf(at, fault),
    {
      says: `the process of copy ${at + 1} of activation ${activation} is killed`,
      when: ({ workers, kills }: State) =>
        kills === 0 && !['holds', 'answered', 'killed'].includes(workers[at]?.step ?? ''),
      does(state: State) {
        state.kills++;
        state.workers[at] = { step: 'killed', activation, isFunded: false };
      },
    },
  ]);

/** The sweep takes any open hold: an old one may belong to a request that is still under way. */
const sweep = (fault: Fault | undefined): Action<State>[] => [
  ...ACTIVATIONS.map((_, activation) => ({
    says: `the sweep finds the hold of activation ${activation}`,
    when: ({ workers, holds }: State) => workers[SWEEP]?.step === 'waits' && holds[activation] === 'open',
    does(state: State) {
      const step = fault === 'swept-blindly' ? 'releases' : 'voids';
      state.workers[SWEEP] = { step, activation, isFunded: true };
    },
  })),
  ...stepsOf(SWEEP, fault),
];

/** The copies that are sent, by their place in `COPIES`, and what the floats hold. */
const STARTS = [
  { sent: [0, 1, 2], floats: [1, 1] },
  { sent: [0, 1, 3], floats: [2, 1] },
  { sent: [0, 2, 3], floats: [1, 1] },
];

export const holds = protocol<State, Fault>({
  title: 'hold and transit',
  faults: {
    'not-voided': 'a hold is released, and its id is not voided first',
    'held-again': 'each copy of a request takes the price from the float',
    'swept-blindly': 'the sweep releases a hold without looking whether its activation was booked',
  },
  initial: STARTS.map(({ sent, floats }) => ({
    floats,
    before: floats,
    transit: 0,
    holds: ACTIVATIONS.map(() => 'none'),
    vouchers: [
      { blocked: true, activatedBy: null },
      { blocked: false, activatedBy: null },
    ],
    booked: [],
    voids: [],
    workers: [
      ...COPIES.map((activation, at): Worker => {
        return { step: sent.includes(at) ? 'holds' : 'killed', activation, isFunded: false };
      }),
      WAITING,
    ],
    kills: 0,
  })),
  actions: (fault) => [
    ...copies(fault),
    ...sweep(fault),
    {
      says: 'voucher 0 is unblocked',
      when: ({ vouchers }) => vouchers[0]?.blocked === true,
      does: ({ vouchers }) => Object.assign(vouchers[0] ?? {}, { blocked: false }),
    },
  ],
  always: {
    'the transit account is not below zero': ({ transit }) => transit >= 0,
    'what left a float is held, or was booked': ({ floats, before, holds }) =>
      floats.every(
        (float, merchant) =>
          float ===
          (before[merchant] ?? 0) -
            holds.filter(
              (hold, at) => ACTIVATIONS[at]?.merchant === merchant && (hold === 'open' || hold === 'ended'),
            ).length,
      ),
    'every activation that was booked was paid': ({ booked, holds }) =>
      booked.every((activation) => ['open', 'ended'].includes(holds[activation] ?? '')),
    'an activation is booked or voided, never both': ({ booked, voids }) =>
      booked.every((activation) => !voids.includes(activation)),
  },
  atEnd: {
    'nothing is left in transit': ({ transit, holds }) => transit === 0 && !holds.includes('open'),
  },
});
