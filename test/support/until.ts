import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** The limit of a wait. A busy machine takes minutes where a quiet one takes a second. */
export const PATIENCE_MS = 300_000;
const POLL_MS = 20;

type Found<T> = T | false | undefined;

/**
 * Waits until something is found.
 * @param what is awaited, for the message of the failure
 * @param find is called again while it returns false or undefined
 */
export async function until<T>(what: string, find: () => Promise<Found<T>> | Found<T>): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(POLL_MS)) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
  }
  return assert.fail(`not within ${PATIENCE_MS / 1000} s: ${what}`);
}
