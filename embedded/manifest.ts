import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { authenticate, type Writer } from './authenticator.ts';
import { OWN_FILES } from './configuration.ts';
import { Digest, digestOf, writeChunks } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { isClusterFile, isClusterFolder } from './files.ts';
import { codeOf } from './folder.ts';
import { PARTIAL } from './folder-storage.ts';
import { openStorage } from './open-storage.ts';
import { MAJOR } from './server.ts';
import { MANIFEST, readText, type Storage } from './storage.ts';

/**
 * A backup is a folder: `manifest.json` says what it is, `SHA256SUMS` holds the digest of each file
 * (`sha256sum -c` checks it without Scrip), `SHA256SUMS.hmac` proves who wrote that list, `cluster/` holds
 * the database's files, and `keys` the key ring where it was asked for.
 */

export const SUMS = 'SHA256SUMS';
export const SUMS_TAG = `${SUMS}.hmac`;
export const CLUSTER = 'cluster';
export const KEYS = 'keys';
export const FORMAT = 2;

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
  /** The timeline of the log, and the part of it that makes the files consistent, which is in the backup. */
  readonly timeline: number;
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

export type Backup = {
  /** For messages and listings. */
  readonly path: string;
  readonly manifest: Manifest;
  /** Where its files are. */
  readonly storage: Storage;
};

/**
 * Lists the complete backups of a place, oldest first; of a place that is a backup itself, that one.
 * @param place a folder, or `s3://bucket/prefix`
 * @throws EmbeddedError if it cannot be read, or a manifest is damaged
 */
export async function listBackups(place: string): Promise<Backup[]> {
  const storage = await openStorage(place);
  const own = await readManifest(storage);
  if (own) return [own];
  const names = (await storage.list('')).filter((name) => !name.includes('.'));
  const found = names.map(async (name) => readManifest(await openStorage(`${storage.name}/${name}`)));
  return (await Promise.all(found))
    .filter((backup) => backup !== undefined)
    .sort((one, other) => (one.manifest.endedAt < other.manifest.endedAt ? -1 : 1));
}

async function readManifest(storage: Storage): Promise<Backup | undefined> {
  const path = storage.name;
  try {
    const manifest = JSON.parse(await readText(storage, MANIFEST)) as Manifest;
    if (manifest.format !== FORMAT) throw new EmbeddedError(`the backup ${path} was made by another version`);
    if (!manifest.systemIdentifier || Number.isNaN(Date.parse(manifest.endedAt)))
      throw new SyntaxError('incomplete');
    return { path, manifest, storage };
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw damaged(path, `${MANIFEST} cannot be read`);
  }
}

/**
 * Chooses the newest backup of a folder that a restore to a time can start from.
 * @param to undefined: the newest of all
 * @param isOurs whether the restore can start from a backup otherwise
 * @throws EmbeddedError if there is none, or another version of PostgreSQL made it
 */
export async function chooseBackup(
  place: string,
  to: Date | undefined,
  isOurs: (manifest: Manifest) => boolean = () => true,
): Promise<Backup> {
  const backups = (await listBackups(place)).filter(({ manifest }) => isOurs(manifest));
  const { name } = await openStorage(place);
  const [oldest] = backups;
  if (!oldest) throw new EmbeddedError(await nothingIn(name));
  const chosen = backups.findLast(({ manifest }) => to === undefined || new Date(manifest.endedAt) <= to);
  if (chosen) return checkVersion(chosen);
  throw new EmbeddedError(
    `${to?.toISOString()} is before the ${backups.length > 1 ? 'first ' : ''}backup in ${name}, ` +
      `which ended at ${oldest.manifest.endedAt}: restore an older backup, or to a later time`,
  );
}

function checkVersion(backup: Backup): Backup {
  const { path, manifest } = backup;
  if (manifest.postgres === MAJOR) return backup;
  throw new EmbeddedError(
    `the backup ${path} was made by PostgreSQL ${manifest.postgres}, and this is PostgreSQL ${MAJOR}: ` +
      `restore it with Scrip ${manifest.version}, which made it`,
  );
}

