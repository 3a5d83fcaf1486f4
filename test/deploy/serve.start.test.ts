import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../../soak/process.ts';
import { misspelledSettings, passedSocket } from '../../src/config.ts';
import { sql } from '../../src/db/sql.ts';
import { startTestService } from '../support/harness.ts';
import { ownerOf } from '../support/owner.ts';
import { startScrip } from '../support/scrip.ts';
import { until } from '../support/until.ts';
import { openWay } from '../support/way.ts';

/** The last query of a start, which looks for a merchant, waits for the lock of the test. */
const endWaiting = sql`
  select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
  where d.datname = current_database() and l.relation = 'scrip.merchants'::regclass and not l.granted`;

test('the program is compiled once: the next command loads no compiler of TypeScript', async () => {
  const command = fileURLToPath(new URL('../../bin/scrip.cjs', import.meta.url));
  const env = { PATH: process.env['PATH'], NODE_DEBUG_NATIVE: 'COMPILE_CACHE' };
  const scrip = () =>
    promisify(execFile)(command, ['--version'], { env, maxBuffer: Number.POSITIVE_INFINITY });
  await scrip();
  const { stdout, stderr } = await scrip();
  const asked = [
    ...`${stdout}${stderr}`.matchAll(/retrieving transpile cache for .*?\/(\w+)\.ts\.\.\.(\w+)/g),
  ];
  assert.ok(asked.some(([, name]) => name === 'main'));
  for (const [line, , outcome] of asked) assert.equal(outcome, 'success', line);
});

test('one socket can be passed, to the process that the environment names', () => {
  const env = { LISTEN_PID: '7', LISTEN_FDS: '1' };
  assert.equal(passedSocket(7, env), 3);
  assert.equal(passedSocket(8, env), undefined);
  assert.equal(passedSocket(7, {}), undefined);
  assert.throws(() => passedSocket(7, { ...env, LISTEN_FDS: '2' }), /2 sockets were passed: name one/);
});

test('a misspelled setting is found, and what is no setting of Scrip at all is left alone', () => {
  const env = { SCRIP_PROT: '1', SCRIP_ARCHIV_DIR: 'x', SCRIP_KEY: 'x', SCRIP_PORT: '1', SCRIP_SECRET: 'x' };
  assert.deepEqual(misspelledSettings(env), [
    ['SCRIP_PROT', 'SCRIP_PORT'],
    ['SCRIP_ARCHIV_DIR', 'SCRIP_ARCHIVE_DIR'],
    ['SCRIP_KEY', 'SCRIP_KEYS'],
  ]);
});

test('a start that loses the database after its workers have started ends the process', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const owner = await ownerOf(t, testService.url);
  await owner.query(sql`begin`);
  await owner.query(sql`lock table scrip.merchants in access exclusive mode`);
  const settings = {
    SCRIP_DATABASE_URL: testService.url,
    SCRIP_KEYS: testService.keys,
    SCRIP_DATA_DIR: tmpdir(),
    SCRIP_PORT: String(await freePort()),
    SCRIP_METRICS_PORT: String(await freePort()),
    SCRIP_LOG_LEVEL: 'silent',
  };
  const { child, ended } = startScrip(settings, ['serve', '--processes', '1']);
  t.after(() => child.kill('SIGKILL'));
  await until('the start waits for the lock', async () => (await owner.query(endWaiting)).length > 0);
  const { status, err } = await ended;
  assert.deepEqual([status > 0, err.split('\n').length], [true, 2], err);
});

test('a service that is stopped while its database hangs ends', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const way = await openWay(testService.url);
  t.after(way.close);
  const settings = {
    SCRIP_DATABASE_URL: way.url,
    SCRIP_KEYS: testService.keys,
    SCRIP_DATA_DIR: tmpdir(),
    SCRIP_PORT: String(await freePort()),
  };
  const { child, printed, ended } = startScrip(settings, ['serve', '--processes', '1']);
  t.after(() => child.kill('SIGKILL'));
  await until('the service serves', () => printed.err.includes('"serving"'));
  way.set('lost');
  child.kill('SIGTERM');
  assert.equal((await ended).status, 0);
});
