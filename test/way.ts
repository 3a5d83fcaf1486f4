import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { openDatabase } from '../src/db/pool.ts';
import { startTestService } from './harness.ts';

/**
 * How the way to the database is: open; closed (nobody connects, and who was connected is cut off);
 * silent (what is sent arrives, and nothing comes back); paused (nothing moves, until it is open again);
 * slow; lost (what is sent either way vanishes, and who was connected then is neither answered nor told
 * anything ever again).
 */
type State = 'open' | 'closed' | 'silent' | 'paused' | 'slow' | 'lost';

export type Way = {
  /** The address to take it by. */
  readonly url: string;
  set(state: State): void;
  /** Cuts off who is connected. */
  cut(): void;
  close(): void;
};

const SLOW_MS = 40;

/** A way to a server that a test can cut, stop and mend. */
export async function openWay(to: string): Promise<Way> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  /** Those whose connection was lost without a word. */
  const dead = new WeakSet<Socket>();
  let state: State = 'open';
  /** What waits for the way to open again. */
  let held: (() => void)[] = [];
  /** What is on its way, slowly: nothing overtakes it. */
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

/** A service with a database of its own, and that database once more by a way to it. */
export async function startBehindWay(t: TestContext) {
  const testService = await startTestService();
  t.after(testService.stop);
  const way = await openWay(testService.url);
  t.after(way.close);
  const db = openDatabase(way.url, 'scrip-test');
  t.after(() => db.close());
  return { testService, way, db };
}
