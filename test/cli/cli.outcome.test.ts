import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { Operator } from '../support/operator.ts';
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
  // The commit of a top-up waits for this lock.
  await owner.query({
    text: `create function scrip.wait() returns trigger language plpgsql as $$
begin perform pg_advisory_xact_lock(42); return null; end $$;
create constraint trigger wait after insert on scrip.journal deferrable initially deferred
for each row when (new.kind = 'TOP_UP') execute function scrip.wait()`,
    values: [],
  });
});

beforeEach(async () => {
  merchantId = (await operator.json`merchant create --name Kiosk`).id;
  await owner.query(sql`select pg_advisory_lock(42)`);
});

after(async () => {
  way?.close();
  await owner?.close();
});

const release = () => owner.query(sql`select pg_advisory_unlock(42)`);

/** Starts a top-up, and returns when its commit waits. */
async function startTopUp(...args: string[]) {
  const running = operator.start`float top-up --merchant ${merchantId} --amount 5 ${args}`;
  const waits = sql`select from pg_locks where locktype = 'advisory' and objid = 42 and not granted`;
  await until('the commit waits', async () => (await owner.query(waits)).length > 0);
  return running;
}

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
    // Within half a second two signals count as one (stop.ts).
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
