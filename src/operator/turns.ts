import type { Service } from '../context.ts';
import { Problem } from './problem.ts';

/**
 * Heavy operations are performed one at a time in each process: two reports at once take the cores of the
 * database from tills, and the connections from what is quick (docs/explanation/performance.md, "A large
 * database").
 */

/** One is performed, the others wait. A report takes about a second: more would outlast their clients. */
const INSIDE_MAX = 21;

type Turns = { last: Promise<void>; inside: number };

const turnsOf = new WeakMap<Service, Turns>();

/**
 * Waits until the operations that came before have ended.
 * @returns what ends the turn
 * @throws Problem `too-many-requests` where too many wait already
 */
export async function takeTurn(service: Service): Promise<() => void> {
  const turns = turnsOf.get(service) ?? { last: Promise.resolve(), inside: 0 };
  turnsOf.set(service, turns);
  if (turns.inside >= INSIDE_MAX)
    throw new Problem('too-many-requests', 'other reports are being made: ask again in a moment');
  turns.inside++;
  const before = turns.last;
  const { promise, resolve } = Promise.withResolvers<void>();
  turns.last = promise;
  await before;
  return () => {
    turns.inside--;
    resolve();
  };
}
