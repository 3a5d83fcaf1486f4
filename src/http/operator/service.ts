import { createService, type Service } from '../../context.ts';
import { openDatabase, openReader } from '../../db/pool.ts';

/**
 * The connections that operators' requests share: no list or report of theirs takes one from a till. Few,
 * since what they read at once takes the cores of the database from tills. Reports take one of them in turns
 * (src/operator/turns.ts), so that what is quick does not wait for them.
 */
const POOL_SIZE = 3;

/**
 * The service as operators' requests use it: on connections of its own. Nothing connects before the first
 * statement.
 */
export function openOperatorService(service: Service): { service: Service; close(): Promise<void> } {
  const db = openDatabase(service.db.url, 'scrip-operator', { size: POOL_SIZE });
  const readDb =
    service.readDb === service.db ? db : openReader(service.readDb.url, 'scrip-operator', POOL_SIZE);
  return {
    service: createService({ ...service, db, readDb }),
    async close() {
      await Promise.all([db.close(), ...(readDb === db ? [] : [readDb.close()])]);
    },
  };
}
