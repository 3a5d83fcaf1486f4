import type { Service } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { newRingKey } from '../../src/keyring/file.ts';
import { asOperator, type ListeningService, testService } from './harness.ts';
import type { Scope } from './scope.ts';
import { Till } from './till.ts';

/** A progress callback that continues the work. */
export const goOn = () => false;

/** A till on a fresh database, and another process with a new key. */
export async function openBoth(t: Scope, wanted?: Parameters<typeof Till.open>[1]) {
  const till = await Till.open(t, wanted);
  const keys = `${newRingKey()},${till.testService.keys}`;
  const given = await testService(t, { ...till.testService, keys });
  const ids = keys.split(',').map((entry) => entry.slice(0, entry.indexOf(':')));
  return { till, given, keys, ids, operator: asOperator(given.service), elsewhere: at(till, given) };
}

/** The same merchant at another process. */
export function at(till: Till, listening: ListeningService): Till {
  return Object.assign(Object.create(Till.prototype), till, { testService: listening });
}

export async function wrongPins(service: Service): Promise<bigint> {
  const [row] = await service.db.query<{ sum: bigint }>(
    sql`select coalesce(sum(wrong_pins), 0)::bigint as sum from vouchers`,
  );
  return row?.sum ?? 0n;
}
