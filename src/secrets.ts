import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomInt,
  timingSafeEqual,
} from 'node:crypto';
import { StartError } from './db/start-error.ts';

/**
 * The only file that holds keys.
 *
 * A key ring is a list of keys, newest first. The first one seals; every one opens what it sealed. Codes and PINs are
 * looked up under a key derived from the oldest, so that a new key can be put in front without touching a voucher.
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
/** Nonces are drawn this many at a time: one call into the system's generator costs as much as a hundred nonces. */
const NONCE_POOL = 256;

/** A new key of a key ring, as text: `id:key`. */
export function newRingKey(): string {
  return `k${Math.floor(Date.now() / 1000).toString(36)}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/**
 * Reads a key ring from text: `id:key`, separated by commas or line ends, newest first; a key is 32 bytes in base64url.
 * @param source where it was read, for the error: it never shows the text itself
 * @throws StartError when it is no key ring
 */
export function readKeyRing(text: string, source: string): KeyRing {
  const entries = text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter(Boolean);
  const keys = entries.map((entry) => {
    const [, id, encoded] = /^([A-Za-z0-9_-]{1,16}):([A-Za-z0-9_+/=-]+)$/.exec(entry) ?? [];
    const master = Buffer.from(encoded ?? '', 'base64url');
    if (!id || master.length !== KEY_BYTES) {
      throw new StartError(
        `${source} is not a key ring: it takes "id:key" entries, newest first, each key 32 bytes in base64url`,
      );
    }
    return ringKey(id, master);
  });
  if (keys.length === 0) throw new StartError(`${source} holds no key`);
  if (new Set(keys.map((key) => key.id)).size < keys.length) throw new StartError(`${source} names a key twice`);
  return new KeyRing(keys);
}

function derive(master: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `scrip ${purpose}`, KEY_BYTES));
}

function ringKey(id: string, master: Buffer): RingKey {
  return { id, master, seal: createSecretKey(derive(master, 'seal')), check: derive(master, 'check') };
}

const BLOCK_BYTES = 64;
const HASH_BYTES = 32;
/** The longest text that is ever hashed under a key is a code with its PIN. */
const LONGEST_HASHED = 64;

/**
 * HMAC-SHA-256 (RFC 2104) of short texts under one key, by two calls of the one-shot hash: a third of what an HMAC object
 * costs that is made for each text, which was a tenth of a balance enquiry.
 */
class KeyedHash {
  readonly #inner = Buffer.alloc(BLOCK_BYTES + LONGEST_HASHED, 0x36);
  readonly #outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES, 0x5c);

  constructor(key: Buffer) {
    for (let at = 0; at < key.length; at++) {
      this.#inner[at] = 0x36 ^ (key[at] as number);
      this.#outer[at] = 0x5c ^ (key[at] as number);
    }
  }

  /** In hexadecimal digits. The text is of one byte a character, as digits are. */
  of(text: string): string {
    if (text.length > LONGEST_HASHED) throw new RangeError('no code or PIN is as long as this');
    const end = BLOCK_BYTES + this.#inner.write(text, BLOCK_BYTES, 'latin1');
    this.#outer.write(hash('sha256', this.#inner.subarray(0, end), 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', this.#outer, 'hex');
  }
}

export class KeyRing {
  readonly #keys: readonly RingKey[];
  readonly #newest: RingKey;
  readonly #lookup: KeyedHash;
  readonly #pin: KeyedHash;
  #nonces = Buffer.alloc(0);

  constructor(keys: readonly RingKey[]) {
    this.#keys = keys;
    this.#newest = keys[0] as RingKey;
    const oldest = keys.at(-1) as RingKey;
    this.#lookup = new KeyedHash(derive(oldest.master, 'lookup'));
    this.#pin = new KeyedHash(derive(oldest.master, 'pin'));
  }

  /** What a thread of this process makes the same key ring of. */
  share(): readonly RingKey[] {
    return this.#keys;
  }

  /** For each key its id and a value that proves its possession without telling it. */
  checks(): { keyId: string; check: Uint8Array }[] {
    return this.#keys.map(({ id, check }) => ({ keyId: id, check }));
  }

  /** What a voucher is found by: an HMAC of its code, 128 bits in the form of a uuid. */
  codeKey(code: string): string {
    return this.#lookup.of(code).slice(0, 32);
  }

  /** What a PIN is compared by: an HMAC of code and PIN, so that equal PINs of two vouchers look different. */
  pinKey(code: string, pin: string): string {
    return this.#pin.of(`${code}:${pin}`).slice(0, 32);
  }

  /** Seals code and PIN (AES-256-GCM) under the newest key, bound to the serial number: it opens for no other voucher. */
  seal(serialNumber: bigint, code: string, pin: string): Buffer {
    return this.sealText(String(serialNumber), code + pin);
  }

  /** Seals a text of latin letters under the newest key, bound to the name of what it belongs to. */
  sealText(owner: string, text: string): Buffer {
    const { id, seal } = this.#newest;
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

  /** Opens what `seal` made. Throws where the key is missing, or the bytes belong to another voucher or were changed. */
  open(serialNumber: bigint, sealed: Buffer): CodeAndPin {
    const text = this.openText(String(serialNumber), sealed);
    return { code: text.slice(0, 12), pin: text.slice(12) };
  }

  /** Opens what `sealText` made for the same owner; throws as `open` does. */
  openText(owner: string, sealed: Buffer): string {
    const start = 1 + (sealed[0] ?? 0);
    const id = sealed.toString('latin1', 1, start);
    const key = this.#keys.find((each) => each.id === id);
    if (!key)
      throw new Error(`what belongs to ${owner} is sealed under key ${JSON.stringify(id)}, which the key ring lacks`);
    const decipher = createDecipheriv('aes-256-gcm', key.seal, sealed.subarray(start, start + NONCE_BYTES));
    decipher.setAAD(Buffer.from(`${id}:${owner}`)).setAuthTag(sealed.subarray(-TAG_BYTES));
    const text = decipher.update(sealed.subarray(start + NONCE_BYTES, -TAG_BYTES)).toString('latin1');
    decipher.final();
    return text;
  }

  #nonce(): Buffer {
    if (this.#nonces.length === 0) this.#nonces = randomBytes(NONCE_BYTES * NONCE_POOL);
    const nonce = this.#nonces.subarray(0, NONCE_BYTES);
    this.#nonces = this.#nonces.subarray(NONCE_BYTES);
    return nonce;
  }
}

/** A voucher code: 12 digits, the first not 0, without bias. */
export function randomCode(): string {
  return String(randomInt(100_000_000_000, 1_000_000_000_000));
}

/** A PIN: 4 digits, without bias. */
export function randomPin(): string {
  return String(randomInt(10_000)).padStart(4, '0');
}

/** The secret of an API key: 256 bits, shown once. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

/** An identifier of an API key: no secret, no colon (it stands before one in HTTP Basic). */
export function newKeyId(): string {
  return `key_${randomBytes(12).toString('base64url').replace(/[-_]/g, 'x')}`;
}

/** How an API secret is stored: SHA-256. A slow hash protects guessable secrets; 256 random bits need none. */
export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** Compares two hashes of equal length in constant time. */
export function sameHash(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The secret of a webhook endpoint: 256 bits in the form of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}
