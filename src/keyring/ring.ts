import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { SLOTS } from '../db/buckets.ts';
import { StartError } from '../db/errors.ts';
import { KeyedHash } from './keyed-hash.ts';

/**
 * The only file that holds keys.
 *
 * A key ring is a list of keys. The database tells which of them are in use, in the order in which they
 * were put to use (src/keyring/store.ts): the newest of these seals what is new and makes what it is
 * looked up by; while a rotation is under way, what is older is looked up under the others too. Every key
 * of the ring opens what it sealed.
 */

/** A code and its PIN. Neither may reach a log, an error, or any page that does not ask for it. */
export type CodeAndPin = { readonly code: string; readonly pin: string };

type RingKey = {
  readonly id: string;
  readonly seal: KeyObject;
  readonly check: Uint8Array;
  readonly master: Uint8Array;
};

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/**
 * Nonces are drawn this many at a time: one call into the system's generator costs as much as a hundred
 * nonces.
 */
const NONCE_POOL = 256;

/**
 * The entry of the routing key in a key ring. It is no data key: it gives a code its slot, and is never
 * rotated.
 */
const ROUTING = 'routing';

/** A new key ring as text: a data key, and the routing key. */
export function newKeyRing(): string {
  return `${newRingKey()}\n${ROUTING}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/** A new data key of a key ring, as text: `id:key`. The id begins with the time; no two are alike. */
export function newRingKey(): string {
  const id = `k${Math.floor(Date.now() / 1000).toString(36)}${randomBytes(3).toString('hex')}`;
  return `${id}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/**
 * Reads a key ring from text: `id:key`, separated by commas or line ends, newest first; a key is 32 bytes
 * in base64url. The entry `routing:key` may stand anywhere; without it, the routing key is derived from
 * the oldest data key.
 * @param source where it was read, for the error: it never shows the text itself
 * @param reload reads it again, where a key turns up that it did not hold
 * @throws StartError when it is no key ring
 */
export function readKeyRing(text: string, source: string, reload?: () => string): KeyRing {
  const { keys, routing } = readKeys(text, source);
  return new KeyRing(keys, routing, reload && (() => readKeys(reload(), source).keys));
}

/** What is wrong with a text as a key ring, or undefined. */
export function refuseKeyRing(text: string): string | undefined {
  const keys = parseKeys(text);
  return typeof keys === 'string' ? keys : undefined;
}

type Ring = { readonly keys: readonly RingKey[]; readonly routing: Uint8Array };

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
  // Whoever put it to use would believe that the old one is of no worth any more.
  const distinct = new Set(keys.map(({ check }) => Buffer.from(check).toString('hex')));
  if (distinct.size < keys.length) return 'holds one key under two names';
  return { keys, routing: routing ?? derive(oldest.master, 'routing') };
}

function derive(master: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `scrip ${purpose}`, KEY_BYTES));
}

function ringKey(id: string, master: Buffer): RingKey {
  return { id, master, seal: createSecretKey(derive(master, 'seal')), check: derive(master, 'check') };
}

/** A key that vouchers are looked up under. */
type KeyInUse = RingKey & { readonly code: KeyedHash; readonly pin: KeyedHash };

function inUse(key: RingKey): KeyInUse {
  return {
    ...key,
    code: new KeyedHash(derive(key.master, 'lookup')),
    pin: new KeyedHash(derive(key.master, 'pin')),
  };
}

/**
 * What a voucher is looked up by, and its PIN compared by, under one key: 128 bits each in the form of a
 * uuid.
 */
export type LookUp = { readonly codeKey: string; readonly pinKey: string };

/** The key ring of this process lacks a key that is in use: it has to be given the new one. */
class KeyMissing extends Error {
  readonly code = 'EKEYMISSING';
}

export class KeyRing {
  #keys: readonly RingKey[];
  readonly #reload: (() => readonly RingKey[]) | undefined;
  /** The keys in use, in the order in which they were put to use. */
  #inUse: readonly KeyInUse[];
  #current: KeyInUse;
  readonly #routingKey: Uint8Array;
  readonly #routing: KeyedHash;
  #nonces = Buffer.alloc(0);

  /** Until it is told which keys are in use, that is the first one. */
  constructor(keys: readonly RingKey[], routing: Uint8Array, reload?: () => readonly RingKey[]) {
    this.#keys = keys;
    this.#reload = reload;
    this.#routingKey = routing;
    this.#routing = new KeyedHash(derive(routing, 'slot'));
    this.#current = inUse(keys[0] as RingKey);
    this.#inUse = [this.#current];
  }

