import { link, open, readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeDataFolder } from '../db/embedded.ts';
import { DRAFT, draftName, writePrivate } from '../draft.ts';
import { findKms, type Kms, type KmsSettings } from './kms.ts';
import { openRing, sealRing } from './sealed.ts';
import { newKeyRing, newRingKey } from './text.ts';

/** A key file, and the service that seals it, if there is one. */
export type KeyFile = { readonly path: string; readonly kms: Kms | undefined };

type Settings = KmsSettings & { readonly dataDir: string; readonly keysFile?: string | undefined };

/** The key file: the one that is configured, else that of the data folder. */
export function keyFile(settings: Settings): KeyFile {
  return { path: settings.keysFile ?? join(settings.dataDir, 'keys'), kms: findKms(settings) };
}

/**
 * Creates the key file completely or not at all, on the disk before it is used, and never over one that
 * another process has just created.
 * @param text as it is to stand in the file; left out: a new key ring
 */
export async function createKeyFile({ path, kms }: KeyFile, text?: string): Promise<void> {
  await makeDataFolder(dirname(path));
  const draft = await writeDraft(path, text ?? (await sealed(`${newKeyRing()}\n`, kms)));
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await unlink(draft);
}

const sealed = async (ring: string, kms: Kms | undefined, older?: string) =>
  kms ? sealRing(ring, kms, older) : ring;

async function writeDraft(file: string, text: string): Promise<string> {
  const draft = draftName(file);
  await writePrivate(draft, [text]);
  return draft;
}

/** Replaces the ring in a key file: completely or not at all, and on the disk when it returns. */
async function change({ path, kms }: KeyFile, changed: (ring: string) => string): Promise<void> {
  const text = await readFile(path, 'utf8');
  const ring = changed(await openRing(text, `the key file ${path}`, kms));
  await rename(await writeDraft(path, await sealed(ring, kms, text)), path);
}

/**
 * Puts a new key in front of those of a key file, before anything is sealed under it. The caller holds
 * the lock of the key ring.
 * @returns the id of the key
 */
export async function addToKeyFile(file: KeyFile): Promise<string> {
  const key = newRingKey();
  await change(file, (ring) => `${key}\n${ring}`);
  await syncFolder(file.path);
  return key.slice(0, key.indexOf(':'));
}

/** Removes a key from a key file, and drafts that a process left behind when it died. */
export async function removeFromKeyFile(file: KeyFile, keyId: string): Promise<void> {
  await change(file, (ring) => {
    const entries = ring.split(/[,\n]/).map((entry) => entry.trim());
    const left = entries.filter((entry) => entry !== '' && !entry.startsWith(`${keyId}:`));
    return `${left.join('\n')}\n`;
  });
  await removeDrafts(file.path);
  await syncFolder(file.path);
}

/**
 * Replaces the text of a key file: sealed by its service, or in the clear.
 * @param ring the text of the key ring
 */
export async function rewriteKeyFile({ path, kms }: KeyFile, ring: string): Promise<void> {
  await rename(await writeDraft(path, await sealed(ring, kms)), path);
  await removeDrafts(path);
  await syncFolder(path);
}

async function removeDrafts(file: string): Promise<void> {
  for (const name of await readdir(dirname(file))) {
    if (DRAFT.test(name) && name.replace(DRAFT, '') === basename(file))
      await unlink(join(dirname(file), name));
  }
}

/** Whether other accounts of this machine can read a key file. */
export async function isReadByOthers({ path }: KeyFile): Promise<boolean> {
  return ((await stat(path)).mode & 0o077) !== 0;
}

/** A renamed file is durable once its folder is on the disk. */
async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r');
  await folder.sync().finally(() => folder.close());
}
