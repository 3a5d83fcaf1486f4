import { link, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeDataFolder } from '../db/embedded.ts';
import { DRAFT, draftName, writePrivate } from '../draft.ts';
import { newKeyRing, newRingKey } from './text.ts';

/** The key file: the one that is configured, else that of the data folder. */
export function keyFile({ dataDir, keysFile }: { dataDir: string; keysFile?: string | undefined }): string {
  return keysFile ?? join(dataDir, 'keys');
}

/**
 * Creates the key file completely or not at all, on the disk before it is used, and never over one that
 * another process has just created.
 */
export async function createKeyFile(file: string, text = `${newKeyRing()}\n`): Promise<void> {
  await makeDataFolder(dirname(file));
  const draft = await writeDraft(file, text);
  await link(draft, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await unlink(draft);
}

async function writeDraft(file: string, text: string): Promise<string> {
  const draft = draftName(file);
  await writePrivate(draft, [text]);
  return draft;
}

/**
 * Puts a new key in front of those of a key file: completely or not at all, and on the disk before
 * anything is sealed under it. The caller holds the lock of the key ring.
 * @returns the id of the key
 */
export async function addToKeyFile(file: string): Promise<string> {
  const key = newRingKey();
  await rename(await writeDraft(file, `${key}\n${await readFile(file, 'utf8')}`), file);
  await syncFolder(file);
  return key.slice(0, key.indexOf(':'));
}

/** Removes a key from a key file, and drafts that a process left behind when it died. */
export async function removeFromKeyFile(file: string, keyId: string): Promise<void> {
  const entries = (await readFile(file, 'utf8')).split(/[,\n]/).map((entry) => entry.trim());
  const left = entries.filter((entry) => entry !== '' && !entry.startsWith(`${keyId}:`));
  await rename(await writeDraft(file, `${left.join('\n')}\n`), file);
  for (const name of await readdir(dirname(file))) {
    if (DRAFT.test(name) && name.replace(DRAFT, '') === basename(file))
      await unlink(join(dirname(file), name));
  }
  await syncFolder(file);
}

/** A renamed file is durable once its folder is on the disk. */
async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r');
  await folder.sync().finally(() => folder.close());
}
