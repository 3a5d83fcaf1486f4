import { Worker } from 'node:worker_threads';
import type { KeyRing } from '../keyring/ring.ts';
import type { MadeRows, RowsWanted } from './rows.ts';

/** What comes back from the thread. */
export type ThreadAnswer =
  | { readonly made: MadeRows; readonly error?: never }
  | { readonly made?: never; readonly error: unknown };

/** A thread holds some ten megabytes: one without work for this long ends. */
const IDLE_MS = 5_000;

type Waiting = { readonly resolve: (made: MadeRows) => void; readonly reject: (error: unknown) => void };

const threads = new WeakMap<KeyRing, Thread>();

/**
 * Makes rows on a thread of its own, so that the calls at the till do not wait for it: two thousand
 * vouchers take some twenty milliseconds. There is one thread for each key ring; it makes one order after
 * the other.
 */
export function makeRowsAside(keys: KeyRing, wanted: RowsWanted): Promise<MadeRows> {
  let thread = threads.get(keys);
  // One that was started before a rotation seals under the key before it.
  if (!thread || thread.ended || thread.keyId !== keys.current) {
    thread = new Thread(keys);
    threads.set(keys, thread);
  }
  return thread.make(wanted);
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
      // Nothing of the process's own arguments and environment is for the thread.
      execArgv: [],
      env: {},
    });
    this.#worker.on('message', (answer: ThreadAnswer) => this.#finish(answer));
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', () => this.#end(new Error('the thread that makes vouchers has ended')));
  }

  make(wanted: RowsWanted): Promise<MadeRows> {
    clearTimeout(this.#idle);
    // Who waits for vouchers keeps the process alive; the thread alone does not.
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
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
  }
}
