import { type Operation, ScripError, UnknownOutcomeError } from './errors.ts';
import { type About, clientError } from './failure.ts';
import type { Variant } from './types.ts';

/** Calls whose outcome is not known yet, kept where they outlive the process. */

/** A call that was begun. It holds no code, PIN or secret. */
export type PendingCall = {
  readonly operation: Extract<
    Operation,
    'generate' | 'activate' | 'redeem' | 'updateRedemption' | 'reverseRedemption'
  >;
  readonly reference: string;
  readonly baseUrl: string;
  readonly variant: Variant;
  /** ISO 8601. */
  readonly startedAt: string;
  /** The amount of a redemption or an update, in major units; null for other calls. */
  readonly amount: number | null;
  /** The request, which is sent again; null for one with a code and a PIN, which is only looked up. */
  readonly body: Readonly<Record<string, unknown>> | null;
};

/**
 * Keeps pending calls, one for each operation and reference. A call is sent after `put` has returned, so it
 * must be on the disk by then. `@scrip/client/file-store` has a store that keeps them in a folder.
 */
export type PendingStore = {
  /** Keeps a call, in place of the one with its operation and reference. */
  put(call: PendingCall): Promise<void>;
  /** Forgets the call with this operation and reference, if there is one. */
  delete(call: PendingCall): Promise<void>;
  /** @throws DamagedStoreError rather than leave out a call that cannot be read */
  list(): Promise<readonly PendingCall[]>;
};

/** Some calls of a store cannot be read, so their outcome is not known. The others are in `calls`. */
export class DamagedStoreError extends Error {
  readonly calls: readonly PendingCall[];

  constructor(message: string, calls: readonly PendingCall[]) {
    super(message);
    this.name = 'DamagedStoreError';
    this.calls = calls;
  }
}

const keyOf = ({ operation, reference }: PendingCall) => `${operation} ${reference}`;

type Listed = { readonly calls: readonly PendingCall[]; readonly damage: DamagedStoreError | null };

/** The calls of a client in its store. */
export class Pending {
  readonly #store: PendingStore;
  /** The calls whose outcome is unknown, from an earlier process or from this one; read once. */
  #open: Promise<Set<string>> | undefined;
  /** How many calls run at present, by their keys. */
  readonly #running = new Map<string, number>();

  constructor(store: PendingStore) {
    this.#store = store;
  }

  /**
   * Keeps a call before it runs, and forgets it when its outcome is known.
   * @param run makes the call; it gets whether the outcome of an earlier copy is unknown
   * @throws ScripError `storeFailure` if it could not be kept, and was not sent
   */
  async keep<T>(about: About, call: PendingCall, run: (isOpen: boolean) => Promise<T>): Promise<T> {
    const key = keyOf(call);
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    try {
      const open = await this.#put(about, call);
      const isOpen = open.has(key);
      open.add(key);
      const result = await run(isOpen).catch(async (error: unknown) => {
        if (isDefinite(error)) await this.#end(call);
        throw error;
      });
      await this.#end(call);
      return result;
    } finally {
      const others = (this.#running.get(key) ?? 1) - 1;
      if (others > 0) this.#running.set(key, others);
      else this.#running.delete(key);
    }
  }

  /** The calls that are kept, and do not run at present. */
  async list(): Promise<Listed> {
    const { calls, damage } = await this.#read();
    return { calls: calls.filter((call) => !this.#running.has(keyOf(call))), damage };
  }

  /** Forgets a call. One that could not be forgotten is recovered once more, with the same outcome. */
  async forget(call: PendingCall): Promise<void> {
    (await this.#open)?.delete(keyOf(call));
    await this.#store.delete(call).catch(() => {});
  }

  /** Forgets a call whose outcome is known, unless a copy of it still runs. */
  async #end(call: PendingCall): Promise<void> {
    if (this.#running.get(keyOf(call)) === 1) await this.forget(call);
  }

  async #put(about: About, call: PendingCall): Promise<Set<string>> {
    try {
      this.#open ??= this.#read().then(({ calls }) => new Set(calls.map(keyOf)));
      const open = await this.#open;
      await this.#store.put(call);
      return open;
    } catch (cause) {
      this.#open = undefined;
      throw clientError(about, 'storeFailure', undefined, { cause });
    }
  }

  async #read(): Promise<Listed> {
    try {
      return { calls: await this.#store.list(), damage: null };
    } catch (error) {
      if (!(error instanceof DamagedStoreError)) throw error;
      return { calls: error.calls, damage: error };
    }
  }
}

function isDefinite(error: unknown): boolean {
  return error instanceof ScripError && !(error instanceof UnknownOutcomeError);
}
