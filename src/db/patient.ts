import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './pool.ts';

/** A minute, in which a machine that does much else comes to it. */
const TRIES = 60;
const PAUSE_MS = 1_000;

/** Nothing was sent: there was no connection to send it on. */
function wasNotSent(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string };
  return code === 'EPOOLEXHAUSTED' || message === 'Connection terminated due to connection timeout';
}

async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 1 || !wasNotSent(error)) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/**
 * The same database for work that nobody waits for: where a till is answered at once that the service is
 * overloaded, this waits for a connection.
 */
export const patient = (db: Database): Database => ({
  ...db,
  query: (statement) => patiently(() => db.query(statement)),
  transaction: (run, isolation) => patiently(() => db.transaction(run, isolation)),
  hot: (statement, values, bucket) => patiently(() => db.hot(statement, values, bucket)),
});
