import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The note of the last backup in the data folder, for `scrip doctor` and the metrics. */

export type LastBackup = { readonly endedAt: string; readonly path: string; readonly bytes: number };

const NAME = 'last-backup.json';

export async function noteBackup(dataDir: string, backup: LastBackup): Promise<void> {
  const file = join(dataDir, NAME);
  await writeFile(`${file}.new`, `${JSON.stringify(backup)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/** @returns undefined where no backup was made from this folder */
export async function readLastBackup(dataDir: string): Promise<LastBackup | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, NAME), 'utf8')) as LastBackup;
  } catch {
    return undefined;
  }
}
