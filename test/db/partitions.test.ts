import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openService } from '../../src/cli/open.ts';
import { readConfig } from '../../src/config.ts';
import { createPartitions } from '../../src/db/partitions.ts';
import { sql } from '../../src/db/sql.ts';
import { createLogger } from '../../src/log.ts';
import { startTestService, type TestService } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';

const PARENTS = ['declines', 'journal', 'webhook_attempts', 'webhook_deliveries'];

/** The months of each partitioned table, and its default partition. */
function listPartitions({ service }: TestService) {
  return service.db.query<{ name: string; parts: string[] }>(sql`
select p.relname as name, array_agg(substr(c.relname, length(p.relname) + 2) order by c.relname) as parts
from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
where p.relkind = 'p' and p.relnamespace = 'scrip'::regnamespace group by p.relname order by p.relname`);
}

/** The months from that of a time to one some months later, as in names of partitions. */
function monthsFrom(time: Date, quantity: number): string[] {
  return Array.from({ length: quantity }, (_, index) =>
    new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + index))
      .toISOString()
      .slice(0, 7)
      .replace('-', '_'),
  );
}

test('this month and the next three have partitions, which maintenance continues', async (t) => {
  const tested = await startTestService();
  t.after(tested.stop);
  const expect = (parts: string[]) => PARENTS.map((name) => ({ name, parts: [...parts, 'default'] }));
  const { clock } = tested;
  const start = clock.now();
  assert.deepEqual(await listPartitions(tested), expect(monthsFrom(start, 4)));

  clock.set(new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 2, 28, 23, 59, 59)));
  assert.equal(await createPartitions(tested.service.db, clock.now(), clock.now()), 8);
  assert.deepEqual(await listPartitions(tested), expect(monthsFrom(start, 6)));
});

test('a service creates the partitions that are missing after a long absence before it starts', async (t) => {
  const tested = await startTestService();
  t.after(tested.stop);
  const months = monthsFrom(new Date(), 4);
  for (const parent of PARENTS) await asOwner(tested.url, `drop table scrip.${parent}_${months[0]}`);
  const config = readConfig({ SCRIP_DATABASE_URL: tested.url, SCRIP_KEYS: tested.keys });
  const log = createLogger('silent');
  const { close } = await openService(config, { name: 'scrip-test', create: true, log, isService: true });
  await close();
  const parts = [...months, 'default'];
  assert.deepEqual(
    await listPartitions(tested),
    PARENTS.map((name) => ({ name, parts })),
  );
});
