import { type Action, protocol } from './search.ts';

/**
 * Marks, slices and late rows (sql/023-marks.sql, sql/025-seals.sql, src/books/close.ts) on a coordinator and
 * a worker. A tick of the clock is 150 seconds, which is also the length of a slice here: the oldest stamp
 * that is accepted, and half the grace before a slice is sealed.
 */

/**
 * A booking of the coordinator with a row on a worker. Its transaction on the coordinator ends before the one
 * on the worker: the second phase of a commit takes its time.
 */
type Booking = {
  step: 'stamped' | 'begun' | 'accepted' | 'written' | 'committed' | 'ended' | 'refused' | 'absent';
  /** The time that its row has. */
  stamp: number;
  /** Its transactions: 0 as long as there is none. */
  coordinator: number;
  worker: number;
};

type Mark = { at: number; coordinator: number; worker: number };

type State = {
  now: number;
  /** How far the clock was set back: once, by one tick. */
  isSetBack: boolean;
  /** The newest transaction on each server. */
  newest: { coordinator: number; worker: number };
  bookings: Booking[];
  /** The times of the marks: passed_at, marked_before, and the last marks themselves. */
  passed: number;
  markedBefore: number;
  mark: Mark;
  horizon: number;
  sealedUntil: number;
  /** By booking: how often it is in a sealed slice or among the late rows. */
  counted: number[];
};

type Fault = 'checked-first' | 'one-mark' | 'no-marks' | 'no-horizon' | 'late-twice';

const TICKS = 3;
const NEVER = -9;
/** The booking that follows the protocol, and one that does not: a server is restored, and has its row. */
const BOOKING = 0;
const STRAY = 1;

function booking(fault: Fault | undefined): Action<State>[] {
  const own = (state: State) => state.bookings[BOOKING] as Booking;
  const step = (name: Booking['step'], says: string, does: Action<State>['does']): Action<State> => ({
    says: `the booking ${says}`,
    when: (state) => own(state).step === name,
    does,
  });
  const begin = (state: State) => {
    own(state).coordinator = ++state.newest.coordinator;
  };
  const check = (state: State) => {
    const { stamp } = own(state);
    const isLate = stamp < state.now - 1 || (stamp < state.horizon && fault !== 'no-horizon');
    own(state).step = isLate ? 'refused' : fault === 'checked-first' ? 'begun' : 'accepted';
  };
  // `check_stamp`: first the number of the transaction, then the comparison.
  const [first, second] = fault === 'checked-first' ? [check, begin] : [begin, check];
  return [
    step('stamped', fault === 'checked-first' ? 'has its stamp checked' : 'begins', (state) => {
      own(state).step = 'begun';
      first(state);
    }),
    step('begun', fault === 'checked-first' ? 'begins' : 'has its stamp checked', (state) => {
      own(state).step = 'accepted';
      second(state);
    }),
    step('accepted', 'writes its row on the worker', (state) => {
      own(state).step = 'written';
      own(state).worker = ++state.newest.worker;
    }),
    step('written', 'is committed on the coordinator', (state) => {
      own(state).step = 'committed';
    }),
    step('committed', 'is committed on the worker', (state) => {
      own(state).step = 'ended';
    }),
  ];
}

/** Whether a transaction up to a mark is still running on its server. */
const isRunning = ({ bookings, mark }: State) =>
  bookings.some(
    ({ step, coordinator, worker }) =>
      (['begun', 'accepted', 'written'].includes(step) &&
        coordinator > 0 &&
        coordinator <= mark.coordinator) ||
      (['written', 'committed'].includes(step) && worker > 0 && worker <= mark.worker),
  );

/** `advance_mark`. */
const marking = (fault: Fault | undefined): Action<State> => ({
  says: 'the newest transactions are marked',
  when: (state) => !isRunning(state),
  does(state) {
    state.passed = fault === 'one-mark' ? state.mark.at : state.markedBefore;
    state.markedBefore = state.mark.at;
    state.mark = { at: Math.max(state.mark.at, state.now), ...state.newest };
    state.horizon = Math.max(state.horizon, state.now - 1);
  },
});

