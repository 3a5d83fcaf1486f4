import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { openDatabase } from '../../src/db/pool.ts';
import { startTestService } from './harness.ts';

/**
 * The state of the way to the database: open; closed (new connections are refused, and existing ones are
 * cut); silent (data arrives, but nothing comes back); paused (data waits until the way is open again);
 * slow; lost (data vanishes in both directions, and existing connections never get an answer or an error).
 */
type State = 'open' | 'closed' | 'silent' | 'paused' | 'slow' | 'lost';

export type Way = {
  /** The address of the database by this way. */
  readonly url: string;
  set(state: State): void;
  /** Cuts all connections. */
  cut(): void;
  close(): void;
};

const SLOW_MS = 40;

/** Opens a way to a server: a proxy that a test can cut, stop and restore. */
export async function openWay(to: string): Promise<Way> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  /** The sockets whose connection was lost without an error. */
  const dead = new WeakSet<Socket>();
  let state: State = 'open';
  /** The writes that wait until the way is open again. */
  let held: (() => void)[] = [];
  /** The number of delayed writes to each socket, which no later write overtakes. */
  const slowly = new WeakMap<Socket, number>();
  const send = (chunk: Buffer, onto: Socket) => {
    const write = () => void (onto.destroyed || onto.write(chunk));
    const before = slowly.get(onto) ?? 0;
    if (state !== 'slow' && before === 0) return write();
    slowly.set(onto, before + 1);
    setTimeout(() => {
      slowly.set(onto, (slowly.get(onto) ?? 1) - 1);
      write();
    }, SLOW_MS);
  };
  const carry = (chunk: Buffer, onto: Socket, back: boolean) => {
    if (dead.has(onto) || (state === 'silent' && back)) return;
    if (state === 'paused' || held.length > 0) held.push(() => send(chunk, onto));
    else send(chunk, onto);
  };
  const lose = (lost: Iterable<Socket>) => {
    for (const socket of lost) dead.add(socket);
  };
  const server = createServer((near) => {
    near.on('error', () => {}).on('close', () => sockets.delete(near));
    if (state === 'closed') return void near.destroy();
    const far = connect(Number(target.port || 5432), target.hostname);
    for (const socket of [near, far]) sockets.add(socket.setNoDelay());
    if (state === 'lost') lose([near, far]);
    far.on('error', () => near.destroy());
    far.on('close', () => {
      sockets.delete(far);
      if (!dead.has(near)) near.destroy();
    });
    near.on('close', () => dead.has(far) || far.destroy());
    near.on('data', (chunk) => carry(chunk, far, false));
    far.on('data', (chunk) => carry(chunk, near, true));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const url = new URL(to);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    set(wanted) {
      state = wanted;
      if (state === 'closed') cut();
      if (state === 'lost') lose(sockets);
      if (state !== 'open') return;
      const waiting = held;
      held = [];
      for (const write of waiting) write();
    },
    cut,
    close() {
      cut();
      server.close();
    },
  };
}

/** Starts a service with a database of its own, and opens this database again by a way to it. */
export async function startBehindWay(t: TestContext) {
  const testService = await startTestService();
  t.after(testService.stop);
  const way = await openWay(testService.url);
  t.after(way.close);
  const db = openDatabase(way.url, 'scrip-test');
  t.after(() => db.close());
  return { testService, way, db };
}
