/**
 * An exhaustive search: visits every state that a protocol can reach, by the fewest steps first, and stops at
 * the first one that breaks an invariant. States are plain JSON values, and equal texts are one state.
 */

/** A step that a process, a server or a person can take. */
export type Action<State> = {
  /** What happens, in words. */
  readonly says: string;
  readonly when: (state: State) => boolean;
  /** Changes the state, which is a copy. */
  readonly does: (state: State) => void;
};

/** Conditions, by what they say in words. */
type Invariants<State> = Readonly<Record<string, (state: State) => boolean>>;

type Declared<State, Fault extends string> = {
  readonly title: string;
  /** Changed actions that must break an invariant, each in words. */
  readonly faults: Readonly<Record<Fault, string>>;
  readonly initial: readonly State[];
  /** @param fault what is changed; undefined for the protocol as it is */
  readonly actions: (fault: Fault | undefined) => readonly Action<State>[];
  /** What holds in every state. */
  readonly always: Invariants<State>;
  /** What holds when nothing more can happen. */
  readonly atEnd: Invariants<State>;
};

/** The result of a search: a broken invariant has the shortest way to it, a line for each step. */
type Outcome = {
  readonly states: number;
  readonly broken: { readonly invariant: string; readonly trace: readonly string[] } | undefined;
};

export type Protocol = {
  readonly title: string;
  /** By name, in words. */
  readonly faults: Readonly<Record<string, string>>;
  /** Searches the protocol as it is, or with one fault. */
  readonly check: (fault?: string) => Outcome;
};

/** Declares a protocol. */
export function protocol<State, Fault extends string>(declared: Declared<State, Fault>): Protocol {
  return {
    title: declared.title,
    faults: declared.faults,
    check: (fault) => search(declared, declared.actions(fault as Fault | undefined)),
  };
}

/** More states than any of the protocols has: one without bounds ends here instead of using up the memory. */
const STATES_MAX = 2_000_000;

/** The state before a state, and the step between them. */
type Origin = { readonly from: string; readonly says: string } | undefined;

function search<State>(
  { initial, always, atEnd }: Pick<Declared<State, never>, 'initial' | 'always' | 'atEnd'>,
  actions: readonly Action<State>[],
): Outcome {
  const origins = new Map<string, Origin>(initial.map((state) => [JSON.stringify(state), undefined]));
  const queue = [...origins.keys()];
  // States are added at the end while the queue is read.
  for (const text of queue) {
    const state = JSON.parse(text) as State;
    let isEnd = true;
    for (const { says, when, does } of actions) {
      if (!when(state)) continue;
      isEnd = false;
      const next = JSON.parse(text) as State;
      does(next);
      const reached = JSON.stringify(next);
      if (origins.has(reached)) continue;
      origins.set(reached, { from: text, says });
      queue.push(reached);
    }
    const broken = firstBroken(always, state) ?? (isEnd ? firstBroken(atEnd, state) : undefined);
    if (broken !== undefined)
      return { states: origins.size, broken: { invariant: broken, trace: traceTo(origins, text) } };
    if (origins.size > STATES_MAX)
      throw new Error(`more than ${STATES_MAX} states: the protocol has no bound`);
  }
  return { states: origins.size, broken: undefined };
}

function firstBroken<State>(invariants: Invariants<State>, state: State): string | undefined {
  return Object.keys(invariants).find((name) => !invariants[name]?.(state));
}

function traceTo(origins: ReadonlyMap<string, Origin>, end: string): string[] {
  const trace: string[] = [];
  for (let origin = origins.get(end); origin; origin = origins.get(origin.from)) trace.unshift(origin.says);
  return trace;
}
