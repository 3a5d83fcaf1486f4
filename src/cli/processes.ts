import cluster, { type Worker } from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { StartError } from '../db/errors.ts';
import type { Stop } from './signals.ts';

/**
 * Several processes answer on one port. The first one starts the database, does the background work and
 * supervises the others. Each of the others serves calls like a process on another machine, and is replaced
 * when it dies. If the first one dies, node:cluster ends the others at once, since nothing could stop them in
 * order.
 */

/** The most processes. More processes than cores only compete for time. */
export const PROCESSES_MAX = 64;
/** The number of cores left for the database and the background work. */
const SPARED_CORES = 1;
/**
 * The delay before a dead process is replaced. A process that dies at its start must not overload the
 * machine.
 */
const REPLACE_MS = 500;

/** Returns the default number of processes: one for each core except one. */
export function countProcesses(): number {
  return Math.min(PROCESSES_MAX, Math.max(1, availableParallelism() - SPARED_CORES));
}

/** Whether this process was started by `startProcesses`. */
export function isOneOfSeveral(): boolean {
  return cluster.isWorker;
}

/**
 * Ends the channel to the first process, which would keep a process alive that cannot start. The first one
 * tries again with another.
 */
export function leaveProcesses(): void {
  cluster.worker?.disconnect();
}

export type Processes = {
  readonly port: number;
  /** Asks all processes to finish accepted requests, and waits until they have ended. */
  stop(): Promise<void>;
};

/**
 * Starts processes that answer calls, and waits until each of them listens.
 * @throws StartError if one ends before that
 */
export async function startProcesses({ db, log }: Service, count: number, stop: Stop): Promise<Processes> {
  // Each process accepts connections from the shared socket by itself. By default the first process accepts
  // them and hands them over, and a connection that was just handed to a process that dies is never answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  // The password is not in an argument. The processes read the key ring and all other settings from the same
  // environment.
  const fork = () =>
    cluster.fork({ SCRIP_DATABASE_URL: db.url }).on('error', (error) => {
      // Without a listener, a message to a process that has just died would end the first process.
      log.debug({ error: error.message }, 'a message did not reach a process');
    });
  let stopping = false;
  void stop.asked.then(() => {
    stopping = true;
  });
  const first = Array.from({ length: count }, fork);
  const [port = 0] = await Promise.all(first.map((worker) => listens(worker, stop))).catch(
    async (error: unknown) => {
      await endAll(stop);
      throw error;
    },
  );
  cluster.on('exit', (worker, status, signal) => {
    if (stopping) return;
    log.error({ pid: worker.process.pid, status, signal }, 'a process that answers has died: replacing it');
    void sleep(REPLACE_MS).then(() => stopping || fork());
  });
  void stop.urged.then(() => signalAll());
  return {
    port,
    async stop() {
      stopping = true;
      await endAll(stop);
    },
  };
}

/** Returns the port of a new process; 0 if it was asked to stop first. */
function listens(worker: Worker, stop: Stop): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.once('listening', ({ port }) => resolve(port));
    worker.once('exit', () => {
      if (stop.isAsked()) resolve(0);
      else reject(new StartError('a process of the service ended before it could serve'));
    });
  });
}

/** A process that has died is listed until its channel is closed, too. */
function alive(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter(
    (worker): worker is Worker => worker?.isDead() === false,
  );
}

function signalAll(signal: NodeJS.Signals = 'SIGTERM'): void {
  for (const worker of alive()) worker.process.kill(signal);
}

async function endAll(stop: Stop): Promise<void> {
  const ended = alive().map((worker) => new Promise((resolve) => worker.once('exit', resolve)));
  signalAll(stop.signal());
  await Promise.all(ended);
}
