import { sqlState } from './errors.ts';
import type { Database, Transaction } from './pool.ts';

/**
 * A database seen from within a transaction: whatever runs on it is a part of that transaction, and is
 * rolled back with it. What fails in the transaction fails for good: a retry inside of it gets the first
 * error, so that the whole transaction is run again.
 */
export function within(db: Database, tx: Transaction): Database {
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
