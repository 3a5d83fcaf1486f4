import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwner } from '../../src/db/pool.ts';
import { raw, sql } from '../../src/db/sql.ts';
import { Operator } from '../support/operator.ts';
import { type CommandLine, startScrip, typed } from '../support/scrip.ts';
import { until } from '../support/until.ts';
import { openWay, type Way } from '../support/way.ts';

/** Commands that are interrupted, or lose the database, while their change is committed. */

type Owner = Awaited<ReturnType<typeof openOwner>>;

const beside = Operator.ofTests();
let operator: Operator;
let way: Way;
let owner: Owner;
let merchantId: string;

before(async () => {
  way = await openWay(beside.testService.url);
  operator = Operator.at(beside.testService, { SCRIP_DATABASE_URL: way.url });
  owner = await openOwner(beside.testService.url);
  // The commits of a top-up and of the record of an export wait for this lock.
  await owner.query(
    raw(`create function scrip.wait() returns trigger language plpgsql as $$
begin perform pg_advisory_xact_lock(42); return null; end $$;
create constraint trigger wait after insert on scrip.journal deferrable initially deferred
for each row when (new.kind = 'TOP_UP') execute function scrip.wait();
create constraint trigger wait after insert on scrip.batch_exports deferrable initially deferred
for each row execute function scrip.wait()`),
  );
});

beforeEach(async () => {
  merchantId = (await operator.json`merchant create --name Kiosk`).id;
  await hold();
});

after(async () => {
  way?.close();
  await owner?.close();
});

const hold = () => owner.query(sql`select pg_advisory_lock(42)`);
const release = () => owner.query(sql`select pg_advisory_unlock(42)`);

/** Starts a command, and returns when its commit waits. */
async function startWaiting(...line: CommandLine) {
  const running = operator.start(...line);
  const waits = sql`select from pg_locks where locktype = 'advisory' and objid = 42 and not granted`;
  await until('the commit waits', async () => (await owner.query(waits)).length > 0);
  return running;
}

const startTopUp = (...args: string[]) =>
  startWaiting`float top-up --merchant ${merchantId} --amount 5 ${args}`;

async function booked(): Promise<number> {
  const rows = await owner.query(
    sql`select from scrip.journal where kind = 'TOP_UP' and merchant_id = ${Number(merchantId)}`,
  );
  return rows.length;
}

describe('a change that is being committed', () => {
  test('is reported as done after a Ctrl-C, which waits for it', async () => {
    const { child, ended } = await startTopUp('--json');
    child.kill('SIGINT');
    await release();
    const { status, out, err } = await ended;
    assert.deepEqual([status, JSON.parse(out).balance, err], [0, 5, '']);
    assert.equal(await booked(), 1);
  });

  test('is reported as unknown after a second Ctrl-C, which does not wait', async () => {
    const { child, ended } = await startTopUp();
    child.kill('SIGINT');
    // Within half a second two signals count as one (processes.ts).
    await sleep(1_000);
    child.kill('SIGINT');
    const { status, out, err } = await ended;
    assert.deepEqual([status, out], [3, '']);
    assert.match(
      err,
      /^scrip: unknown whether the change was made, since .*interrupted: `scrip audit list` shows/,
    );
    await release();
  });

  test('is reported as unknown if the connection is lost, even if it was committed', async () => {
    const { ended } = await startTopUp('--json');
    way.set('silent');
    await release();
    await until('the top-up is booked', async () => (await booked()) === 1);
    way.cut();
    const { status, out, err } = await ended;
    way.set('open');
    assert.deepEqual([status, out], [3, '']);
    const { error } = JSON.parse(err);
    assert.equal(error.code, 'unknown');
    assert.match(error.message, /the connection to the database was lost: `scrip audit list` shows/);
    assert.equal((await operator.json`float show --merchant ${merchantId}`)[0].balance, 5);
  });

  test('is reported as unknown also if it is the record of an export', async () => {
    await release();
    await operator.json`float top-up --merchant ${merchantId} --amount 5`;
    const order = typed`batch generate --merchant ${merchantId} --quantity 1 --value 1`;
    const { transactionId } = await operator.json(...order);
    await hold();
    const { ended } = await startWaiting`batch export ${transactionId} --format csv`;
    way.set('silent');
    await release();
    const exports = sql`select from scrip.batch_exports`;
    await until('the export is recorded', async () => (await owner.query(exports)).length === 1);
    way.cut();
    const { status, out, err } = await ended;
    way.set('open');
    assert.deepEqual([status, out], [3, '']);
    assert.match(err, /the connection to the database was lost: `scrip batch exports` shows the exports\n$/);
  });
});

test('an error of the database is told in words: damage as such, and any other as a bug', async () => {
  await release();
  const breaks = (state: string) =>
    raw(`create or replace function scrip.break() returns trigger
language plpgsql as $$ begin raise exception 'broken' using errcode = '${state}'; end $$`);
  await owner.query(breaks('XX001'));
  await owner.query(
    raw('create trigger break before insert on scrip.merchants for each row execute function scrip.break()'),
  );
  const create = typed`merchant create --name Broken --json`;
  const damaged = await operator.fails(
    /^the database is damaged \(docs\/how-to\/disaster\.md\): broken$/,
    ...create,
  );
  assert.deepEqual(damaged, { status: 1, code: 'failed' });
  await owner.query(breaks('22012'));
  assert.deepEqual(await operator.fails(/^error: broken\n/, ...create), { status: 6, code: 'internal' });
  await owner.query(raw('drop trigger break on scrip.merchants'));
});

test('a command that cannot reach the database changes nothing, and reports it as unavailable', async () => {
  await release();
  way.set('closed');
  const topUp = ['float', 'top-up', '--merchant', merchantId, '--amount', '5', '--json'];
  const { status, code } = await operator.fails(/cannot be reached/, ...topUp);
  way.set('open');
  assert.deepEqual([status, code], [4, 'unavailable']);
  assert.equal(await booked(), 0);
});

test('a signal before a command listens ends it as interrupted, and not by the signal', async () => {
  await release();
  // Sent as soon as the program listens; the timer makes it live to hear it, however fast the command is.
  const early = `process.on('newListener', function once(name) {
    if (name !== 'SIGTERM') return;
    process.off('newListener', once);
    setTimeout(() => {}, 60_000);
    setImmediate(() => process.kill(process.pid, name));
  })`;
  const settings = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(early)}` };
  const { status, err } = await startScrip(settings, ['completion', 'bash']).ended;
  assert.deepEqual([status, err], [130, 'scrip: interrupted: nothing was changed\n']);
});
