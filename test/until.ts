import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** A busy machine takes minutes for what takes a quiet one a second. The bound ends a wait in vain. */
const PATIENCE_MS = 300_000;
const POLL_MS = 20;

type Found<T> = T | false | undefined;

/**
 * Waits until something is found.
 * @param what the failure says when it never is
 * @param find is called again while it finds nothing: false or undefined
 */
export async function until<T>(what: string, find: () => Promise<Found<T>> | Found<T>): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(POLL_MS)) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
  }
  return assert.fail(`not within ${PATIENCE_MS / 1000} s: ${what}`);
}
