import { randomBytes } from 'node:crypto';

/**
 * The number of ids for which random bytes are drawn at once: one call of the system's generator costs as
 * much as fifty ids.
 */
const POOL_IDS = 512;
const RANDOM_BYTES = 8;

let pool = Buffer.alloc(0);
let offset = 0;
/**
 * The most that an id may be ahead of the time. Ids further ahead came from a wrong clock and are ignored.
 */
const AHEAD_MAX_MS = 600_000n;
/** The milliseconds and the counter of the last id, as one number of 60 bits. */
let last = 0n;

/**
 * Returns a new transaction id: a UUID of version 7 (RFC 9562), ordered by time and strictly increasing
 * within this process. The twelve bits after the milliseconds are a counter. When it overflows, it uses the
 * next millisecond.
 * @param now the time of the id
 */
export function newId(now: Date): string {
  const time = BigInt(now.getTime()) << 12n;
  last = time > last || last - time > AHEAD_MAX_MS << 12n ? time : last + 1n;
  if (offset === pool.length) {
    pool = randomBytes(RANDOM_BYTES * POOL_IDS);
    offset = 0;
  }
  // The variant takes the two highest bits of the random part.
  pool[offset] = ((pool[offset] as number) & 0x3f) | 0x80;
  const tail = pool.toString('hex', offset, offset + RANDOM_BYTES);
  offset += RANDOM_BYTES;
  const head = last.toString(16).padStart(15, '0');
  return `${head.slice(0, 8)}-${head.slice(8, 12)}-7${head.slice(12)}-${tail.slice(0, 4)}-${tail.slice(4)}`;
}

/** The id after all others. */
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Returns the lowest id of a time: later ids are equal or higher. */
export function idFloor(time: Date): string {
  const head = Math.max(0, time.getTime()).toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-000000000000`;
}

/**
 * Returns the id of a row that is stamped in the past, such as commission: that time, and the rest of a new
 * id.
 */
export function idAt(id: string, time: Date): string {
  return `${idFloor(time).slice(0, 13)}${id.slice(13)}`;
}
