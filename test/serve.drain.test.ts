import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../soak/process.ts';
import { startTestService } from './harness.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const CLIENTS = 24;

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
