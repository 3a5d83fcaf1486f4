import { type Action, protocol } from './search.ts';

/**
 * A proposal, its approval and its effect (src/operations/propose.ts, approve.ts). The operation is performed
 * in the transaction that decides about it.
 */

type Person = 'maker' | 'first checker' | 'second checker';

type Process = {
  step: 'not-sent' | 'locked' | 'performed' | 'decided' | 'answered' | 'killed';
  /** What the person saw and confirms. */
  confirmed: number;
  /** The first of two approvals is only recorded. */
  isFirst: boolean;
};

type State = {
  /** Whether it is nobody's proposal, made by a token, so that two people approve it. */
  isNobodys: boolean;
  row: 'PENDING' | 'APPROVED' | 'WITHDRAWN';
  firstChecker: Person | null;
  /** What the effect depends on, such as the balance of a float. The maker saw 0. */
  base: number;
  processes: Record<Person, Process>;
  /** Each committed decision: who made it, what it had read, and what the person confirmed. */
  effects: { by: Person; found: number; confirmed: number }[];
  kills: number;
};

type Fault = 'not-locked' | 'in-two-steps' | 'own' | 'unseen' | 'counted-twice';

const PEOPLE: readonly Person[] = ['maker', 'first checker', 'second checker'];

/** Whether another process holds the lock of lockPending. */
const isLocked = ({ processes }: State) =>
  Object.values(processes).some(({ step }) => step === 'locked' || step === 'performed');

/** Ends the transaction of an approval. After the first of two, the same person may try again. */
function decide(state: State, who: Person, next: Process['step']): void {
  const own = state.processes[who];
  if (own.isFirst) state.firstChecker = who;
  else state.row = 'APPROVED';
  own.step = own.isFirst ? 'not-sent' : next;
}

/** The effect of the operation is committed. */
function commit(state: State, who: Person): void {
  state.effects.push({ by: who, found: state.base, confirmed: state.processes[who].confirmed });
}

const stepOf = (
  who: Person,
  name: Process['step'],
  says: string,
  does: Action<State>['does'],
  also: (state: State) => boolean = () => true,
): Action<State> => ({
  says: `the ${who} ${says}`,
  when: (state) => state.processes[who].step === name && also(state),
  does,
});

/** lockPending, then turnOf decides what the approval leads to. */
const locking = (who: Person, fault: Fault | undefined): Action<State> =>
  stepOf(
    who,
    'not-sent',
    'approves the proposal, and locks it',
    (state) => {
      const isOwn = who === 'maker' && (state.isNobodys || fault !== 'own');
      const isAgain = state.firstChecker === who && fault !== 'counted-twice';
      const own = state.processes[who];
      own.step = state.row !== 'PENDING' || isOwn || isAgain ? 'answered' : 'locked';
      own.isFirst = state.isNobodys && state.firstChecker === null;
    },
    (state) => fault === 'not-locked' || !isLocked(state),
  );

/** approveChange: the operation runs, requireSameEffect compares what it found, and all is one commit. */
const changing = (who: Person, fault: Fault | undefined): Action<State>[] => [
  stepOf(who, 'locked', 'performs the operation', (state) => {
    const own = state.processes[who];
    own.step = state.base !== own.confirmed && fault !== 'unseen' ? 'answered' : 'performed';
  }),
  stepOf(who, 'performed', 'commits the decision', (state) => {
    const isWhole = !state.processes[who].isFirst && fault !== 'in-two-steps';
    decide(state, who, isWhole ? 'answered' : 'decided');
    if (isWhole) commit(state, who);
  }),
  // Only with the fault `in-two-steps`.
  stepOf(who, 'decided', 'commits the effect', (state) => {
    commit(state, who);
    state.processes[who].step = 'answered';
  }),
  // After `effect-changed`, the person looks at the new effect and confirms it.
  stepOf(
    who,
    'not-sent',
    'confirms what it would do now',
    (state) => {
      state.processes[who].confirmed = state.base;
    },
    ({ processes, base }) => processes[who].confirmed !== base,
  ),
];

const killing = (who: Person): Action<State> => ({
  says: `the process of the ${who} is killed`,
  when: ({ kills, processes }) =>
    kills === 0 && ['locked', 'performed', 'decided'].includes(processes[who].step),
  does(state) {
    state.kills++;
    state.processes[who].step = 'killed';
  },
});

const around: readonly Action<State>[] = [
  {
    // turnDown, under the same lock.
    says: 'the maker withdraws the proposal',
    when: (state) => state.row === 'PENDING' && !isLocked(state),
    does(state) {
      state.row = 'WITHDRAWN';
    },
  },
  {
    // The rows that an operation reads are locked from then on.
    says: 'the float changes',
    when: ({ base, processes }) =>
      base === 0 && Object.values(processes).every(({ step }) => step !== 'performed'),
    does(state) {
      state.base = 1;
    },
  },
];

const newProcess = (): Process => ({ step: 'not-sent', confirmed: 0, isFirst: false });

export const approvals = protocol<State, Fault>({
  title: 'approval and its effect',
  faults: {
    'not-locked': 'two people approve at the same time, and neither locks the proposal',
    'in-two-steps': 'the decision and its effect are two transactions',
    own: 'a person approves their own proposal',
    unseen: 'the effect is not compared with the one that was confirmed',
    'counted-twice': 'one person gives both approvals of a proposal that is nobody’s',
  },
  initial: [false, true].map((isNobodys) => ({
    isNobodys,
    row: 'PENDING',
    firstChecker: null,
    base: 0,
    processes: {
      maker: newProcess(),
      'first checker': newProcess(),
      'second checker': newProcess(),
    },
    effects: [],
    kills: 0,
  })),
  actions: (fault) => [
    ...PEOPLE.flatMap((who) => [locking(who, fault), ...changing(who, fault), killing(who)]),
    ...around,
  ],
  always: {
    'it is performed at most once': ({ effects }) => effects.length <= 1,
    'what is performed was approved': ({ effects, row }) => effects.length === 0 || row === 'APPROVED',
    'what is approved is performed': ({ effects, row }) => row !== 'APPROVED' || effects.length === 1,
    'another person than the maker approved it': ({ effects }) => effects.every(({ by }) => by !== 'maker'),
    'two people approved what is nobody’s': ({ effects, isNobodys, firstChecker }) =>
      !isNobodys || effects.every(({ by }) => firstChecker !== null && firstChecker !== by),
    'the effect is the one that was confirmed': ({ effects }) =>
      effects.every(({ found, confirmed }) => found === confirmed),
  },
  atEnd: {},
});
