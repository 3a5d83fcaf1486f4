import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { copyFile } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf } from './folder.ts';

/**
 * A backup is a folder: `manifest.json` says what it is, `SHA256SUMS` holds the digest of each file
 * (`sha256sum -c` checks it without Scrip), `cluster/` holds the database's files, and `keys` the key
 * ring where it was asked for.
 */

export const MANIFEST = 'manifest.json';
export const SUMS = 'SHA256SUMS';
export const CLUSTER = 'cluster';
export const KEYS = 'keys';
export const PARTIAL = '.partial';
export const FORMAT = 1;

export type Manifest = {
  readonly format: typeof FORMAT;
  /** The version of the program that made the backup. */
  readonly version: string;
  /** The major version of PostgreSQL. */
  readonly postgres: string;
  /** The installation. */
  readonly systemIdentifier: string;
  readonly startedAt: string;
  /** What was committed until then is in the backup. */
  readonly endedAt: string;
  /** The part of the log that makes the files consistent; it is in the backup. */
  readonly startLsn: string;
  readonly stopLsn: string;
  /** Where the log was archived, for a restore to a later time. */
  readonly archiveDir: string | null;
  readonly withKeys: boolean;
  /** Folders of the database, of which some are empty. */
  readonly folders: readonly string[];
  readonly files: number;
  readonly bytes: number;
};

export type Backup = { readonly path: string; readonly manifest: Manifest };

/**
 * Lists the complete backups of a folder, oldest first; of a folder that is a backup itself, that one.
 * @throws EmbeddedError where the folder cannot be read, or a manifest is damaged
 */
export async function listBackups(path: string): Promise<Backup[]> {
  const folder = resolve(path);
  const own = await readManifest(folder);
  if (own) return [own];
  const names = await readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw new EmbeddedError(`the folder ${folder} cannot be read (${codeOf(error)})`);
  });
  const found = names.filter((name) => !name.includes('.')).map((name) => readManifest(join(folder, name)));
  return (await Promise.all(found))
    .filter((backup) => backup !== undefined)
    .sort((one, other) => (one.manifest.endedAt < other.manifest.endedAt ? -1 : 1));
}

async function readManifest(path: string): Promise<Backup | undefined> {
  const file = join(path, MANIFEST);
  try {
    const manifest = JSON.parse(await readFile(file, 'utf8')) as Manifest;
    if (manifest.format !== FORMAT) throw new EmbeddedError(`the backup ${path} was made by another version`);
    if (!manifest.systemIdentifier || Number.isNaN(Date.parse(manifest.endedAt)))
      throw new SyntaxError('incomplete');
    return { path, manifest };
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw damaged(path, `${MANIFEST} cannot be read`);
  }
}

/**
 * Chooses the newest backup of a folder that a restore to a time can start from.
 * @param to undefined: the newest of all
 * @throws EmbeddedError where there is none
 */
export async function chooseBackup(path: string, to: Date | undefined): Promise<Backup> {
  const backups = await listBackups(path);
  const [oldest] = backups;
  if (!oldest) throw new EmbeddedError(await nothingIn(resolve(path)));
  const chosen = backups.findLast(({ manifest }) => to === undefined || new Date(manifest.endedAt) <= to);
  if (chosen) return chosen;
  throw new EmbeddedError(
    `${to?.toISOString()} is before the ${backups.length > 1 ? 'first ' : ''}backup in ${resolve(path)}, ` +
      `which ended at ${oldest.manifest.endedAt}: restore an older backup, or to a later time`,
  );
}

async function nothingIn(path: string): Promise<string> {
  const names = await readdir(path).catch(() => []);
  const hasPartial = names.some((name) => name.endsWith(PARTIAL)) || path.endsWith(PARTIAL);
  const hint =
    hasPartial || basename(dirname(path)).endsWith(PARTIAL) ? 'only one that was not finished' : 'none';
  return `there is no backup in ${path}: ${hint === 'none' ? 'check the path' : hint}`;
}

export type Entry = { readonly path: string; readonly sha256: string };

/**
 * Reads the list of a backup's files.
 * @throws EmbeddedError where it is incomplete, or differs from the manifest
 */
export async function readEntries({ path, manifest }: Backup): Promise<Entry[]> {
  const text = await readFile(join(path, SUMS), 'utf8').catch(() => {
    throw damaged(path, `${SUMS} is missing`);
  });
  const entries = text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [, sha256 = '', file = ''] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
      if (file === '' || file.startsWith('/') || file.split('/').includes('..'))
        throw damaged(path, `${SUMS} differs`);
      return { path: file, sha256 };
    });
  const own = entries.find((entry) => entry.path === MANIFEST);
  if (own?.sha256 !== (await digestOf(path, MANIFEST))) throw damaged(path, `${MANIFEST} differs`);
  const files = entries.filter((entry) => entry.path !== MANIFEST);
  if (files.length !== manifest.files) throw damaged(path, `${SUMS} is incomplete`);
  return files;
}

async function digestOf(path: string, file: string): Promise<string> {
  return (await copyFile(join(path, file), undefined)).sha256;
}

/**
 * Copies a file out of a backup, and holds it against its digest on the way.
 * @throws EmbeddedError where it is missing or differs
 */
export async function copyEntry({ path }: Backup, entry: Entry, target: string | undefined): Promise<void> {
  const { sha256 } = await copyFile(join(path, entry.path), target).catch((error: unknown) => {
    // Something else is missing then: the folder that is copied to.
    if (codeOf(error) !== 'ENOENT') throw error;
    throw damaged(path, `${entry.path} is missing`);
  });
  if (sha256 !== entry.sha256) throw damaged(path, `${entry.path} differs from its checksum`);
}

function damaged(path: string, what: string): EmbeddedError {
  return new EmbeddedError(`the backup ${path} is damaged: ${what}; use another backup`);
}

/** Where the key ring of a backup is; undefined where it holds none. */
export function findKeys({ path, manifest }: Backup): string | undefined {
  return manifest.withKeys ? join(path, KEYS) : undefined;
}
