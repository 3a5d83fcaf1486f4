import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';
import { StartError } from '../db/errors.ts';
import type { Kms } from './kms.ts';

/**
 * A sealed key file (envelope encryption). The ring is sealed under a data key, and a key management service
 * seals the data key. The file is one line of JSON.
 */

const FORMAT = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OWNER = Buffer.from('the sealed key ring of Scrip');

type Envelope = {
  readonly sealedKeyRing: typeof FORMAT;
  /** The service that sealed the data key, for people. */
  readonly kms: string;
  /** The data key as sealed by the service. */
  readonly dataKey: string;
  readonly ring: string;
};

/**
 * The data keys that this process has opened. A change of the ring keeps its data key, so a running process
 * does not need the service again.
 */
const opened = new Map<string, Buffer>();

/** Whether the text of a key file is sealed. */
const isSealed = (text: string): boolean => text.trimStart().startsWith('{');

/** Seals the text of a key ring, under the data key of an older text if there is one. */
export async function sealRing(ring: string, kms: Kms, older?: string): Promise<string> {
  let dataKey = older !== undefined && isSealed(older) ? parse(older, 'the key file').dataKey : undefined;
  if (dataKey === undefined || !opened.has(dataKey)) {
    const key = randomBytes(KEY_BYTES);
    dataKey = await kms.seal(key);
    opened.set(dataKey, key);
  }
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', opened.get(dataKey) as Buffer, nonce).setAAD(OWNER);
  const sealed = Buffer.concat([nonce, cipher.update(ring, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  const envelope: Envelope = {
    sealedKeyRing: FORMAT,
    kms: kms.name,
    dataKey,
    ring: sealed.toString('base64'),
  };
  return `${JSON.stringify(envelope)}\n`;
}

/**
 * Opens the text of a key file, sealed or not.
 * @param source the origin of the text, for the error
 * @throws StartError if the text is sealed and the service is missing or down; also if there is a service and
 *   the text is not sealed
 */
export async function openRing(text: string, source: string, kms: Kms | undefined): Promise<string> {
  if (!isSealed(text)) {
    if (kms)
      throw new StartError(`${source} is not sealed, and SCRIP_KMS is set: run \`scrip keyring seal\` first`);
    return text;
  }
  const { dataKey, kms: by } = parse(text, source);
  if (!kms) throw new StartError(`${source} is sealed by the KMS ${by}: set SCRIP_KMS to it`);
  if (!opened.has(dataKey)) opened.set(dataKey, await kms.open(dataKey));
  return openAgain(text, source);
}

/** Opens a text whose data key this process has opened before, without asking the service. */
export function openAgain(text: string, source: string): string {
  if (!isSealed(text)) return text;
  const { dataKey, ring } = parse(text, source);
  const key = opened.get(dataKey);
  if (!key) throw new StartError(`${source} was sealed under another data key: restart this process`);
  const bytes = Buffer.from(ring, 'base64');
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES));
    decipher.setAAD(OWNER).setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    throw new StartError(`${source} is damaged: put back a copy of it`);
  }
}

function parse(text: string, source: string): Envelope {
  try {
    const envelope = JSON.parse(text) as Envelope;
    if (envelope.sealedKeyRing === FORMAT && envelope.dataKey && envelope.ring) return envelope;
  } catch {
    // Reported below.
  }
  throw new StartError(`${source} is damaged, or was sealed by another version: put back a copy of it`);
}

const BLOCK_BYTES = 64;
const HASH_BYTES = 32;
/** The longest text that is hashed under a key: a code with its PIN. */
const LONGEST_HASHED = 64;

/**
 * Computes HMAC-SHA-256 (RFC 2104) of short texts under one key, by two one-shot hashes. An HMAC object for
 * each text costs three times as much, which was a tenth of a balance enquiry.
 */
export class KeyedHash {
  readonly #inner = Buffer.alloc(BLOCK_BYTES + LONGEST_HASHED, 0x36);
  readonly #outer = Buffer.alloc(BLOCK_BYTES + HASH_BYTES, 0x5c);

  constructor(key: Buffer) {
    for (let at = 0; at < key.length; at++) {
      this.#inner[at] = 0x36 ^ (key[at] as number);
      this.#outer[at] = 0x5c ^ (key[at] as number);
    }
  }

  /** Returns the hash in hexadecimal digits. Each character of the text must be one byte, as digits are. */
  of(text: string): string {
    if (text.length > LONGEST_HASHED) throw new RangeError('no code or PIN is as long as this');
    const end = BLOCK_BYTES + this.#inner.write(text, BLOCK_BYTES, 'latin1');
    this.#outer.write(hash('sha256', this.#inner.subarray(0, end), 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', this.#outer, 'hex');
  }
}
