import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../soak/process.ts';
import { DIALECTS } from '../support/dialects.ts';
import { folderOf } from '../support/folder.ts';
import { startTestService, type TestService } from '../support/harness.ts';
import { type Started, startScrip } from '../support/scrip.ts';
import { findInstalled, startServer } from '../support/stand-in.ts';
import { until } from '../support/until.ts';

/** Two processes behind a load balancer are restarted one after the other, while tills are open. */

/** A process that is told to stop as by a supervisor, with the default time to drain. */
class Process {
  readonly address: string;
  readonly #settings: Readonly<Record<string, string>>;
  #started: Started | undefined;

  constructor(t: TestContext, { url, keys }: TestService, port: number) {
    this.address = `127.0.0.1:${port}`;
    this.#settings = {
      SCRIP_DATABASE_URL: url,
      SCRIP_KEYS: keys,
      SCRIP_DATA_DIR: tmpdir(),
      SCRIP_PORT: String(port),
      SCRIP_DRAIN_SECONDS: '',
    };
    t.after(() => this.stop());
  }

  async start(): Promise<void> {
    this.#started = startScrip(this.#settings, ['serve', '--no-work', '--processes', '1']);
    const { child } = this.#started;
    await until('the process is ready', async () => {
      assert.equal(child.exitCode, null);
      return (await fetch(`http://${this.address}/readyz`).catch(() => undefined))?.ok;
    });
  }

  /** How many calls it has answered since its start. */
  get answered(): number {
    return this.#started?.printed.err.match(/"transactionId"/g)?.length ?? 0;
  }

  async stop(): Promise<void> {
    this.#started?.child.kill('SIGTERM');
    await this.#started?.ended;
  }
}

const CADDYFILE = fileURLToPath(new URL('../../deploy/caddy/Caddyfile', import.meta.url));

/** Starts Caddy with the file of deploy/. @returns its address */
async function startCaddy(t: TestContext, caddy: string, upstreams: readonly string[]): Promise<string> {
  const url = `http://127.0.0.1:${await freePort()}`;
  await startServer(t, url, caddy, ['run', '--config', CADDYFILE, '--adapter', 'caddyfile'], {
    HOME: folderOf(t),
    // With http, since a certificate would need a name.
    SCRIP_DOMAIN: url,
    SCRIP_UPSTREAMS: upstreams.join(' '),
    CADDY_ADMIN: `127.0.0.1:${await freePort()}`,
  });
  await until('Caddy finds a service', async () => (await fetch(`${url}/readyz`)).status === 200);
  return url;
}

const TILLS = 4;

test('no call fails while processes behind Caddy are restarted one after the other', async (t) => {
  const caddy = findInstalled(t, 'caddy/usr/bin/caddy', 'Caddy');
  if (caddy === undefined) return;
  const testService = await startTestService();
  t.after(testService.stop);
  const ports = [await freePort(), await freePort()];
  const processes = ports.map((port) => new Process(t, testService, port));
  await Promise.all(processes.map((each) => each.start()));
  const url = await startCaddy(
    t,
    caddy,
    processes.map(({ address }) => address),
  );
  const { authorization } = await testService.createMerchant();
  const headers = { authorization, 'content-type': 'application/json' };
  let isOver = false;
  const answers = new Set<string>();
  const sell = async (till: number) => {
    for (let number = 0; !isOver; number++) {
      const dialect = DIALECTS[number % DIALECTS.length] ?? assert.fail();
      const { method, path, body } = dialect.generate(`till-${till}-${number}`, 1, 1);
      const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
      const text = await response.text();
      answers.add(`${response.status} ${/"statusCode":"(\d\d)"/.exec(text)?.[1] ?? text}`);
    }
  };
  const tills = Promise.all(Array.from({ length: TILLS }, (_, till) => sell(till)));
  t.after(() => {
    isOver = true;
    return tills;
  });
  const isUsed = (each: Process) => until('it gets calls from Caddy', () => each.answered > 5);
  for (const each of processes) {
    await Promise.all(processes.map(isUsed));
    await each.stop();
    await each.start();
  }
  await Promise.all(processes.map(isUsed));
  isOver = true;
  await tills;
  assert.deepEqual([...answers], ['200 00']);
});
