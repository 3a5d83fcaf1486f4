import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database } from '../../src/db/pool.ts';
import { newRingKey, readKeyRing } from '../../src/keyring/file.ts';
import { createLogger } from '../../src/log.ts';
import { Readiness } from '../../src/monitor/readiness.ts';
import { Refusal } from '../../src/refusal.ts';
import { DIALECTS } from '../support/dialects.ts';
import { Till } from '../support/till.ts';
import { startBehindWay } from '../support/way.ts';

const [A] = DIALECTS;

type Line = { level: number; msg: string; cause?: string; state?: string; error?: string; refused?: number };

/** A readiness of its own, with the lines that it logs. */
function observed(hot: Database['hot']) {
  const lines: Line[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line) as Line) });
  let nowMs = 0;
  const readiness = new Readiness(log, undefined, () => nowMs);
  const query = async () => [];
  const keys = readKeyRing(newRingKey(), 'the test');
  const checked = { db: { hot, query }, clock: () => new Date(), keys };
  return {
    lines,
    readiness,
    pass(ms: number) {
      nowMs += ms;
    },
    check: () => readiness.check(checked),
    gauge: () => readiness.gauge(checked),
  };
}

const failing = (error: object) => async () => {
  throw Object.assign(new Error('refused'), error);
};

test('the cause of an outage is logged when it begins, and its end when calls are served again', async () => {
  let hot: Database['hot'] = failing({ code: '53300' });
  const { check, pass, lines } = observed((...args) => hot(...args));
  for (let call = 0; call < 3; call++) assert.equal(await check(), 'connections');
  assert.deepEqual(
    lines.map(({ level, cause, state }) => [level, cause, state]),
    [[40, 'connections', '53300']],
  );
  hot = (async () => [{ writable: true }]) as never;
  assert.equal(await check(), undefined);
  // A single success does not end an outage.
  assert.equal(lines.length, 1);
  pass(2_100);
  assert.equal(await check(), undefined);
  assert.deepEqual(
    lines.slice(1).map(({ level, msg, cause, refused }) => [level, msg, cause, refused]),
    [[30, 'calls are served again', 'connections', 3]],
  );
});

test('each cause is named, and system errors with their message', async () => {
  for (const [error, cause, message] of [
    [{ code: '53100', message: 'No space left on device' }, 'disk-full', 'No space left on device'],
    [{ code: '28P01', message: 'password authentication failed for user "x"' }, 'credentials', undefined],
    [{ code: '25006' }, 'read-only', undefined],
    [{ code: 'SC001' }, 'clock', undefined],
    [{ code: 'SC002' }, 'clock', undefined],
    [{ code: 'EKEYMISSING' }, 'key-missing', undefined],
    [{ code: '57014', message: 'statement timeout' }, 'slow', 'statement timeout'],
    [{ code: 'EPOOLEXHAUSTED' }, 'slow', undefined],
    [{ code: '53300', message: 'too many clients' }, 'connections', 'too many clients'],
    [{ code: '53200', message: 'out of memory' }, 'resources', 'out of memory'],
    [{ code: '58030', message: 'could not read block' }, 'storage', 'could not read block'],
    [{ code: '3D000' }, 'credentials', undefined],
    [{ code: 'CERT_HAS_EXPIRED' }, 'tls', undefined],
    [{ code: '55000', severity: 'FATAL' }, 'credentials', undefined],
    [{ code: '42501', severity: 'FATAL' }, 'credentials', undefined],
    [{ code: 'ECONNREFUSED' }, 'database-away', undefined],
  ] as const) {
    const { check, gauge, lines } = observed(failing(error));
    assert.equal(await check(), cause);
    assert.deepEqual([lines.length, lines[0]?.cause, lines[0]?.error], [1, cause, message]);
    assert.match(lines[0]?.msg ?? '', /^calls are refused \(91\): .{20}/);
    assert.equal((await gauge())[cause], 0);
  }
});