/** `sealable_until`, and the function `seal` up to that time. */
const sealing = (fault: Fault | undefined): Action<State> => {
  const sealable = ({ now, passed }: State) =>
    fault === 'no-marks' ? now - 2 : Math.min(now - 2, passed - 1);
  return {
    says: 'the slices that are due are sealed',
    when: (state) => sealable(state) > state.sealedUntil,
    does(state) {
      const until = sealable(state);
      for (const [at, { step, stamp }] of state.bookings.entries())
        if (step === 'ended' && stamp >= state.sealedUntil && stamp < until) count(state, at);
      state.sealedUntil = until;
    },
  };
};

function count(state: State, at: number): void {
  state.counted[at] = (state.counted[at] ?? 0) + 1;
}

const isUncounted = (state: State, at: number) =>
  state.bookings[at]?.step === 'ended' &&
  state.bookings[at].stamp < state.sealedUntil &&
  state.counted[at] === 0;

/** A close: it counts the rows of sealed slices again, and books those that their listings do not name. */
const closing = (fault: Fault | undefined): Action<State> => ({
  says: 'a close books the late rows',
  when: (state) =>
    state.bookings.some(
      (booking, at) =>
        isUncounted(state, at) ||
        (fault === 'late-twice' && booking.step === 'ended' && state.counted[at] === 1),
    ),
  does(state) {
    for (const [at, { step, stamp }] of state.bookings.entries())
      if (isUncounted(state, at) || (fault === 'late-twice' && step === 'ended' && stamp < state.sealedUntil))
        count(state, at);
  },
});

const clock: Action<State>[] = [
  {
    says: 'the clock advances by 150 seconds',
    when: ({ now }) => now < TICKS,
    does(state) {
      state.now++;
    },
  },
  {
    says: 'the clock is set back by 150 seconds',
    when: ({ now, isSetBack }) => !isSetBack && now > 0,
    does(state) {
      state.now--;
      state.isSetBack = true;
    },
  },
];

const arrivals: Action<State>[] = [
  {
    says: 'a booking takes the time as its stamp',
    when: ({ bookings }) => bookings[BOOKING]?.step === 'absent',
    does(state) {
      state.bookings[BOOKING] = { step: 'stamped', stamp: state.now, coordinator: 0, worker: 0 };
    },
  },
  {
    says: 'a server is restored, and has one more row of the first slice',
    when: ({ bookings, now }) => bookings[STRAY]?.step === 'absent' && now > 0,
    does(state) {
      state.bookings[STRAY] = { step: 'ended', stamp: 0, coordinator: 0, worker: 0 };
    },
  },
];

const ABSENT: Booking = { step: 'absent', stamp: NEVER, coordinator: 0, worker: 0 };

export const books = protocol<State, Fault>({
  title: 'marks, slices and late rows',
  faults: {
    'checked-first': 'a stamp is checked before the transaction has its number',
    'one-mark': 'a slice is sealed up to the last marks, and not up to those before them',
    'no-marks': 'a slice is sealed when the grace is over, whatever still runs',
    'no-horizon': 'a stamp before the horizon is accepted after the clock was set back',
    'late-twice': 'a close books every row of a slice as late, and not only those that it does not name',
  },
  initial: [
    {
      now: 0,
      isSetBack: false,
      newest: { coordinator: 0, worker: 0 },
      bookings: [ABSENT, ABSENT],
      passed: NEVER,
      markedBefore: NEVER,
      mark: { at: NEVER, coordinator: 0, worker: 0 },
      horizon: NEVER,
      sealedUntil: NEVER,
      counted: [0, 0],
    },
  ],
  actions: (fault) => [
    ...booking(fault),
    marking(fault),
    sealing(fault),
    closing(fault),
    ...clock,
    ...arrivals,
  ],
  always: {
    'a slice is sealed when all its bookings have ended': (state) => !isUncounted(state, BOOKING),
    'no row is counted twice': ({ counted }) => counted.every((times) => times <= 1),
  },
  atEnd: {
    'every row of a sealed slice is counted': (state) => !isUncounted(state, STRAY),
    'a booking ends': ({ bookings }) => ['ended', 'refused'].includes(bookings[BOOKING]?.step ?? ''),
  },
});
