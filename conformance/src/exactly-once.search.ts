import type { Sent } from './exactly-once.history.ts';
import { isOpen, NEW_STATE, rightAnswer, type State, step, textOf } from './exactly-once.model.ts';

/** A state in which the server can be, and the calls that were sent and have no place in the order yet. */
type Reached = { readonly state: State; readonly pending: readonly Sent[] };

/** A call, and the answers that would have been right. */
export type Unexplained = { readonly call: Sent; readonly right: readonly string[] };

/**
 * The first call about a batch, by the time of its answer, that the model does not explain; undefined if
 * there is an order of the calls in which the model gives the same answers. In that order a call stands
 * before those that were sent after its answer. A call whose outcome is open may stand at any later place, or
 * nowhere.
 *
 * Follows the answers in time, with all states in which the server can be after each (Lowe's just-in-time
 * linearization).
 */
export function firstUnexplained(calls: readonly Sent[]): Unexplained | undefined {
  const answered = calls.filter((call) => !isOpen(call)).sort((one, other) => endOf(one) - endOf(other));
  const unsent = calls.toSorted((one, other) => other.from - one.from);
  let reached: readonly Reached[] = [{ state: NEW_STATE, pending: [] }];
  for (const call of answered) {
    const sent: Sent[] = [];
    while ((unsent.at(-1)?.from ?? Number.POSITIVE_INFINITY) <= endOf(call)) sent.push(unsent.pop() as Sent);
    const before = reached.map(({ state, pending }) => ({ state, pending: [...pending, ...sent] }));
    const right = new Set<string>();
    reached = afterAnswer(before, call, right);
    if (reached.length === 0) return { call, right: [...right].sort() };
  }
  return undefined;
}

const endOf = ({ to }: Sent) => to ?? Number.POSITIVE_INFINITY;

const isBefore = (one: Sent, other: Sent) =>
  endOf(one) < endOf(other) || (endOf(one) === endOf(other) && one.call < other.call);

/**
 * The states that are possible once a call is answered. Others may stand before it, or later.
 * @param right is given the answers that would be right
 */
function afterAnswer(before: readonly Reached[], answered: Sent, right: Set<string>): Reached[] {
  const visited = new Set<string>();
  const after: Reached[] = [];
  const left = [...before];
  for (let one = left.pop(); one; one = left.pop()) {
    const { state, pending } = withoutEffect(one);
    const key = `${pending.map(({ call }) => call).join()} ${textOf(state)}`;
    if (visited.has(key)) continue;
    visited.add(key);
    if (!pending.includes(answered)) after.push({ state, pending });
    else {
      right.add(rightAnswer(state, answered));
      left.push(...nextOf({ state, pending }));
    }
  }
  return after;
}

/** Places the calls that are right in this state and do not change it: no later place is better. */
function withoutEffect({ state, pending }: Reached): Reached {
  return { state, pending: pending.filter((call) => isOpen(call) || step(state, call) !== state) };
}

/** The states after one more call. Of equal calls the first to be answered comes first. */
function nextOf({ state, pending }: Reached): Reached[] {
  return pending.flatMap((call) => {
    const isLater = pending.some((other) => isBefore(other, call) && isEqual(other, call));
    const next = isLater ? undefined : step(state, call);
    return next && next !== state ? [{ state: next, pending: pending.filter((each) => each !== call) }] : [];
  });
}

const COMPARED = ['do', 'reference', 'voucher', 'pin', 'amount', 'code', 'replayed', 'shown'] as const;

/** Whether two calls with their answers differ only in their times. */
function isEqual(one: Sent, other: Sent): boolean {
  return COMPARED.every((name) => one[name] === other[name]) && one.ids.join() === other.ids.join();
}