test('a schema that the process cannot use is logged, although calls get 96', async () => {
  for (const code of ['42501', '42883', '3F000']) {
    const { check, lines } = observed(failing({ code }));
    assert.equal(await check(), 'schema');
    assert.match(lines[0]?.msg ?? '', /^calls fail \(96\): /);
  }
});

test('a database that takes no writes is logged, although no call was refused', async () => {
  const { check, lines } = observed((async () => [{ writable: false }]) as never);
  assert.equal(await check(), 'read-only');
  assert.equal(lines[0]?.cause, 'read-only');
});

const OF_TILL = { isOfTill: true };

test('a process is not ready for a while after bookings met what its check does not', async () => {
  for (const [code, cause] of [
    ['53100', 'disk-full'],
    ['53200', 'resources'],
    ['58030', 'storage'],
    ['55P03', 'slow'],
  ] as const) {
    const { check, pass, readiness, lines } = observed((async () => [{ writable: true }]) as never);
    const error = Object.assign(new Error('refused'), { code });
    // A report, for example, shows nothing about tills.
    readiness.refused(error);
    assert.equal(await check(), undefined);
    readiness.refused(error, OF_TILL);
    assert.equal(await check(), cause);
    pass(4_900);
    // The outage has not ended: nothing was booked.
    readiness.served();
    assert.deepEqual([await check(), lines.length], [cause, 1]);
    // Bookings are tried again, even if no other call would show that they succeed.
    pass(200);
    assert.deepEqual([await check(), lines.length], [undefined, 1]);
    readiness.booked();
    assert.equal(await check(), undefined);
    assert.deepEqual([lines.length, lines[1]?.cause, lines[1]?.msg], [2, cause, 'calls are served again']);
  }
});

test('a process stays ready while some bookings are refused and others succeed', async () => {
  const { check, pass, readiness } = observed((async () => [{ writable: true }]) as never);
  readiness.booked();
  pass(900);
  readiness.refused(Object.assign(new Error('a lock'), { code: '55P03' }), OF_TILL);
  assert.equal(await check(), undefined);
  pass(200);
  assert.equal(await check(), 'slow');
});

test('causes that alternate log one line each, and overload is one of them', () => {
  const { readiness, lines } = observed(failing({}));
  for (let call = 0; call < 5; call++) {
    readiness.refused(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
    readiness.refused(Object.assign(new Error('busy'), { code: 'EPOOLEXHAUSTED' }));
    readiness.refused(new Refusal('91'));
    readiness.refused(new Refusal('55'));
  }
  assert.deepEqual(
    lines.map(({ level, cause }) => [level, cause]),
    [
      [40, 'database-away'],
      [40, 'slow'],
      [40, 'overload'],
    ],
  );
});

test('a bug is no outage', () => {
  const { readiness, lines } = observed(failing({}));
  readiness.refused(new TypeError('x is not a function'));
  readiness.refused(Object.assign(new Error('division by zero'), { code: '22012' }));
  assert.deepEqual(lines, []);
});

test('calls that are refused without a database log one line', async (t) => {
  const { testService, way, db } = await startBehindWay(t);
  const lines: Line[] = [];
  const log = createLogger('warn', { write: (line) => void lines.push(JSON.parse(line) as Line) });
  const { service } = testService;
  const readiness = new Readiness(log);
  const { buildServer } = await import('../../src/http/server.ts');
  const app = buildServer({ ...service, db, readiness });
  t.after(() => app.close());
  const till = await Till.another(testService as never);
  way.set('closed');
  const { method, path, body } = A.balance({ code: '482913057641', pin: '0000', serialNumber: 1 });
  for (let call = 0; call < 5; call++) {
    const answer = await app.inject({
      method: method as 'POST',
      url: path,
      headers: { authorization: till.merchant.authorization },
      payload: body as object,
    });
    assert.equal(answer.statusCode, 503);
  }
  assert.deepEqual(
    lines.map(({ level, cause }) => [level, cause]),
    [[40, 'database-away']],
  );
});
