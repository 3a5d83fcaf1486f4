import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { opened } from '../test/support/leave-nothing.ts';

export type Order = { readonly state: 'open' | 'waiting'; readonly to?: string };

/** A way to a server (test/support/way.ts) in a thread of its own, which the soak does not delay. */
export class Way {
  readonly url: string;
  readonly #thread: Worker;

  private constructor(thread: Worker, url: string) {
    this.#thread = thread;
    this.url = url;
  }

  static async open(to: string): Promise<Way> {
    const thread = await opened(
      async () => new Worker(new URL('./way.thread.ts', import.meta.url), { workerData: to }),
      (each) => each.terminate(),
    );
    const [url] = (await once(thread, 'message')) as [string];
    return new Way(thread, url);
  }

  /** Cuts all connections, and lets new ones wait until the way is open again. */
  wait(): Promise<void> {
    return this.#order({ state: 'waiting' });
  }

  /** Opens the way to a server. */
  lead(to: string): Promise<void> {
    return this.#order({ state: 'open', to });
  }

  async #order(order: Order): Promise<void> {
    const done = once(this.#thread, 'message');
    this.#thread.postMessage(order);
    await done;
  }
}