async function nothingIn(place: string): Promise<string> {
  const names = await (await openStorage(place)).list('');
  const isPartial = (name: string) => name.endsWith(PARTIAL);
  const hasPartial = names.some(isPartial) || isPartial(place) || isPartial(basename(dirname(place)));
  return `there is no backup in ${place}: ${hasPartial ? 'only one that was not finished' : 'check the path'}`;
}

/** The text whose tag is in `SHA256SUMS.hmac`. A tag of something else does not fit it. */
export const textToSign = (sums: string): string => `backup\n${sums}`;

export type Entry = { readonly path: string; readonly sha256: string };

/**
 * Reads the list of a backup's files.
 * @throws EmbeddedError if another writer made it, it is incomplete, or differs from the manifest
 */
export async function readEntries({ path, manifest, storage }: Backup, writer: Writer): Promise<Entry[]> {
  const find = (file: string) =>
    readText(storage, file).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
      return undefined;
    });
  const read = async (file: string) => {
    const text = await find(file);
    if (text === undefined) throw damaged(path, `${file} is missing`);
    return text;
  };
  const sums = await read(SUMS);
  const tag = (await find(SUMS_TAG))?.trim();
  authenticate(writer, { what: `the backup ${path}`, instead: 'another backup' }, textToSign(sums), tag);
  const entries = sums
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [, sha256 = '', file = ''] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
      if (file === '') throw damaged(path, `${SUMS} differs`);
      return { path: file, sha256 };
    });
  const own = entries.find((entry) => entry.path === MANIFEST);
  const text = await read(MANIFEST);
  // It was read before the list of files was authenticated, and may have been another one then.
  if (own?.sha256 !== digestOf(text).sha256 || !isDeepStrictEqual(JSON.parse(text), manifest))
    throw damaged(path, `${MANIFEST} differs`);
  const files = entries.filter((entry) => entry.path !== MANIFEST);
  if (files.length !== manifest.files) throw damaged(path, `${SUMS} is incomplete`);
  requireKnown(path, manifest, files);
  return files;
}

/** A restore does not use the settings of the server, but keeps those of the operator for reading. */
export const OWN_SETTINGS = OWN_FILES.map((name) => `${CLUSTER}/${name}`);

/** Refuses files and folders that no backup holds, also if a key proves who wrote them. */
function requireKnown(path: string, { folders }: Manifest, files: readonly Entry[]): void {
  const isKnown = (file: string) =>
    file === KEYS ||
    OWN_SETTINGS.includes(file) ||
    (file.startsWith(`${CLUSTER}/`) && isClusterFile(file.slice(CLUSTER.length + 1)));
  const strange =
    files.find((each) => !isKnown(each.path))?.path ?? folders.find((each) => !isClusterFolder(each));
  if (strange !== undefined) throw damaged(path, `${strange} does not belong into it`);
}

/**
 * Copies a file out of a backup, and holds it against its digest on the way.
 * @param target undefined to check it only
 * @throws EmbeddedError if it is missing or differs
 */
export async function copyEntry(
  { path, storage }: Backup,
  entry: Entry,
  target: string | undefined,
): Promise<void> {
  const digest = new Digest();
  const content = digest.of(missingIsDamage(path, entry.path, storage.read(entry.path)));
  if (target === undefined) for await (const _ of content);
  else await writeChunks(target, content);
  if (digest.end().sha256 !== entry.sha256) throw damaged(path, `${entry.path} differs from its checksum`);
}

async function* missingIsDamage(path: string, file: string, content: AsyncIterable<Uint8Array>) {
  try {
    yield* content;
  } catch (error) {
    throw codeOf(error) === 'ENOENT' ? damaged(path, `${file} is missing`) : error;
  }
}

function damaged(path: string, what: string): EmbeddedError {
  return new EmbeddedError(`the backup ${path} is damaged: ${what}; use another backup`);
}

/** The text of the key ring in a backup; undefined if it holds none. */
export async function readKeys({ manifest, storage }: Backup): Promise<string | undefined> {
  return manifest.withKeys ? readText(storage, KEYS) : undefined;
}
