import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../soak/process.ts';
import { sql } from '../src/db/sql.ts';
import { startTestService, type TestService } from './harness.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const CLIENTS = 24;

/** A service of its own, in a process of its own. */
async function startServe(testService: TestService) {
  const port = await freePort();
  const env = {
    PATH: process.env['PATH'],
    SCRIP_DATABASE_URL: testService.url,
    SCRIP_KEYS: testService.keys,
    SCRIP_DATA_DIR: tmpdir(),
    SCRIP_PORT: String(port),
    SCRIP_LOG_LEVEL: 'silent',
  };
  const serve = spawn(process.execPath, [MAIN, 'serve', '--no-work', '--processes', '1'], { env, stdio: 'ignore' });
  const ended = once(serve, 'exit');
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok) await sleep(50);
  return { port, serve, ended };
}

type Outcome = 'answered' | 'not accepted' | string;

/** One call over a connection that is kept for the next one, as tills do. */
function call(agent: Agent, port: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const sent = request({ agent, host: '127.0.0.1', port, path: '/api/v2/transactions' }, (response) => {
      response
        .resume()
        .once('end', () => resolve(response.statusCode === 401 ? 'answered' : `status ${response.statusCode}`));
      response.once('error', (error) => resolve(error.message));
    });
    sent.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ECONNREFUSED' ? 'not accepted' : `${error.code} ${error.message}`),
    );
    sent.end();
  });
}

for (const turn of [1, 2, 3]) {
  test(`SIGTERM under load breaks no call that was accepted (${turn})`, async (t) => {
    const testService = await startTestService();
    t.after(testService.stop);
    const { port, serve, ended } = await startServe(testService);
    const outcomes = new Map<Outcome, number>();
    const client = async (number: number) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (;;) {
        const outcome = await call(agent, port);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        if (outcome !== 'answered') break;
        // Some are idle now and then, so that the end finds connections in every state.
        if (number % 3 === 0) await sleep(number);
      }
      agent.destroy();
    };
    const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
    await sleep(500);
    serve.kill('SIGTERM');
    await Promise.all(clients);
    const [code] = await ended;
    assert.equal(code, 0);
    assert.deepEqual([...outcomes.keys()].sort(), ['answered', 'not accepted']);
    assert.equal(outcomes.get('not accepted'), CLIENTS);
  });
}

/** Redemptions over one connection, four under way at a time, until it ends; the references of those that were answered. */
async function pipeline(port: number, head: string, bodyOf: (reference: string) => string, name: string) {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  const sent: string[] = [];
  let told = '';
  const answered = () => [...told.matchAll(/"statusCode":"00"/g)].length;
  const send = () => {
    const reference = `${name}-${sent.length}`;
    const body = bodyOf(reference);
    sent.push(reference);
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  };
  socket.setEncoding('utf8').on('data', (text: string) => {
    told += text;
    while (socket.writable && sent.length < answered() + 4) send();
  });
  for (let first = 0; first < 4; first++) send();
  await once(socket, 'close');
  // In the order of the requests, whatever the order in which they were booked.
  return sent.slice(0, answered());
}

test('SIGTERM under load leaves nothing done and untold, also where clients do not wait for answers', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const { authorization } = await testService.createMerchant();
  const { port, serve, ended } = await startServe(testService);
  const order = { reference: 'x', quantity: 10, value: 1_000 };
  const headers = { authorization, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(order) };
  const { data } = (await (await fetch(`http://127.0.0.1:${port}/api/v2/vouchers`, init)).json()) as {
    data: { vouchers: { code: string; pin: string }[] };
  };
  const head = `POST /api/v2/redeem HTTP/1.1\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
  const clients = data.vouchers.map(({ code, pin }, number) => {
    const bodyOf = (reference: string) => JSON.stringify({ voucherCode: code, pin, amount: 0.01, reference });
    return pipeline(port, head, bodyOf, `till ${number}`);
  });
  await sleep(500);
  serve.kill('SIGTERM');
  const answered = (await Promise.all(clients)).flat();
  assert.deepEqual(await ended, [0, null]);
  const booked = await testService.service.db.query<{ reference: string }>(
    sql`select reference from journal where operation = 'redeem'`,
  );
  assert.deepEqual(answered.sort(), booked.map(({ reference }) => reference).sort());
});
