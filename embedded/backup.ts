import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type pg from 'pg';
import { HISTORY, pruneArchive, SEGMENT, segmentAt, segmentNumber } from './archive.ts';
import type { Authenticator } from './authenticator.ts';
import { connect, systemIdentifier } from './connect.ts';
import { contentOf, digestOf } from './copy.ts';
import { Copying } from './copying.ts';
import { EmbeddedError } from './error.ts';
import { isClusterFile, isClusterFolder } from './files.ts';
import { codeOf, describeFolder, type Folder, readSettings } from './folder.ts';
import {
  type Backup,
  CLUSTER,
  FORMAT,
  KEYS,
  listBackups,
  type Manifest,
  OWN_SETTINGS,
  SUMS,
  SUMS_TAG,
  textToSign,
} from './manifest.ts';
import { openStorage } from './open-storage.ts';
import { MAJOR } from './server.ts';
import { MANIFEST, type Storage } from './storage.ts';

/**
 * Online backup by PostgreSQL's low-level API: the files are copied while the server works, and the log
 * of that time, which is in the backup too, makes them consistent. (The shipped programs hold no
 * pg_basebackup.)
 */

export type BackupOptions = {
  /** The owner's address. */
  readonly ownerUrl: string;
  /** The version of the program, for the manifest. */
  readonly version: string;
  /** Proves later that this installation made the backup. */
  readonly writer: Authenticator;
  /** The key ring, where the backup is to hold it. */
  readonly keys?: string | undefined;
  /** How many backups stay in the folder; older ones are removed once the new one is complete. */
  readonly keep?: number | undefined;
};

/** Its name is a lock as well: the server has one slot of a name. It goes with the session. */
const SLOT = 'scrip_backup';
const ALREADY_EXISTS = '42710';
const CONTROL = 'global/pg_control';
/** Copied at the end: the log, whose segments come and go, and what the end of the backup decides. */
const LAST = /^(global\/pg_control|backup_label|pg_wal\/.*)$/;
/** Beside the database's files: the log of the backup, the manifest. */
const RESERVE_BYTES = 64 * 1024 ** 2;

/**
 * Backs up the database of a data folder whose server runs, into a new folder below `into`.
 * @param into a folder, or `s3://bucket/prefix`
 * @returns the backup, complete and durable
 * @throws EmbeddedError, one line; nothing is left behind then
 */
export async function backUp(root: string, into: string, options: BackupOptions): Promise<Backup> {
  const folder = describeFolder(await realpath(root));
  const storage = await openStorage(into);
  const client = await connect(options.ownerUrl);
  try {
    const identifier = await systemIdentifier(client);
    const others = await checkTarget(storage, identifier);
    await takeLock(client);
    await storage.removeDrafts();
    const backup = await make(folder, storage, client, identifier, options);
    await retain(storage, [...others, backup], options.keep, backup.manifest.archiveDir);
    return backup;
  } finally {
    await client.end();
  }
}

/** A place holds the backups of one installation: retention must not remove those of another one. */
async function checkTarget(storage: Storage, identifier: string): Promise<Backup[]> {
  await storage.prepare();
  const others = await listBackups(storage.name);
  const [other] = others;
  if (other?.path === storage.name)
    throw new EmbeddedError(`the folder ${other.path} is a backup: name the one above`);
  if (others.some(({ manifest }) => manifest.systemIdentifier !== identifier))
    throw new EmbeddedError(
      `the folder ${storage.name} contains backups of another installation: use another folder`,
    );
  return others;
}

/** The slot also keeps the server from removing the log that the backup needs. */
async function takeLock(client: pg.Client): Promise<void> {
  await client
    .query('select pg_create_physical_replication_slot($1, true, true)', [SLOT])
    .catch((error: unknown) => {
      if (codeOf(error) !== ALREADY_EXISTS) throw error;
      throw new EmbeddedError('another backup of this database is being made: wait until it is done');
    });
}

async function make(
  folder: Folder,
  storage: Storage,
  client: pg.Client,
  identifier: string,
  options: BackupOptions,
): Promise<Backup> {
  const startedAt = new Date().toISOString();
  const name = startedAt.replace(/[-:.]/g, '');
  const draft = await storage.begin(name).catch((error: unknown) => {
    throw explain(error, storage.name);
  });
  try {
    await checkSpace(folder, storage);
    const copied = new Copying(draft, storage.parallel);
    await draft.makeFolder(CLUSTER);
    const { folders, ...positions } = await copyCluster(folder, client, copied);
    if (options.keys !== undefined) await copied.text(KEYS, options.keys);
    const manifest: Manifest = {
      format: FORMAT,
      version: options.version,
      postgres: MAJOR,
      systemIdentifier: identifier,
      startedAt,
      ...positions,
      archiveDir: (await readSettings(folder))?.archiveDir ?? null,
      withKeys: options.keys !== undefined,
      folders,
      files: copied.files.size,
      bytes: [...copied.files.values()].reduce((sum, { bytes }) => sum + bytes, 0),
    };
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    const lines = [...copied.files, [MANIFEST, digestOf(text)] as const].map(
      ([file, { sha256 }]) => `${sha256}  ${file}\n`,
    );
    const sums = lines.join('');
    await draft.write(SUMS, contentOf(sums));
    await draft.write(SUMS_TAG, contentOf(`${options.writer.sign(textToSign(sums))}\n`));
    await draft.commit([CLUSTER, ...folders.map((each) => `${CLUSTER}/${each}`)], { file: MANIFEST, text });
    const path = `${storage.name}/${name}`;
    return { path, manifest, storage: await openStorage(path) };
  } catch (error) {
    await draft.abandon().catch(() => {});
    throw explain(error, storage.name);
  }
}

