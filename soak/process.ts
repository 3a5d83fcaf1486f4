import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const CLOCK = new URL('./clock.ts', import.meta.url).href;
const AGAIN_MS = 100;

/** A command of the service that is started again whenever it ends, as whatever runs a service does. */
export class Supervised {
  readonly name: string;
  readonly port: number;
  readonly #args: readonly string[];
  readonly #env: Record<string, string>;
  #child: ChildProcess | undefined;
  #stopped = false;
  #ended: Promise<void> = Promise.resolve();

  constructor(name: string, args: readonly string[], env: Record<string, string>, port = 0) {
    this.name = name;
    this.port = port;
    this.#args = args;
    this.#env = { ...env, SCRIP_PORT: String(port) };
  }

  start(): void {
    this.#ended = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const env = { ...process.env, ...this.#env };
      const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const;
      this.#child = spawn(process.execPath, ['--import', CLOCK, MAIN, ...this.#args], { env, stdio: [...stdio] });
      await once(this.#child, 'exit');
      await sleep(AGAIN_MS);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  setClock(aheadMs: number): void {
    if (this.#child?.connected) this.#child.send({ aheadMs }, () => {});
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.signal('SIGCONT');
    this.signal('SIGTERM');
    await this.#ended;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async ready(): Promise<void> {
    while (!(await fetch(`${this.baseUrl}/readyz`).catch(() => undefined))?.ok) await sleep(AGAIN_MS);
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
