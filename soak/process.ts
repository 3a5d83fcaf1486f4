import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { atEnd, end } from '../test/support/leave-nothing.ts';

const MAIN = fileURLToPath(new URL('../bin/scrip.cjs', import.meta.url));
const CLOCK = new URL('./clock.ts', import.meta.url).href;
const AGAIN_MS = 100;
/** Becomes the command, which finds in its environment that a socket was passed to it. */
const AS_SYSTEMD = 'LISTEN_PID=$$ exec "$@"';
const PORT_MIN = 15_000;
const PORT_END = 32_000;

/** A command of the service that is started again whenever it ends, as by a supervisor. */
export class Supervised {
  readonly name: string;
  readonly port: number;
  readonly #args: readonly string[];
  readonly #env: Record<string, string>;
  readonly #log: string;
  /** The socket that the process listens on, as from systemd: a descriptor of this process. */
  readonly #socket: number | undefined;
  #child: ChildProcess | undefined;
  #stopped = false;
  #ended: Promise<void> = Promise.resolve();

  /** @param env with SOAK_LOG, the file for its log */
  constructor(name: string, args: readonly string[], env: Record<string, string>, port = 0, socket?: number) {
    this.name = name;
    this.#socket = socket;
    this.#log = env['SOAK_LOG'] ?? '/dev/null';
    this.port = port;
    this.#args = args;
    this.#env = { ...env, SCRIP_PORT: String(port) };
  }

  start(): void {
    atEnd(() => this.stop());
    this.#ended = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const env = { ...process.env, ...this.#env };
      const log = openSync(this.#log, 'a');
      const command = [process.execPath, '--import', CLOCK, MAIN, ...this.#args] as const;
      const [program, ...args] =
        this.#socket === undefined ? command : ['sh', '-c', AS_SYSTEMD, 'sh', ...command];
      const child = spawn(program as string, args, {
        env: { ...env, ...(this.#socket !== undefined && { LISTEN_FDS: '1' }) },
        stdio: ['ignore', 'ignore', log, this.#socket ?? 'ignore', 'ipc'],
      });
      this.#child = child;
      closeSync(log);
      await once(child, 'exit');
      await sleep(AGAIN_MS);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /**
   * Replaces the process by one with other settings, and waits until that is ready.
   * @param isReady tells whether the new process is ready
   */
  async replace(settings: Record<string, string>, isReady: () => Promise<boolean>): Promise<void> {
    const old = this.#child;
    Object.assign(this.#env, settings);
    old?.kill();
    while (this.#child === old || !(await isReady())) await sleep(AGAIN_MS);
  }

  setClock(aheadMs: number): void {
    if (this.#child?.connected) this.#child.send({ aheadMs }, () => {});
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.signal('SIGCONT');
    if (this.#child) await end(this.#child);
    await this.#ended;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async ready(): Promise<void> {
    while (!(await fetch(`${this.baseUrl}/readyz`).catch(() => undefined))?.ok) await sleep(AGAIN_MS);
  }
}

/**
 * Finds a port for a process that starts later. It is below the range of ports for outgoing connections, so
 * that none of these takes it in the meantime.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_END);
    const server = createServer().listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** Whether a process exists. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