  /**
   * What a thread of this process makes a key ring of that seals as this one does now: the parameters of
   * the constructor.
   */
  share(): [keys: readonly RingKey[], routing: Uint8Array] {
    const { id, seal, check, master } = this.#current;
    return [[{ id, seal, check, master }], this.#routingKey];
  }

  /** The slot of a code, under the routing key: the same for ever (docs/how-to/citus.md). */
  slotOf(code: string): number {
    return Number.parseInt(this.#routing.of(code).slice(0, 2), 16) % SLOTS;
  }

  /** A value that proves possession of the routing key without revealing it. */
  get routingCheck(): Uint8Array {
    return derive(this.#routingKey, 'check');
  }

  /** A keyed hash of a text, the same for ever: nobody without the key ring can find the text by trying. */
  fingerprintOf(text: string): Buffer {
    return createHmac('sha256', derive(this.#routingKey, 'fingerprint')).update(text).digest();
  }

  /** The id of the key that seals. */
  get current(): string {
    return this.#current.id;
  }

  /** The ids of the keys in use, oldest first. The same list as long as nothing changes. */
  get inUse(): readonly { readonly id: string }[] {
    return this.#inUse;
  }

  /** For each key its id and a value that proves its possession without telling it. */
  checks(): { keyId: string; check: Uint8Array }[] {
    return this.#keys.map(({ id, check }) => ({ keyId: id, check }));
  }

  /** Whether it holds a key; read again first where it does not. */
  holds(id: string): boolean {
    return this.#find(id) !== undefined;
  }

  /**
   * Uses these keys from now on, oldest first.
   * @throws KeyMissing where one of them is missing; then nothing changes
   */
  use(ids: readonly string[]): void {
    if (ids.length === this.#inUse.length && ids.every((id, index) => id === this.#inUse[index]?.id)) return;
    const keys = ids.map((id) => this.#get(id, 'what is looked up'));
    this.#inUse = keys.map(inUse);
    this.#current = this.#inUse.at(-1) ?? this.#current;
  }

  /** What a new voucher will be found by. */
  codeKey(code: string): string {
    return codeKeyUnder(this.#current, code);
  }

  /** What the PIN of a new voucher is compared by: equal PINs of two vouchers look different. */
  pinKey(code: string, pin: string): string {
    return pinKeyUnder(this.#current, code, pin);
  }

  /** What a voucher could be found by, under each key in use, oldest first. */
  lookUps({ code, pin }: CodeAndPin): LookUp[] {
    return this.#inUse.map((key) => ({
      codeKey: codeKeyUnder(key, code),
      pinKey: pinKeyUnder(key, code, pin),
    }));
  }

  /** What vouchers with this code are found by that are not looked up under the newest key yet. */
  olderCodeKeys(code: string): string[] {
    return this.#inUse.slice(0, -1).map((key) => codeKeyUnder(key, code));
  }

  /**
   * Seals code and PIN (AES-256-GCM) under the newest key in use, bound to the serial number: it opens
   * for no other voucher.
   */
  seal(serialNumber: bigint, code: string, pin: string): Buffer {
    return this.sealText(String(serialNumber), code + pin);
  }

  /** Seals a text of latin letters under the newest key in use, bound to the name of what it belongs to. */
  sealText(owner: string, text: string): Buffer {
    const { id, seal } = this.#current;
    const nonce = this.#nonce();
    const cipher = createCipheriv('aes-256-gcm', seal, nonce).setAAD(Buffer.from(`${id}:${owner}`));
    const sealed = cipher.update(text, 'latin1');
    return Buffer.concat([
      Buffer.from([id.length]),
      Buffer.from(id),
      nonce,
      sealed,
      cipher.final(),
      cipher.getAuthTag(),
    ]);
  }

  /**
   * Opens what `seal` made. Throws where the key is missing, or the bytes belong to another voucher or
   * were changed.
   */
  open(serialNumber: bigint, sealed: Buffer): CodeAndPin {
    const text = this.openText(String(serialNumber), sealed);
    return { code: text.slice(0, 12), pin: text.slice(12) };
  }

  /** Opens what `sealText` made for the same owner; throws as `open` does. */
  openText(owner: string, sealed: Buffer): string {
    const id = sealedUnder(sealed);
    const start = 1 + id.length;
    const key = this.#get(id, `what belongs to ${owner}`);
    const decipher = createDecipheriv('aes-256-gcm', key.seal, sealed.subarray(start, start + NONCE_BYTES));
    decipher.setAAD(Buffer.from(`${id}:${owner}`)).setAuthTag(sealed.subarray(-TAG_BYTES));
    const text = decipher.update(sealed.subarray(start + NONCE_BYTES, -TAG_BYTES)).toString('latin1');
    decipher.final();
    return text;
  }

  #get(id: string, what: string): RingKey {
    const key = this.#find(id);
    if (!key)
      throw new KeyMissing(`${what} is sealed under key ${JSON.stringify(id)}, which the key ring lacks`);
    return key;
  }

  #find(id: string): RingKey | undefined {
    const find = () => this.#keys.find((each) => each.id === id);
    const key = find();
    if (key || !this.#reload) return key;
    this.#keys = this.#reload();
    return find();
  }

  #nonce(): Buffer {
    if (this.#nonces.length === 0) this.#nonces = randomBytes(NONCE_BYTES * NONCE_POOL);
    const nonce = this.#nonces.subarray(0, NONCE_BYTES);
    this.#nonces = this.#nonces.subarray(NONCE_BYTES);
    return nonce;
  }
}

/** The id of the key that something is sealed under. */
export function sealedUnder(sealed: Buffer): string {
  return sealed.toString('latin1', 1, 1 + (sealed[0] ?? 0));
}

function codeKeyUnder(key: KeyInUse, code: string): string {
  return key.code.of(code).slice(0, 32);
}

/** Of code and PIN, so that equal PINs of two vouchers look different. */
function pinKeyUnder(key: KeyInUse, code: string, pin: string): string {
  return key.pin.of(`${code}:${pin}`).slice(0, 32);
}
