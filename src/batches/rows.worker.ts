import { Worker } from 'node:worker_threads';
import type { Service } from '../context.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { type MadeRows, makeRows, type RowsWanted } from './rows.ts';

/** An answer of the thread. */
export type ThreadAnswer =
  | { readonly made: MadeRows; readonly error?: never }
  | { readonly made?: never; readonly error: unknown };

/** The time after which an idle thread ends, since it takes some ten megabytes. */
const IDLE_MS = 5_000;

type Waiting = { readonly resolve: (made: MadeRows) => void; readonly reject: (error: unknown) => void };

const threads = new WeakMap<KeyRing, Thread>();

/** The thread did not start, or it ended. The rows can still be made. */
class ThreadLost extends Error {}

/**
 * Creates rows on a thread, so that the calls of tills do not wait: two thousand vouchers take some twenty
 * milliseconds. Each key ring has one thread, which works on one order after the other. If the system
 * provides no thread, the rows are made on this one: an order that was paid must not fail for it.
 */
export async function makeRowsAside(
  { keys, log }: Pick<Service, 'keys' | 'log'>,
  wanted: RowsWanted,
): Promise<MadeRows> {
  try {
    return await threadOf(keys).make(wanted);
  } catch (error) {
    if (!(error instanceof ThreadLost)) throw error;
    log.warn({ part: 'batches', err: error.cause }, 'vouchers are made without a thread, which delays calls');
    return makeRows(keys, wanted);
  }
}

function threadOf(keys: KeyRing): Thread {
  const thread = threads.get(keys);
  // A thread from before a rotation seals under an older key.
  if (thread && !thread.ended && thread.keyId === keys.current) return thread;
  const started = startThread(keys);
  threads.set(keys, started);
  return started;
}

function startThread(keys: KeyRing): Thread {
  try {
    return new Thread(keys);
  } catch (cause) {
    throw new ThreadLost('there is no thread', { cause });
  }
}

class Thread {
  ended = false;
  readonly keyId: string;
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  #idle: NodeJS.Timeout | undefined;

  constructor(keys: KeyRing) {
    this.keyId = keys.current;
    this.#worker = new Worker(new URL('./rows.thread.ts', import.meta.url), {
      workerData: keys.share(),
      // The thread receives no arguments and no environment of the process.
      execArgv: [],
      env: {},
    });
    this.#worker.on('message', (answer: ThreadAnswer) => this.#finish(answer));
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', () => this.#end(new Error('the thread that makes vouchers has ended')));
  }

  make(wanted: RowsWanted): Promise<MadeRows> {
    clearTimeout(this.#idle);
    // A request for vouchers keeps the process alive; an idle thread does not.
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(wanted);
    });
  }

  #finish(answer: ThreadAnswer): void {
    const waiting = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#rest();
    if (answer.made) waiting?.resolve(answer.made);
    else waiting?.reject(answer.error);
  }

  #rest(): void {
    this.#worker.unref();
    this.#idle = setTimeout(() => {
      this.ended = true;
      void this.#worker.terminate();
    }, IDLE_MS);
    this.#idle.unref();
  }

  #end(error: unknown): void {
    this.ended = true;
    clearTimeout(this.#idle);
    const lost = new ThreadLost('the thread has ended', { cause: error });
    for (const waiting of this.#waiting.splice(0)) waiting.reject(lost);
  }
}
