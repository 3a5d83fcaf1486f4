import cluster, { type Worker } from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { StartError } from '../db/errors.ts';
import { parseCount } from './parse.ts';
import type { Stop } from './stop.ts';

/**
 * Several processes that answer on one port. The first one holds the database, does the background work
 * and watches over the others; each of these serves by itself, as a process on another machine would, and
 * is replaced when it dies. Should the first one die, node:cluster ends the others at once: there would
 * be nobody left to stop them in order.
 */

/** More processes than cores only take each other's time. */
const MOST = 64;
/** A core is left for the database and the background work. */
const SPARED_CORES = 1;
/** Before a dead process is replaced: one that dies at its start must not take the machine with it. */
const REPLACE_MS = 500;

/** How many processes are to answer: what the option says, else one for each core but one. */
export function countProcesses(option: string | undefined): number {
  if (option !== undefined) return parseCount(option, '--processes', 1, MOST);
  return Math.min(MOST, Math.max(1, availableParallelism() - SPARED_CORES));
}

/** Whether this process is one of several that answer, started by `startProcesses`. */
export function isOneOfSeveral(): boolean {
  return cluster.isWorker;
}

export type Processes = {
  readonly port: number;
  /** Asks all of them to finish what they have accepted, and waits until they have ended. */
  stop(): Promise<void>;
};

/**
 * Starts processes that answer, and waits until each of them listens.
 * @throws StartError where one ends before
 */
export async function startProcesses({ db, log }: Service, count: number, stop: Stop): Promise<Processes> {
  // The password is in no argument; the key ring and all else they read from the same settings as this
  // process.
  const fork = () => cluster.fork({ SCRIP_DATABASE_URL: db.url });
  let stopping = false;
  void stop.asked.then(() => {
    stopping = true;
  });
  const first = Array.from({ length: count }, fork);
  const [port = 0] = await Promise.all(first.map((worker) => listens(worker, stop))).catch(
    async (error: unknown) => {
      await endAll();
      throw error;
    },
  );
  cluster.on('exit', (worker, status, signal) => {
    if (stopping) return;
    log.error({ pid: worker.process.pid, status, signal }, 'a process that answers has died: replacing it');
    void sleep(REPLACE_MS).then(() => stopping || fork());
  });
  void stop.hurried.then(() => signalAll());
  return {
    port,
    async stop() {
      stopping = true;
      await endAll();
    },
  };
}

/** The port at which a new process listens; 0 where it was asked to stop before. */
function listens(worker: Worker, stop: Stop): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.once('listening', ({ port }) => resolve(port));
    worker.once('exit', () => {
      if (stop.isAsked()) resolve(0);
      else reject(new StartError('a process of the service ended before it could serve'));
    });
  });
}

function alive(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}

function signalAll(): void {
  for (const worker of alive()) worker.process.kill('SIGTERM');
}

async function endAll(): Promise<void> {
  const ended = alive().map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  signalAll();
  await Promise.all(ended);
}
