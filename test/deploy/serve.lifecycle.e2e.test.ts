import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { STATUS } from '../../src/cli/output.ts';
import { openOwner } from '../../src/db/pool.ts';
import { ENVIRONMENT, MAIN } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** The service as an operator runs it: one process that is started and stopped. */

type Scrip = {
  readonly process: ChildProcess;
  readonly out: () => string;
  readonly err: () => string;
  /** Its exit status. */
  readonly ended: Promise<number | null>;
};

/** Settings of a test: a data folder and a port of its own, and nothing from outside. */
type Settings = { readonly [name: string]: string } & { readonly SCRIP_DATA_DIR: string };

async function ownSettings(t: TestContext): Promise<Settings> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-serve-'));
  // If root cannot make user namespaces, the database has an account of its own, which needs the folder.
  await chmod(folder, 0o755);
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return { ...ENVIRONMENT, SCRIP_DATA_DIR: join(folder, 'data'), SCRIP_PORT: '0' };
}

function scrip(t: TestContext, settings: Settings, ...args: string[]): Scrip {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: settings,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  const ended = once(child, 'close').then(([status]) => status as number | null);
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  return { process: child, out: () => out, err: () => err, ended };
}

/** Starts the service. @returns its address once it has printed it */
async function serve(
  t: TestContext,
  settings: Settings,
  ...args: string[]
): Promise<Scrip & { baseUrl: string }> {
  const service = scrip(t, settings, 'serve', ...args);
  await until(
    'the service has started or ended',
    () => service.out().endsWith('\n\n') || service.process.exitCode !== null,
  );
  const [, baseUrl] = /^Scrip serves (\S+)$/m.exec(service.out()) ?? [];
  assert.ok(baseUrl, service.err());
  return { ...service, baseUrl };
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const runsDatabase = ({ SCRIP_DATA_DIR }: Settings) =>
  exists(join(SCRIP_DATA_DIR, 'postgres', 'postmaster.pid'));

/** Expects a start to fail with one line that gives the reason. */
async function refused(
  t: TestContext,
  settings: Settings,
  reason: RegExp,
  status: number = STATUS.notStarted,
): Promise<void> {
  const service = scrip(t, settings, 'serve');
  assert.equal(await service.ended, status);
  assert.equal(service.out(), '');
  assert.match(service.err(), /^scrip: [^\n]+\n$/);
  assert.match(service.err(), reason);
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} finishes accepted requests, and ends the service with status 0`, async (t) => {
    const settings = await ownSettings(t);
    const service = await serve(t, settings);
    const slow = request(`${service.baseUrl}/api/v2/balance`, {
      method: 'POST',
      headers: { 'content-length': 2, 'content-type': 'application/json' },
    });
    slow.write('{');
    await fetch(`${service.baseUrl}/healthz`);
    const answer = once(slow, 'response');
    service.process.kill(signal);
    await until('the service is stopping', () => service.err().includes('stopping'));
    slow.end('}');
    const [{ statusCode }] = await answer;
    assert.equal(statusCode, 401);
    assert.equal(await service.ended, 0);
    assert.ok(!(await runsDatabase(settings)));
  });
}

/** Sends the balance enquiry that the demo has printed. */
async function demoBalance(printed: string, baseUrl: string): Promise<unknown> {
  const [, credentials = ''] = /curl -u (\S+)/.exec(printed) ?? [];
  const [, body] = /\/api\/v2\/balance .* -d '([^']+)'/.exec(printed) ?? [];
  const headers = { authorization: `Basic ${btoa(credentials)}`, 'content-type': 'application/json' };
  const response = await fetch(`${baseUrl}/api/v2/balance`, { method: 'POST', headers, body: body ?? '' });
  return response.json();
}

test('a second start of a demo has the same merchant and the same data', async (t) => {
  const settings = await ownSettings(t);
  const first = await serve(t, settings, '--demo');
  const before = (await demoBalance(first.out(), first.baseUrl)) as { statusCode: string };
  assert.equal(before.statusCode, '00');
  first.process.kill('SIGTERM');
  assert.equal(await first.ended, 0);
  const second = await serve(t, settings, '--demo');
  const [key] = /key \S+, secret \S+/.exec(first.out()) ?? [''];
  assert.ok(second.out().includes(key));
  // The links of its people come last.
  assert.match(
    second.out(),
    /\n {2}Owner of Corner Kiosk, portal +http:\/\/localhost:\d+\/portal\/sign-in#\S+\n+$/,
  );
  assert.deepEqual(await demoBalance(first.out(), second.baseUrl), before);
});

test('a Ctrl-C at any moment of the start leaves nothing running', async (t) => {
  for (const sign of ['.', 'postgres.log', 'keys']) {
    const settings = await ownSettings(t);
    const service = scrip(t, settings, 'serve');
    await until(
      `${sign} is there`,
      async () => service.process.exitCode !== null || (await exists(join(settings.SCRIP_DATA_DIR, sign))),
    );
    service.process.kill('SIGINT');
    assert.equal(await service.ended, 0, service.err());
    assert.ok(!(await runsDatabase(settings)));
  }
});

test('commands work beside a service and without one, and stop only what they started', async (t) => {
  const settings = await ownSettings(t);
  assert.equal(await scrip(t, settings, 'migrate').ended, 0);
  const before = scrip(t, settings, 'merchant', 'create', '--name', 'Before', '--json');
  assert.equal(await before.ended, 0, before.err());
  assert.ok(!(await runsDatabase(settings)));
  const service = await serve(t, settings, '--no-work');
  const beside = scrip(t, settings, 'merchant', 'list', '--json');
  const url = scrip(t, settings, 'db', 'url');
  assert.deepEqual(await Promise.all([beside.ended, url.ended]), [0, 0]);
  assert.deepEqual(
    JSON.parse(beside.out()).map(({ name }: { name: string }) => name),
    ['Before'],
  );
  assert.equal((await fetch(`${service.baseUrl}/readyz`)).status, 200);
  const connection = await openOwner(url.out().trim());
  await connection.query({ text: 'select 1', values: [] }).finally(() => connection.close());
  service.process.kill('SIGTERM');
  assert.equal(await service.ended, 0);
  const after = scrip(t, settings, 'db', 'url');
  assert.equal(await after.ended, 0);
  assert.equal(after.out(), url.out());
});

test('a database that is killed is started again by the running service', async (t) => {
  const settings = await ownSettings(t);
  const service = await serve(t, settings);
  const note = await readFile(join(settings.SCRIP_DATA_DIR, 'postgres', 'postmaster.pid'), 'utf8');
  process.kill(Number(note.split('\n')[0]), 'SIGKILL');
  await until('the database is back', () => service.err().includes('the database is back'));
  await until('the service is ready', async () => (await fetch(`${service.baseUrl}/readyz`)).ok);
});

test('a start on a port in use fails with one line, before anything is created', async (t) => {
  const settings = await ownSettings(t);
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  await refused(
    t,
    { ...settings, SCRIP_PORT: String((other.address() as AddressInfo).port) },
    /port \d+ .*is in use.*SCRIP_PORT/,
  );
  await assert.rejects(access(settings.SCRIP_DATA_DIR));
});

test('a start with an invalid setting fails with one line that names it', async (t) => {
  const settings = await ownSettings(t);
  await refused(t, { ...settings, SCRIP_PORT: '65536' }, /SCRIP_PORT/);
  await refused(t, { ...settings, SCRIP_HOST: '192.0.2.1' }, /SCRIP_HOST/);
  await refused(t, { ...settings, SCRIP_LOG_LEVEL: 'loud' }, /SCRIP_LOG_LEVEL/);
  await refused(t, { ...settings, SCRIP_CURRENCY: 'ZZZ' }, /SCRIP_CURRENCY/);
  await refused(t, { ...settings, SCRIP_KEYS: 'canary' }, /^(?!.*canary).*SCRIP_KEYS/);
  await refused(
    t,
    { ...settings, SCRIP_DATABASE_URL: 'mysql://u:canary@h/d' },
    /^(?!.*canary).*SCRIP_DATABASE_URL/,
  );
});

test('a start without a reachable database fails with one line without the password', async (t) => {
  const settings = await ownSettings(t);
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  await once(closed, 'close');
  const url = `postgres://someone:canary@127.0.0.1:${port}/scrip`;
  await refused(
    t,
    { ...settings, SCRIP_DATABASE_URL: url },
    /^(?!.*canary).*cannot be reached.*SCRIP_DATABASE_URL/,
    STATUS.unavailable,
  );
});

test('the service does not open a debugger on SIGUSR1', async (t) => {
  const service = await serve(t, await ownSettings(t));
  for (let time = 0; time < 3; time++) {
    service.process.kill('SIGUSR1');
    assert.equal((await fetch(`${service.baseUrl}/healthz`)).status, 200);
  }
  service.process.kill('SIGTERM');
  assert.equal(await service.ended, 0);
  assert.doesNotMatch(service.err(), /debugger/i);
});
