import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { sameHash } from '../credentials.ts';
import { SLOTS } from '../db/buckets.ts';
import { KeyedHash } from './sealed.ts';

/**
 * The only file that holds keys in memory.
 *
 * A key ring is a list of data keys. The database records which are in use, and in which order
 * (src/keyring/store.ts). The newest one seals new vouchers and derives their look-up values. During a
 * rotation, older vouchers are looked up under the older key too. Every key of the ring opens the data that
 * it sealed.
 */

/** A code and its PIN. They must never reach a log, an error, or a page that does not ask for them. */
export type CodeAndPin = { readonly code: string; readonly pin: string };

export type RingKey = {
  readonly id: string;
  readonly seal: KeyObject;
  readonly check: Uint8Array;
  readonly master: Uint8Array;
};

export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/**
 * The number of nonces drawn at once: one call of the system's generator costs as much as a hundred nonces.
 */
const NONCE_POOL = 256;

/** Derives a key for one purpose from a master key (HKDF). */
export function derive(master: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', `scrip ${purpose}`, KEY_BYTES));
}

/** Returns a data key from its id and its 32 bytes. */
export function ringKey(id: string, master: Buffer): RingKey {
  return { id, master, seal: createSecretKey(derive(master, 'seal')), check: derive(master, 'check') };
}

/** An Ed25519 key that signs what is published. */
export type Signer = { readonly publicKey: Buffer; readonly sign: (text: string) => Buffer };

/** What stands before the 32 bytes of a private Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Returns the signer with a private key of 32 bytes. */
export function signerOf(seed: Uint8Array): Signer {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' });
  return { publicKey: Buffer.from(x, 'base64url'), sign: (text) => sign(null, Buffer.from(text), key) };
}

/** A key under which vouchers are looked up. */
type KeyInUse = RingKey & { readonly mask: KeyedHash; readonly code: KeyedHash; readonly pin: KeyedHash };

function inUse(key: RingKey): KeyInUse {
  return {
    ...key,
    mask: new KeyedHash(derive(key.master, 'mask')),
    code: new KeyedHash(derive(key.master, 'lookup')),
    pin: new KeyedHash(derive(key.master, 'pin')),
  };
}

/** The values by which a voucher is found and its PIN is compared, under one key: 128 bits each, as uuids. */
export type LookUp = { readonly codeKey: string; readonly pinKey: string };

/** This process lacks a key that is in use. */
class KeyMissing extends Error {
  readonly code = 'EKEYMISSING';
}

export class KeyRing {
  #keys: readonly RingKey[];
  readonly #reload: (() => readonly RingKey[]) | undefined;
  /** The keys in use, oldest first. */
  #inUse: readonly KeyInUse[];
  #current: KeyInUse;
  readonly #routingKey: Uint8Array;
  readonly #routing: KeyedHash;
  /** The key from which the routing key is derived; undefined if the routing key has an entry. */
  readonly routingFrom: string | undefined;
  #nonces = Buffer.alloc(0);

  /** The first key is in use until `use` is called with those of the database. */
  constructor(
    keys: readonly RingKey[],
    routing: Uint8Array,
    reload?: () => readonly RingKey[],
    routingFrom?: string,
  ) {
    this.routingFrom = routingFrom;
    this.#keys = keys;
    this.#reload = reload;
    this.#routingKey = routing;
    this.#routing = new KeyedHash(derive(routing, 'slot'));
    this.#current = inUse(keys[0] as RingKey);
    this.#inUse = [this.#current];
  }

