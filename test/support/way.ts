import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { openDatabase } from '../../src/db/pool.ts';
import { startTestService } from './harness.ts';

/**
 * The state of the way to the database: open; closed (new connections are refused, and existing ones are
 * cut); silent (data arrives, but nothing comes back); paused (data waits until the way is open again);
 * slow; lost (data vanishes in both directions, and existing connections never get an answer or an error);
 * waiting (existing connections are cut, and new ones wait until the way is open again, as at a pooler).
 */
type State = 'open' | 'closed' | 'silent' | 'paused' | 'slow' | 'lost' | 'waiting';

export type Way = {
  /** The address of the database by this way. */
  readonly url: string;
  set(state: State): void;
  /** Cuts all connections. */
  cut(): void;
  /** Leads new connections to another server. */
  redirect(to: string): void;
  close(): void;
};

const SLOW_MS = 40;

/** Opens a way to a server: a proxy that a test can cut, stop and restore. */
export async function openWay(to: string): Promise<Way> {
  let target = new URL(to);
  const sockets = new Set<Socket>();
  /** The sockets whose connection was lost without an error. */
  const dead = new WeakSet<Socket>();
  let state: State = 'open';
  /** The writes and connections that wait until the way is open again. */
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
  // A lost connection does not answer its end either.
  const server = createServer({ allowHalfOpen: true }, (near) => {
    near.on('error', () => {}).on('close', () => sockets.delete(near));
    near.on('end', () => dead.has(near) || near.end());
    if (state === 'closed') return void near.destroy();
    if (state === 'waiting') held.push(() => join(near));
    else join(near);
  });
  const join = (near: Socket) => {
    const far = connect(Number(target.port || 5432), target.hostname);
    for (const socket of [near, far]) sockets.add(socket.setNoDelay());
    if (state === 'lost') addEach(dead, [near, far]);
    far.on('error', () => near.destroy());
    far.on('close', () => {
      sockets.delete(far);
      if (!dead.has(near)) near.destroy();
    });
    near.on('close', () => dead.has(far) || far.destroy());
    near.on('data', (chunk) => carry(chunk, far, false));
    far.on('data', (chunk) => carry(chunk, near, true));
  };
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: await listen(server, to),
    set(wanted) {
      state = wanted;
      if (state === 'closed' || state === 'waiting') cut();
      if (state === 'lost') addEach(dead, sockets);
      if (state !== 'open') return;
      const waiting = held;
      held = [];
      for (const write of waiting) write();
    },
    cut,
    redirect(other) {
      target = new URL(other);
    },
    close() {
      cut();
      server.close();
    },
  };
}

function addEach(set: WeakSet<Socket>, sockets: Iterable<Socket>): void {
  for (const socket of sockets) set.add(socket);
}

/** @returns the address of a database by a proxy that listens now */
async function listen(server: Server, to: string): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(to);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return url.href;
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
