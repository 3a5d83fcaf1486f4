import { createPublicKey, hash, verify } from 'node:crypto';
import type { Signer } from '../keyring/ring.ts';
import { leafHash, rootOf } from './merkle.ts';

/** Checkpoints of closed days, in the form of transparency logs (C2SP tlog-checkpoint and -cosignature). */

/** The kinds of signatures: of a log, and of a witness. */
export const KINDS = { log: 1, witness: 4 } as const;
type Kind = (typeof KINDS)[keyof typeof KINDS];

export type Checkpoint = {
  /** The log, which is the installation. */
  readonly origin: string;
  /** The number of closed days, and the root of the tree of their closings. */
  readonly size: number;
  readonly root: Buffer;
};

/** Returns the checkpoint of closings. The origin is named after the first one, which never changes. */
export function checkpointOf(closings: readonly string[]): Checkpoint {
  const leaves = closings.map(leafHash);
  const origin = `scrip/${leaves[0]?.toString('hex').slice(0, 16)}`;
  return { origin, size: closings.length, root: rootOf(leaves) };
}

/** Returns the text of a checkpoint, which is signed. */
function textOfCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** The text that is signed, with the origin, the size and the root in it. An empty line follows. */
const NOTE = /^(([^\s+]+)\n([1-9]\d{0,8})\n([A-Za-z0-9+/]{43}=)\n)\n/;

/**
 * Reads a checkpoint, with the text that is signed.
 * @returns undefined for a text that is none: a size that is no number would compare with nothing
 */
export function readCheckpoint(note: string): (Checkpoint & { text: string }) | undefined {
  const [whole, text = '', origin = '', size, root = ''] = NOTE.exec(note) ?? [];
  if (whole === undefined) return undefined;
  return { origin, size: Number(size), root: Buffer.from(root, 'base64'), text };
}

/** The length of a public key of Ed25519. */
const KEY_BYTES = 32;

const idOf = (name: string, kind: Kind, publicKey: Buffer) =>
  hash(
    'sha256',
    Buffer.concat([Buffer.from(`${name}\n`), Buffer.from([kind]), publicKey]),
    'buffer',
  ).subarray(0, 4);

/** Returns the public key of a signer as text, `name+id+key`. */
export function verifierKey(name: string, kind: Kind, publicKey: Buffer): string {
  const key = Buffer.concat([Buffer.from([kind]), publicKey]).toString('base64');
  return `${name}+${idOf(name, kind, publicKey).toString('hex')}+${key}`;
}

const lineOf = (name: string, kind: Kind, publicKey: Buffer, signature: Buffer) =>
  `\u2014 ${name} ${Buffer.concat([idOf(name, kind, publicKey), signature]).toString('base64')}\n`;

/** Returns a checkpoint that the log has signed, under each of its keys. */
export const signCheckpoint = (checkpoint: Checkpoint, signers: readonly Signer[]) =>
  signNote(textOfCheckpoint(checkpoint), checkpoint.origin, signers);

/** Returns the public keys of the log, signed under each of them: so a known key confirms a new one. */
export function signKeys(origin: string, signers: readonly Signer[]): string {
  const keys = signers.map(({ publicKey }) => `${verifierKey(origin, KINDS.log, publicKey)}\n`);
  return signNote(keys.join(''), origin, signers);
}

function signNote(text: string, origin: string, signers: readonly Signer[]): string {
  const lines = signers.map(({ publicKey, sign }) => lineOf(origin, KINDS.log, publicKey, sign(text)));
  return `${text}\n${lines.join('')}`;
}

/** Returns the line by which a witness confirms a checkpoint at a time. */
export function cosign(text: string, name: string, { publicKey, sign }: Signer, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1000);
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = sign(`cosignature/v1\ntime ${seconds}\n${text}`);
  return lineOf(name, KINDS.witness, publicKey, Buffer.concat([time, signature]));
}

/** Base64 of the id of a key and a signature of Ed25519, 68 bytes. */
const SIGNATURE = /^[A-Za-z0-9+/]{90}[AEIMQUYcgkosw048]=$/;

/** Whether one of the keys of the log, `name+id+key`, has signed a checkpoint, or its keys (a note). */
export function isSigned(note: string, origin: string, keys: readonly string[]): boolean {
  const end = note.indexOf('\n\n') + 1;
  const text = Buffer.from(note.slice(0, end));
  const start = `\u2014 ${origin} `;
  const signatures = note
    .slice(end + 1)
    .split('\n')
    .filter((line) => line.startsWith(start) && SIGNATURE.test(line.slice(start.length)))
    .map((line) => Buffer.from(line.slice(start.length), 'base64'));
  return keys.some((key) => {
    const publicKey = Buffer.from(key.split('+').slice(2).join('+'), 'base64').subarray(1);
    const isKey = publicKey.length === KEY_BYTES && verifierKey(origin, KINDS.log, publicKey) === key;
    if (!isKey) return false;
    const prefix = Buffer.from('302a300506032b6570032100', 'hex');
    const spki = createPublicKey({ key: Buffer.concat([prefix, publicKey]), format: 'der', type: 'spki' });
    // As for every verifier, the first line of the key counts.
    const id = idOf(origin, KINDS.log, publicKey);
    const signature = signatures.find((each) => each.subarray(0, id.length).equals(id));
    return signature !== undefined && verify(null, text, spki, signature.subarray(id.length));
  });
}