  /** Returns the parameters with which a thread of this process creates an equal key ring. */
  share(): [keys: readonly RingKey[], routing: Uint8Array] {
    const { id, seal, check, master } = this.#current;
    return [[{ id, seal, check, master }], this.#routingKey];
  }

  /** Returns the slot of a code under the routing key. It never changes. */
  slotOf(code: string): number {
    return Number.parseInt(this.#routing.of(code).slice(0, 2), 16) % SLOTS;
  }

  /** Returns a value that proves possession of the routing key without revealing it. */
  get routingCheck(): Uint8Array {
    return derive(this.#routingKey, 'check');
  }

  /**
   * Returns a keyed hash of a text that never changes. Without the key ring, the text cannot be found by
   * guessing.
   */
  fingerprintOf(text: string): Buffer {
    return createHmac('sha256', derive(this.#routingKey, 'fingerprint')).update(text).digest();
  }

  /**
   * Returns the tag of a text, `keyId.code`, which proves that a holder of the newest key wrote it. For files
   * that are kept where others can change them, such as backups.
   */
  sign(text: string): string {
    return tagUnder(this.#current, text);
  }

  /** Compares a text with a tag, under the key that the tag names. */
  verify(text: string, tag: string): 'authentic' | 'changed' | 'unknown key' {
    const key = this.#find(tag.slice(0, tag.indexOf('.')));
    if (!key) return 'unknown key';
    return sameHash(Buffer.from(tagUnder(key, text)), Buffer.from(tag)) ? 'authentic' : 'changed';
  }

  /**
   * Returns a signer for each key of the ring. After a rotation, the older key signs too until it is dropped,
   * so that everybody who knows it can learn the newer one.
   */
  signers(): Signer[] {
    return this.#keys.map(({ master }) => signerOf(derive(master, 'checkpoint')));
  }

  /** Returns the id of the key that seals. */
  get current(): string {
    return this.#current.id;
  }

  /** Returns the ids of the keys in use, oldest first. The list is the same object until it changes. */
  get inUse(): readonly { readonly id: string }[] {
    return this.#inUse;
  }

  /** Returns the id of each key, and a value that proves its possession without revealing it. */
  checks(): { keyId: string; check: Uint8Array }[] {
    return this.#keys.map(({ id, check }) => ({ keyId: id, check }));
  }

  /** Whether the ring contains a key. If not, the ring is read again first. */
  holds(id: string): boolean {
    return this.#find(id) !== undefined;
  }

  /**
   * Uses these keys from now on, oldest first.
   * @throws KeyMissing if one is missing; then the ring does not change
   */
  use(ids: readonly string[]): void {
    if (ids.length === this.#inUse.length && ids.every((id, index) => id === this.#inUse[index]?.id)) return;
    const keys = ids.map((id) => this.#get(id, 'what is looked up'));
    this.#inUse = keys.map(inUse);
    this.#current = this.#inUse.at(-1) ?? this.#current;
  }

  /** Returns the value by which a new voucher is found. */
  codeKey(code: string): string {
    return codeKeyUnder(this.#current, code);
  }

  /**
   * Returns the value with which the PIN of a new voucher is compared. Equal PINs of two vouchers have
   * different values.
   */
  pinKey(code: string, pin: string): string {
    return pinKeyUnder(this.#current, code, pin);
  }

  /** Returns the values of a voucher under each key in use, oldest first. */
  lookUps({ code, pin }: CodeAndPin): LookUp[] {
    return this.#inUse.map((key) => ({
      codeKey: codeKeyUnder(key, code),
      pinKey: pinKeyUnder(key, code, pin),
    }));
  }

  /** Returns the values of a code under all keys in use except the newest. */
  olderCodeKeys(code: string): string[] {
    return this.#inUse.slice(0, -1).map((key) => codeKeyUnder(key, code));
  }

  /**
   * Returns the ranges of values that the codes with these digits at their ends have, one under each key in
   * use. A few other codes are in the same range.
   */
  rangesOfMask(ends: string): { readonly first: string; readonly last: string }[] {
    return this.#inUse.map(({ mask }) => {
      const prefix = mask.of(ends).slice(0, MASK_DIGITS);
      return { first: prefix.padEnd(KEY_DIGITS, '0'), last: prefix.padEnd(KEY_DIGITS, 'f') };
    });
  }

  /**
   * Seals code and PIN (AES-256-GCM) under the newest key. They are bound to the serial number and cannot be
   * opened for another voucher.
   */
  seal(serialNumber: bigint, code: string, pin: string): Buffer {
    return this.sealText(String(serialNumber), code + pin);
  }

  /** Seals a Latin-1 text under the newest key, bound to the name of its owner. */
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
   * Opens the result of `seal`.
   * @throws if the key is missing, or the bytes were changed or belong to another voucher
   */
  open(serialNumber: bigint, sealed: Buffer): CodeAndPin {
    const text = this.openText(String(serialNumber), sealed);
    return { code: text.slice(0, 12), pin: text.slice(12) };
  }

  /**
   * Opens the result of `sealText` for the same owner.
   * @throws as `open` does
   */
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

function tagUnder({ id, master }: RingKey, text: string): string {
  const code = createHmac('sha256', derive(master, 'authenticate')).update(text).digest('base64url');
  return `${id}.${code}`;
}

/** Returns the id of the key under which bytes are sealed. */
export function sealedUnder(sealed: Buffer): string {
  return sealed.toString('latin1', 1, 1 + (sealed[0] ?? 0));
}

/** 128 bits in hexadecimal digits, as uuids have. */
const KEY_DIGITS = 32;
/** 32 bits: on average, a hundred million vouchers have less than one in a range. */
const MASK_DIGITS = 8;

/**
 * Returns a code's value under a key. It begins with a hash of the digits that a masked code shows, so that
 * the index of codes also finds vouchers by their masked code.
 */
function codeKeyUnder(key: KeyInUse, code: string): string {
  const ends = code.slice(0, 4) + code.slice(-4);
  return key.mask.of(ends).slice(0, MASK_DIGITS) + key.code.of(code).slice(0, KEY_DIGITS - MASK_DIGITS);
}

/** Returns the PIN's value under a key. It includes the code, so that equal PINs have different values. */
function pinKeyUnder(key: KeyInUse, code: string, pin: string): string {
  return key.pin.of(`${code}:${pin}`).slice(0, KEY_DIGITS);
}
