import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openService } from '../../src/cli/open.ts';
import { readConfig } from '../../src/config.ts';
import { createPartitions } from '../../src/db/partitions.ts';
import { sql } from '../../src/db/sql.ts';
import { idFloor } from '../../src/ledger/id.ts';
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

test('the smallest id of a time is the same in the database, and is known to the planner', async (t) => {
  const { service, stop } = await startTestService();
  t.after(stop);
  const { db } = service;
  const minute = 60_000;
  for (const at of ['1969-12-31T23:59:00.000Z', '2026-03-01T00:00:00.123Z', '2199-01-01T00:00:00.999Z'])
    for (const minutes of [0, -30, 120]) {
      const time = new Date(at);
      const [row] = await db.query<{ id: string }>(
        sql`select id_floor(${time}, ${minutes} * interval '1 minute') as id`,
      );
      assert.equal(
        row?.id,
        idFloor(new Date(time.getTime() + minutes * minute)),
        `${at}, ${minutes} minutes`,
      );
    }
  const plan = await db.query<Record<string, string>>(
    sql`explain select from journal where id >= id_floor('2026-03-01T00:00:00Z', '-30 minutes')`,
  );
  assert.match(JSON.stringify(plan), /id >= '[0-9a-f]{8}-[0-9a-f]{4}-7000-8000-0{12}'/);
});
