import assert from 'node:assert/strict';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { request } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { freePort, isAlive } from '../../soak/process.ts';
import { Installation } from '../support/installation.ts';
import { asOwner } from '../support/owner.ts';
import { startScrip, typed } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** The service as an operator runs it: one process that is started and stopped. */

async function make(t: TestContext): Promise<Installation> {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_LOG_LEVEL'] = 'info';
  return installation;
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const runsDatabase = (installation: Installation) =>
  exists(installation.at('data', 'postgres', 'postmaster.pid'));

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} finishes accepted requests, and ends the service with status 0`, async (t) => {
    const installation = await make(t);
    const baseUrl = await installation.serve();
    const { child, printed, ended } = installation.serving;
    assert.match(printed.out, /^Next, open the console: scrip user invite YOU@EXAMPLE.COM --role owner$/m);
    const slow = request(`${baseUrl}/api/v2/balance`, {
      method: 'POST',
      headers: { 'content-length': 2, 'content-type': 'application/json' },
    });
    slow.write('{');
    await fetch(`${baseUrl}/healthz`);
    const answer = once(slow, 'response');
    child.kill(signal);
    await until('the service is stopping', () => printed.err.includes('stopping'));
    slow.end('}');
    const [{ statusCode }] = await answer;
    assert.equal(statusCode, 401);
    assert.equal((await ended).status, 0);
    assert.ok(!(await runsDatabase(installation)));
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
  const installation = await make(t);
  const firstUrl = await installation.serve('--demo');
  const { out: first, err: made } = installation.serving.printed;
  assert.match(made, /^scrip: made 90 closed days with \d+ movements/m);
  const before = (await demoBalance(first, firstUrl)) as { statusCode: string };
  assert.equal(before.statusCode, '00');
  assert.equal(await installation.stop(), 0);
  const secondUrl = await installation.serve('--demo');
  const { out: second, err: kept } = installation.serving.printed;
  assert.doesNotMatch(kept, /history/);
  const [key] = /key \S+, secret \S+/.exec(first) ?? [''];
  assert.ok(second.includes(key));
  // The links of its people come last.
  assert.match(
    second,
    /\n {2}Owner of Corner Kiosk, portal +http:\/\/localhost:\d+\/portal\/sign-in#\S+\n+$/,
  );
  assert.deepEqual(await demoBalance(first, secondUrl), before);
});

test('a Ctrl-C at any moment of the start leaves nothing running', async (t) => {
  for (const sign of ['.', 'postgres.log', 'keys']) {
    const installation = await make(t);
    const { child, ended } = startScrip(installation.settings, ['serve']);
    const isThere = () => exists(installation.at('data', sign));
    await until(`${sign} is there`, async () => child.exitCode !== null || (await isThere()));
    child.kill('SIGINT');
    const { status, err } = await ended;
    assert.equal(status, 0, err);
    assert.ok(!(await runsDatabase(installation)));
  }
});

test('commands work beside a service and without one, and stop only what they started', async (t) => {
  const installation = await make(t);
  await installation.json`migrate`;
  await installation.json`merchant create --name Before`;
  assert.ok(!(await runsDatabase(installation)));
  const baseUrl = await installation.serve('--no-work');
  const [listed, url] = await Promise.all([
    installation.json`merchant list`,
    installation.run(typed`db url`),
  ]);
  assert.deepEqual(
    listed.map(({ name }: { name: string }) => name),
    ['Before'],
  );
  assert.equal((await fetch(`${baseUrl}/readyz`)).status, 200);
  assert.equal((await asOwner(url.out.trim(), 'select 1')).length, 1);
  assert.equal(await installation.stop(), 0);
  assert.equal((await installation.run(typed`db url`)).out, url.out);
});

test('a database that is killed is started again by the running service', async (t) => {
  const installation = await make(t);
  const baseUrl = await installation.serve();
  const { printed } = installation.serving;
  await installation.killDatabase();
  await until('the database is back', () => printed.err.includes('the database is back'));
  await until('the service is ready', async () => (await fetch(`${baseUrl}/readyz`)).ok);
});

test('a start on a port in use fails with one line, before anything is created', async (t) => {
  const installation = await make(t);
  const other = createServer().listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  await installation.fails(/port \d+ .*is in use.*SCRIP_PORT/, ['serve'], { SCRIP_PORT: String(port) });
  await assert.rejects(access(installation.at('data')));
});

/** Opens a port, as systemd does for a socket unit, and starts the program on it again whenever it ends. */
const SUPERVISOR = `
import os, socket, sys
port = socket.create_server(("127.0.0.1", 0))
os.dup2(port.fileno(), 3)
os.set_inheritable(3, True)
while True:
    child = os.fork()
    if child == 0:
        os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
        os.execvp(sys.argv[1], sys.argv[1:])
    print(f"port {port.getsockname()[1]}, process {child}", flush=True)
    os.waitpid(child, 0)
