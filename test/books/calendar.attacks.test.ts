import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { flushCalls } from '../../src/api-keys/guesses.ts';
import { BATCH_JOBS } from '../../src/batches/fill.ts';
import { SCHEDULE } from '../../src/cli/work.ts';
import { createService } from '../../src/context.ts';
import { isLockTimeout } from '../../src/db/errors.ts';
import { migrate } from '../../src/db/migrate.ts';
import { openOwner, type Queries } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { groupOf } from '../../src/jobs/jobs.ts';
import { orLater, type Scheduled, startJobs } from '../../src/jobs/queue.ts';
import { createLogger } from '../../src/log.ts';
import { JOB_RUNS } from '../../src/operations/background.ts';
import { resealAll } from '../../src/rotation/reseal.ts';
import { flushDeclines } from '../../src/vouchers/declines.ts';
import { DIALECTS } from '../support/dialects.ts';
import { until } from '../support/until.ts';
import { Hooked } from '../support/webhooks.ts';

/** Work that runs by the calendar or by a timer, between a long reader and tills. */

/** All of it: the schedule, what each worker repeats, what each process writes, and what a start does. */
const TIMED: Readonly<Record<string, Scheduled['run']>> = {
  ...Object.fromEntries(Object.entries(SCHEDULE).map(([name, { run }]) => [name, run])),
  flushDeclines,
  flushCalls,
  async jobs(service) {
    await startJobs(service, [BATCH_JOBS, groupOf(JOB_RUNS)], SCHEDULE).stop();
  },
  async reseal(service) {
    await resealAll(service, () => false);
  },
  async migrate({ db }) {
    await migrate(db.url);
  },
};

/** A transaction that has read every table, as a dump or a reconciliation does. */
async function openReader(url: string): Promise<Queries & { close(): Promise<void> }> {
  const reader = await openOwner(url);
  await reader.query(sql`begin isolation level repeatable read`);
  const tables = await reader.query<{ name: string }>(sql`
select c.oid::regclass::text as name from pg_class c
where c.relnamespace = 'scrip'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`);
  for (const { name } of tables) await reader.query({ text: `select count(*) from ${name}`, values: [] });
  return reader;
}

test('no work by the calendar refuses a redemption on the first of a month beside a long reader', async (t) => {
  const hooked = await Hooked.open(t);
  const { till, service } = hooked;
  const { clock, url } = till.testService;
  // A redemption also reads and writes the tables of webhooks.
  await hooked.add(t, ['voucher.redeemed']);
  const [card] = await till.vouchers(1);
  assert.ok(card);
  const now = clock.now();
  const later = (months: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 1, 0, 5);
  const dialect = DIALECTS[0] ?? assert.fail();
  for (const [name, run] of Object.entries(TIMED)) {
    // By then partitions are missing, and there are some to drop.
    clock.set(new Date(later(5)));
    const reader = await openReader(url);
    let isRunning = true;
    const worked = run(service, () => false)
      .catch((error: unknown) => assert.ok(isLockTimeout(error), `${name}: ${error}`))
      .finally(() => {
        isRunning = false;
      });
    for (let sale = 0; sale < 3 || isRunning; sale++) {
      await till.done(dialect.redeem(card, 0.01, `${name} ${sale}`));
      await sleep(10);
    }
    await worked;
    await reader.close();
    // Without the reader it succeeds, once no sender of events holds a lock for a moment.
    await until(`${name} succeeds`, async () => {
      try {
        await run(service, () => false);
        return true;
      } catch (error) {
        assert.ok(isLockTimeout(error), `${name}: ${error}`);
        return false;
      }
    });
  }
  const [row] = await service.db.query<{ missing: number; old: number }>(sql`
select (
    -- Rows of the first month had to go to the default partitions.
    select count(*)::int from missing_partitions(${clock.now()}, ${clock.now()}) where month > ${clock.now()}
  ) as missing,
  (select count(*)::int from old_partitions('webhook_deliveries', ${new Date(later(1))})) as old`);
  assert.deepEqual(row, { missing: 0, old: 0 });
});

test('every function that changes the schema gives up a lock after 200 ms', async (t) => {
  const hooked = await Hooked.open(t);
  const functions = await hooked.service.db.query<{ name: string; limit: string | null }>(sql`
select p.proname as name, (
    select split_part(s, '=', 2) from unnest(p.proconfig) s where s like 'lock_timeout=%'
  ) as "limit"
from pg_proc p
where p.pronamespace = 'scrip'::regnamespace
  and p.prosrc ~* '\\m(create|alter|drop|truncate|lock|refresh|reindex|cluster)\\s+(table|index|view|schema|%)'
order by 1`);
  assert.deepEqual(functions, [
    { name: 'create_partition', limit: '200ms' },
    { name: 'drop_old_declines', limit: '200ms' },
    { name: 'drop_old_deliveries', limit: '200ms' },
    { name: 'move_partition', limit: '200ms' },
  ]);
});

test('scheduled work that did not get a lock is tried again, which is logged once', async (t) => {
  const { service } = await Hooked.open(t);
  const lines: string[] = [];
  const log = createLogger('warn', { write: (line) => void lines.push(line) });
  let outcome: Error | undefined = Object.assign(new Error('timeout'), { code: '55P03' });
  const run = async () => {
    if (outcome) throw outcome;
  };
  const task = orLater('create-partitions', { run });
  const runTask = () => task(createService({ ...service, log }), () => false);
  await runTask();
  await runTask();
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /create-partitions/);
  outcome = undefined;
  await runTask();
  outcome = new Error('a bug');
  await runTask();
  assert.equal(lines.length, 2);
  assert.match(lines[1] ?? '', /a bug/);
});
