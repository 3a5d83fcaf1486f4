import { randomBytes } from 'node:crypto';
import { link, open, rename, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeDataFolder } from '../db/embedded.ts';
import { StartError } from '../db/errors.ts';
import { readOrdinary, withDraft, writePrivate } from '../private-file.ts';
import { findKms, type Kms, type KmsSettings } from './kms.ts';
import { derive, KEY_BYTES, KeyRing, type RingKey, ringKey } from './ring.ts';
import { openRing, sealRing } from './sealed.ts';

/**
 * The entry of the routing key. It is not a data key: it decides the slot of a code, and is never rotated.
 */
const ROUTING = 'routing';

/** Returns a new key ring as text: a data key and the routing key. */
export function newKeyRing(): string {
  return `${newRingKey()}\n${ROUTING}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/** Returns the routing key's entry of a key ring as text. With it, a ring no longer needs its oldest key. */
export function routingEntry(ring: KeyRing): string {
  const [, routing] = ring.share();
  return `${ROUTING}:${Buffer.from(routing).toString('base64url')}`;
}

/** Returns the ids of all entries of a key ring but that of one data key. */
export function entriesBeside(ring: KeyRing, keyId: string): string[] {
  const [keys] = ring.share();
  return [...keys.map(({ id }) => id).filter((id) => id !== keyId), ROUTING];
}

/** Returns a new data key as text, `id:key`. The id begins with the time and is unique. */
export function newRingKey(): string {
  const id = `k${Math.floor(Date.now() / 1000).toString(36)}${randomBytes(3).toString('hex')}`;
  return `${id}:${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/**
 * Reads a key ring from text: `id:key` entries, separated by commas or line ends, newest first. A key is 32
 * bytes in base64url. The entry `routing:key` may be anywhere; without it, the routing key is derived from
 * the oldest data key.
 * @param source the origin of the text, for the error, which never shows the text
 * @param reload reads the text again if a key is missing
 * @throws StartError if it is not a key ring
 */
export function readKeyRing(text: string, source: string, reload?: () => string): KeyRing {
  const { keys, routing, routingFrom } = readKeys(text, source);
  return new KeyRing(keys, routing, reload && (() => readKeys(reload(), source).keys), routingFrom);
}

/** Returns the fault of a text as a key ring, or undefined. */
export function refuseKeyRing(text: string): string | undefined {
  const keys = parseKeys(text);
  return typeof keys === 'string' ? keys : undefined;
}

type Ring = {
  readonly keys: readonly RingKey[];
  readonly routing: Uint8Array;
  /** The key from which the routing key is derived; undefined if the routing key has an entry. */
  readonly routingFrom: string | undefined;
};

function readKeys(text: string, source: string): Ring {
  const ring = parseKeys(text);
  if (typeof ring === 'string') throw new StartError(`${source} ${ring}`);
  return ring;
}

/** Returns the keys of a key ring, or the fault of the text. */
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
  if (!oldest) return 'contains no key';
  if (new Set(keys.map(({ id }) => id)).size < keys.length) return 'names a key twice';
  // With the same key twice, an operator would believe that the old key is no longer needed.
  const distinct = new Set(keys.map(({ check }) => Buffer.from(check).toString('hex')));
  if (distinct.size < keys.length) return 'holds one key under two names';
  return routing
    ? { keys, routing, routingFrom: undefined }
    : { keys, routing: derive(oldest.master, 'routing'), routingFrom: oldest.id };
}

/** A key file, and the service that seals it, if there is one. */
export type KeyFile = { readonly path: string; readonly kms: Kms | undefined };

type Settings = KmsSettings & { readonly dataDir: string; readonly keysFile?: string | undefined };

/** Returns the configured key file, otherwise that of the data folder. */
export function keyFile(settings: Settings): KeyFile {
  return { path: settings.keysFile ?? join(settings.dataDir, 'keys'), kms: findKms(settings) };
}

/** Returns the key file that commands may write; undefined if the key ring is a setting or its file. */
export function ownKeyFile(settings: Settings & { readonly keys?: string | undefined }): KeyFile | undefined {
  return settings.keys === undefined && settings.keysFile === undefined ? keyFile(settings) : undefined;
}

/**
 * Creates the key file completely or not at all. It is on the disk before it is used, and never replaces one
 * that another process has just created.
 * @param text the exact content of the file; by default a new key ring
 */
export async function createKeyFile({ path, kms }: KeyFile, text?: string): Promise<void> {
  await makeDataFolder(dirname(path));
  await writeRing(path, text ?? (await sealed(`${newKeyRing()}\n`, kms)), (draft) =>
    link(draft, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    }),
  );
}

const sealed = async (ring: string, kms: Kms | undefined, older?: string) =>
  kms ? sealRing(ring, kms, older) : ring;

/**
 * Writes a key ring under a draft name.
 * @param place gives it the name of the file; unless set, it replaces the file
 */
const writeRing = (
  path: string,
  text: string,
  place: (draft: string) => Promise<void> = (draft) => rename(draft, path),
): Promise<void> =>
  withDraft(path, async (draft) => {
    await writePrivate(draft, [text]);
    await place(draft);
  });

/** Replaces the ring in a key file completely or not at all. It is on the disk when this returns. */
async function change({ path, kms }: KeyFile, changed: (ring: string) => string): Promise<void> {
  const text = await readOrdinary(path);
  const ring = changed(await openRing(text, `the key file ${path}`, kms));
  await writeRing(path, await sealed(ring, kms, text));
}

/**
 * Adds a new key at the front of a key file, before anything is sealed under it. The caller holds the lock of
 * the key ring.
 * @returns the id of the key
 */
export async function addToKeyFile(file: KeyFile): Promise<string> {
  const key = newRingKey();
  await change(file, (ring) => `${key}\n${ring}`);
  await syncFolder(file.path);
  return key.slice(0, key.indexOf(':'));
}

/** Removes a key from a key file. */
export async function removeFromKeyFile(file: KeyFile, keyId: string): Promise<void> {
  await change(file, (ring) => {
    const entries = ring.split(/[,\n]/).map((entry) => entry.trim());
    const left = entries.filter((entry) => entry !== '' && !entry.startsWith(`${keyId}:`));
    return `${left.join('\n')}\n`;
  });
  await syncFolder(file.path);
}

/**
 * Replaces the text of a key file: sealed by its key management service, or in plain text.
 * @param ring the text of the key ring
 */
export async function rewriteKeyFile({ path, kms }: KeyFile, ring: string): Promise<void> {
  await writeRing(path, await sealed(ring, kms));
  await syncFolder(path);
}

/** Whether other accounts of this machine can read a key file. */
export async function isReadByOthers({ path }: KeyFile): Promise<boolean> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  return found !== undefined && (found.mode & 0o077) !== 0;
}

/** Flushes the folder of a file: only then is a renamed file durable. */
async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r');
  await folder.sync().finally(() => folder.close());
}