`;

for (const processes of ['1', '2'])
  test(`no connection to a passed socket is refused while the service is replaced: ${processes}`, async (t) => {
    const installation = await make(t);
    const by = ['python3', '-u', '-c', SUPERVISOR];
    const { child, printed } = startScrip(
      installation.settings,
      ['serve', '--no-work', '--processes', processes],
      by,
    );
    const started = () => [...printed.out.matchAll(/^port (\d+), process (\d+)$/gm)];
    const served = () => printed.out.split('Scrip serves').length - 1;
    t.after(async () => {
      const last = Number(started().at(-1)?.[2]);
      child.kill('SIGKILL');
      process.kill(last, 'SIGTERM');
      await until('the last process has ended', () => !isAlive(last));
    });
    await until('it serves', () => served() === 1);
    const url = `http://127.0.0.1:${started()[0]?.[1]}/healthz`;
    assert.ok(printed.out.includes(new URL(url).origin));
    let isOver = false;
    const refused: string[] = [];
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver)
        await fetch(url).then(
          (response) => response.arrayBuffer(),
          ({ cause }) => cause.code === 'ECONNREFUSED' && refused.push(cause.code),
        );
    });
    process.kill(Number(started()[0]?.[2]), 'SIGTERM');
    await until('another process serves', () => served() === 2);
    isOver = true;
    await Promise.all(clients);
    assert.deepEqual(refused, []);
  });

test('a start with an invalid setting fails with one line that names it, without its value', async (t) => {
  const installation = await make(t);
  for (const [name, value] of [
    ['SCRIP_PORT', '65536'],
    ['SCRIP_HOST', '192.0.2.1'],
    ['SCRIP_LOG_LEVEL', 'loud'],
    ['SCRIP_CURRENCY', 'ZZZ'],
    ['SCRIP_KEYS', 'canary'],
    ['SCRIP_DATABASE_URL', 'mysql://u:canary@h/d'],
  ] as const)
    await installation.fails(new RegExp(`^(?!.*canary).*${name}`), ['serve'], { [name]: value });
});

test('a start without a reachable database fails with one line without the password', async (t) => {
  const installation = await make(t);
  const url = `postgres://someone:canary@127.0.0.1:${await freePort()}/scrip`;
  const { status, out, err } = await installation.run(['serve'], { SCRIP_DATABASE_URL: url });
  assert.deepEqual([status, out], [4, '']);
  assert.match(err, /^scrip: (?!.*canary)[^\n]*cannot be reached[^\n]*SCRIP_DATABASE_URL[^\n]*\n$/);
});

test('the service does not open a debugger on SIGUSR1', async (t) => {
  const installation = await make(t);
  const baseUrl = await installation.serve();
  const { child, printed } = installation.serving;
  for (let time = 0; time < 3; time++) {
    child.kill('SIGUSR1');
    assert.equal((await fetch(`${baseUrl}/healthz`)).status, 200);
  }
  assert.equal(await installation.stop(), 0);
  assert.doesNotMatch(printed.err, /debugger/i);
});
