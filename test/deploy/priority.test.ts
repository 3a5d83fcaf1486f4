import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { makeRowsAside } from '../../src/batches/rows.worker.ts';
import { examine } from '../../src/monitor/doctor.ts';
import { DIALECTS, type Dialect } from '../support/dialects.ts';
import { DEPLOYMENT } from '../support/doctor.ts';
import { asOwner } from '../support/owner.ts';
import { startScrip } from '../support/scrip.ts';
import { Till } from '../support/till.ts';
import { until } from '../support/until.ts';

const [A] = DIALECTS as [Dialect, Dialect];

/** Runs a command with a low priority, which it may not raise: root gives up its right to. */
const NICE = [
  ...(process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-sys_nice'] : []),
  ...['nice', '-n', '15'],
];

/** More than are made without a thread. */
const QUANTITY = 600;

test('a batch is produced by a process with a lower priority than that of its thread', async (t) => {
  const till = await Till.open(t);
  await till.done(A.generate('nice', QUANTITY, 1));
  const { url, keys } = till.testService;
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_KEYS: keys, SCRIP_DATA_DIR: tmpdir() };
  const { child, ended } = startScrip(settings, ['work'], NICE);
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  await until('the batch has ended', async () => {
    const { status } = (await till.done(A.download('nice'))).data;
    assert.notEqual(status, 'CANCELED');
    assert.equal(child.exitCode, null);
    return status === 'COMPLETED';
  });
});

test('vouchers are made without a thread if none can be started', async (t) => {
  const { service } = (await Till.open(t)).testService;
  // Functions cannot be passed to a thread.
  const keys = Object.assign(service.keys, { share: () => [[() => {}], new Uint8Array()] as never });
  const wanted = { numbers: [156250001n, 156250002n], buckets: [0], now: new Date() };
  const { count, keyId } = await makeRowsAside({ keys, log: service.log }, wanted);
  assert.deepEqual([count, keyId], [2, keys.current]);
});

test('the doctor reports batches that a failure canceled', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  const find = async () => {
    const findings = await examine(DEPLOYMENT, service.db);
    return findings.find(({ check }) => check === 'batches');
  };
  const { data } = await till.done(A.generate('failed', QUANTITY, 1));
  const fail = (endedAt: string) =>
    asOwner(
      till.testService.url,
      `update scrip.batches set status = 'CANCELED', failure = 'a test', ended_at = ${endedAt}`,
    );
  await fail("now() - interval '25 hours'");
  assert.equal((await find())?.state, 'ok');
  await fail('now()');
  const found = await find();
  assert.equal(found?.state, 'failure');
  assert.match(found?.found ?? '', /1 canceled by a failure in the last day/);
  assert.ok(found?.advice?.includes(data.transactionId));
});
