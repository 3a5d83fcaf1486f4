import { randomBytes } from 'node:crypto';
import { StartError } from '../db/errors.ts';
import { derive, KEY_BYTES, KeyRing, type RingKey, ringKey } from './ring.ts';

/** The entry of the routing key. It is not a data key: it gives a code its slot, and is never rotated. */
const ROUTING = 'routing';

/** A new key ring as text: a data key, and the routing key. */
export function newKeyRing(): string {
  return `${newRingKey()}\n${ROUTING}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/** The entry of the routing key of a key ring, as text. With it, a ring can do without its oldest key. */
export function routingEntry(ring: KeyRing): string {
  const [, routing] = ring.share();
  return `${ROUTING}:${Buffer.from(routing).toString('base64url')}`;
}

/** A new data key as text, `id:key`. The id begins with the time and is unique. */
export function newRingKey(): string {
  const id = `k${Math.floor(Date.now() / 1000).toString(36)}${randomBytes(3).toString('hex')}`;
  return `${id}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/**
 * Reads a key ring from text: `id:key` entries, separated by commas or line ends, newest first. A key
 * is 32 bytes in base64url. The entry `routing:key` may be anywhere; without it, the routing key is
 * derived from the oldest data key.
 * @param source where the text came from, for the error, which never shows the text
 * @param reload reads the text again when a key is missing
 * @throws StartError if it is not a key ring
 */
export function readKeyRing(text: string, source: string, reload?: () => string): KeyRing {
  const { keys, routing, routingFrom } = readKeys(text, source);
  return new KeyRing(keys, routing, reload && (() => readKeys(reload(), source).keys), routingFrom);
}

/** What is wrong with a text as a key ring, or undefined. */
export function refuseKeyRing(text: string): string | undefined {
  const keys = parseKeys(text);
  return typeof keys === 'string' ? keys : undefined;
}

type Ring = {
  readonly keys: readonly RingKey[];
  readonly routing: Uint8Array;
  /** The key that the routing key is derived from; undefined where it has an entry of its own. */
  readonly routingFrom: string | undefined;
};

function readKeys(text: string, source: string): Ring {
  const ring = parseKeys(text);
  if (typeof ring === 'string') throw new StartError(`${source} ${ring}`);
  return ring;
}

/** The keys of a key ring, or what is wrong with it. */
function parseKeys(text: string): Ring | string {
  const entries = text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter(Boolean);
  const keys: RingKey[] = [];
  let routing: Uint8Array | undefined;
  for (const entry of entries) {
    const [, id, encoded] = /^([A-Za-z0-9_-]{1,16}):([A-Za-z0-9_+/=-]+)$/.exec(entry) ?? [];
    const master = Buffer.from(encoded ?? '', 'base64url');
    if (!id || master.length !== KEY_BYTES)
      return 'is not a key ring: it takes "id:key" entries, newest first, each key 32 bytes in base64url';
    if (id === ROUTING && routing) return 'names a key twice';
    if (id === ROUTING) routing = master;
    else keys.push(ringKey(id, master));
  }
  const oldest = keys.at(-1);
  if (!oldest) return 'holds no key';
  if (new Set(keys.map(({ id }) => id)).size < keys.length) return 'names a key twice';
  // An operator would believe that the old key is no longer needed.
  const distinct = new Set(keys.map(({ check }) => Buffer.from(check).toString('hex')));
  if (distinct.size < keys.length) return 'holds one key under two names';
  return routing
    ? { keys, routing, routingFrom: undefined }
    : { keys, routing: derive(oldest.master, 'routing'), routingFrom: oldest.id };
}
