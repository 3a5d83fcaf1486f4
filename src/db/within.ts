import { sqlState } from './errors.ts';
import type { Database, Queries } from './pool.ts';

/**
 * Returns a database inside a transaction: its statements belong to the transaction and are rolled back with
 * it. A failure is final: a retry inside gets the first error, so that the caller repeats the whole
 * transaction.
 */
export function within(db: Database, tx: Queries): Database {
  let failure: unknown;
  const guard = async <T>(run: () => Promise<T>): Promise<T> => {
    if (failure !== undefined) throw failure;
    try {
      return await run();
    } catch (error) {
      if (sqlState(error)) failure = error;
      throw error;
    }
  };
  return {
    ...db,
    query: (statement) => guard(() => tx.query(statement)),
    hot: ({ text }, values) => guard(() => tx.query({ text, values })),
    transaction: (run) => guard(() => run(tx)),
    close: async () => {},
  };
}
