import cluster, { type Worker } from 'node:cluster';
import type { Logger } from '../log.ts';

/**
 * The first of several processes asks the others whether their event loops turn. Clients on the connections
 * of one that hangs would wait until they give up. One that does not answer is killed, and then replaced
 * (processes.ts).
 */

const ASK_MS = 3_000;
/** A process is killed after this many questions without an answer. Tills wait for twice as long. */
const UNANSWERED_MAX = 5;

const QUESTION = 'are you there?';
const ANSWER = 'yes';

/**
 * Watches the processes that serve.
 * @param processes those of this program
 * @returns a function that ends it
 */
export function watchProcesses(
  log: Logger,
  processes: Pick<typeof cluster, 'workers' | 'on' | 'off'> = cluster,
): () => void {
  const unanswered = new Map<Worker, number>();
  const begin = (worker: Worker) => {
    unanswered.set(worker, 0);
    worker.on('message', (message) => {
      if (message === ANSWER) unanswered.set(worker, 0);
    });
  };
  const end = (worker: Worker) => void unanswered.delete(worker);
  for (const worker of Object.values(processes.workers ?? {})) if (worker) begin(worker);
  // Its start may take longer.
  processes.on('listening', begin).on('exit', end);
  const timer = setInterval(() => {
    for (const [worker, count] of unanswered) {
      if (count === UNANSWERED_MAX) {
        log.error({ pid: worker.process.pid }, 'a process that answers hangs: killing it');
        worker.process.kill('SIGKILL');
        continue;
      }
      unanswered.set(worker, count + 1);
      if (worker.isConnected()) worker.send(QUESTION);
    }
  }, ASK_MS).unref();
  return () => {
    clearInterval(timer);
    processes.off('listening', begin).off('exit', end);
  };
}

/** Answers the first process. */
export function answerWatch(): void {
  process.on('message', (message) => {
    if (message === QUESTION && process.connected) process.send?.(ANSWER);
  });
}