function explain(error: unknown, into: string): unknown {
  const code = codeOf(error) ?? '';
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new EmbeddedError(
      `the backup folder ${into} is full: free space, or use another folder; nothing was kept`,
    );
  if (['EACCES', 'EPERM', 'EROFS', 'EIO', 'EFBIG'].includes(code))
    return new EmbeddedError(`the backup folder ${into} cannot be written (${code}); nothing was kept`);
  return error;
}

async function checkSpace({ cluster }: Folder, storage: Storage): Promise<void> {
  const free = await storage.free();
  if (free === undefined) return;
  let needed = RESERVE_BYTES;
  for await (const { path, isFolder } of walk(cluster))
    if (!isFolder && !LAST.test(path))
      needed += (await stat(join(cluster, path)).catch(() => undefined))?.size ?? 0;
  if (needed <= free) return;
  const inMb = (bytes: number) => `${Math.ceil(bytes / 1024 ** 2)} MB`;
  throw new EmbeddedError(
    `the backup folder ${storage.name} is too full: the backup needs ${inMb(needed)}, and ${inMb(free)} are free`,
  );
}

type Positions = Pick<Manifest, 'endedAt' | 'timeline' | 'startLsn' | 'stopLsn' | 'folders'>;

async function copyCluster({ cluster }: Folder, client: pg.Client, copied: Copying): Promise<Positions> {
  const { rows: starts } = await client.query<{ lsn: string }>(
    `select pg_backup_start('scrip', true)::text as lsn`,
  );
  const folders: string[] = [];
  for await (const { path, isFolder } of walk(cluster)) {
    if (isFolder) {
      await copied.makeFolder(path);
      folders.push(path);
    } else if (!LAST.test(path)) {
      await copied.file(`${CLUSTER}/${path}`, join(cluster, path));
    }
  }
  for (const file of OWN_SETTINGS) await copied.file(file, join(cluster, basename(file)));
  await copied.done();
  await copied.text(`${CLUSTER}/${CONTROL}`, await readSteadily(join(cluster, CONTROL)));
  const { rows: stops } = await client.query<{ lsn: string; label: string; map: string; at: Date }>(
    `
      select lsn::text, labelfile as label, spcmapfile as map, clock_timestamp() as at
      from pg_backup_stop(false)`,
  );
  const { lsn: startLsn } = starts[0] as { lsn: string };
  const { lsn: stopLsn, label, map, at } = stops[0] as (typeof stops)[number];
  if (map !== '') throw new EmbeddedError('the database has tablespaces, which a backup cannot hold');
  await copied.text(`${CLUSTER}/backup_label`, label);
  await copyLog(join(cluster, 'pg_wal'), segmentAt(startLsn), segmentAt(stopLsn), copied);
  const timeline = Number(/^START TIMELINE: (\d+)$/m.exec(label)?.[1]);
  return { endedAt: at.toISOString(), timeline, startLsn, stopLsn, folders };
}

/** The segments from the beginning of the backup to its end, and the history of the timelines. */
async function copyLog(source: string, first: number, last: number, copied: Copying): Promise<void> {
  for (const name of await readdir(source)) {
    const isNeeded = SEGMENT.test(name) && segmentNumber(name) >= first && segmentNumber(name) <= last;
    if (isNeeded || HISTORY.test(name)) await copied.file(`${CLUSTER}/pg_wal/${name}`, join(source, name));
  }
  await copied.done();
}

/** Reads a small file that the server may be writing just then: until it is the same twice. */
async function readSteadily(file: string): Promise<Buffer> {
  for (let before = await readFile(file); ; ) {
    const now = await readFile(file);
    if (now.equals(before)) return now;
    before = now;
  }
}

/** The files and folders of a cluster that belong into a backup, a folder before what it holds. */
async function* walk(cluster: string, at = ''): AsyncGenerator<{ path: string; isFolder: boolean }> {
  for (const entry of await readdir(join(cluster, at), { withFileTypes: true })) {
    const path = join(at, entry.name);
    if (entry.isSymbolicLink())
      throw new EmbeddedError(`the database has a symbolic link, ${path}: it cannot be backed up`);
    const isFolder = entry.isDirectory();
    if (!(isFolder ? isClusterFolder(path) : isClusterFile(path))) continue;
    yield { path, isFolder };
    if (isFolder) yield* walk(cluster, path);
  }
}

/** Removes the oldest backups, and the archived log that only they needed. */
async function retain(
  storage: Storage,
  backups: readonly Backup[],
  keep: number | undefined,
  archiveDir: string | null,
): Promise<void> {
  if (keep === undefined) return;
  const kept = backups.slice(-keep);
  for (const { path } of backups.slice(0, -keep)) {
    const name = basename(path);
    // Without its manifest it is no backup any more, should its removal be interrupted.
    await storage.remove(`${name}/${MANIFEST}`);
    await storage.remove(name);
  }
  const [oldest] = kept;
  if (archiveDir !== null && oldest)
    await pruneArchive(await openStorage(archiveDir), segmentAt(oldest.manifest.startLsn));
}
