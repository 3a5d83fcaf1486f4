import { randomBytes, randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, mkdir, open, readdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from './start-error.ts';

/**
 * The data folder: who may use it, what in it belongs to the embedded database, and the lock under which the database is
 * made, started and stopped.
 */

export type Folder = {
  readonly root: string;
  /** The database's own files. It is there as a whole or not at all. */
  readonly cluster: string;
  readonly settings: string;
  /** What the database says. */
  readonly log: string;
};

/** What a first start decides. It is kept among the database's files, so that both come to be in one step. */
export type Settings = { readonly port: number; readonly ownerPassword: string; readonly servicePassword: string };

/** Below the range from which the system takes ports for outgoing connections, so that nothing takes it in passing. */
const FIRST_PORT = 20_000;
const LAST_PORT = 31_999;
export const SETTINGS_FILE = 'scrip.json';
const LOCK_LOOK_MS = 20;
const SQLITE_BUSY = 5;
const PASSWORD_BYTES = 32;

/** What is found in a data folder. Of a folder that holds other things only, the mode is its owner's affair. */
const OURS = new Set(['keys', 'postgres', 'postgres.lock', 'demo.json']);

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

/**
 * Makes sure that the data folder is there, is ours alone, and can be written to.
 * @throws StartError in one line where it is not
 */
export async function prepareFolder(dataDir: string): Promise<Folder> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const { uid, mode } = await stat(dataDir);
    const self = process.getuid?.();
    if (self !== undefined && uid !== self) {
      const owner = await nameOf(uid);
      throw new StartError(
        `the data folder ${dataDir} belongs to another user (${owner}): run Scrip as ${owner}, or set SCRIP_DATA_DIR`,
      );
    }
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    const names = await readdir(dataDir);
    const isOurs = names.length === 0 || names.some((name) => OURS.has(name));
    // 711 is what an account of the database's own needs (embedded-binaries.ts); it lists and reads nothing.
    const own = self === 0 && (mode & 0o777) === 0o711 ? 0o711 : 0o700;
    if (isOurs && (mode & 0o777) !== own) await chmod(dataDir, own);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(complaint(dataDir, codeOf(error)));
  }
  return describeFolder(await realpath(dataDir));
}

export function describeFolder(root: string): Folder {
  return {
    root,
    cluster: join(root, 'postgres'),
    settings: join(root, 'postgres', SETTINGS_FILE),
    log: join(root, 'postgres.log'),
  };
}

function complaint(dataDir: string, code: string | undefined): string {
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    return `the data folder ${dataDir} cannot be made, a file is in its place: set SCRIP_DATA_DIR`;
  }
  return `the data folder ${dataDir} cannot be written to (${code ?? 'unknown reason'}): set SCRIP_DATA_DIR`;
}

async function nameOf(uid: number): Promise<string> {
  return (await listAccounts()).find((account) => account.uid === uid)?.name ?? `number ${uid}`;
}

export type Account = { readonly name: string; readonly uid: number; readonly gid: number };

/** The accounts that this machine itself knows. */
export async function listAccounts(): Promise<Account[]> {
  const text = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length > 3)
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }));
}

/**
 * Takes the lock of the folder: one process at a time makes, starts or stops the database. The system frees it when its
 * holder dies, however it dies, which no lock file of Node's own making can promise; SQLite's locks can.
 * @returns what gives it back
 */
export async function lockFolder({ root }: Folder): Promise<() => void> {
  const { DatabaseSync } = await import('node:sqlite');
  const file = join(root, 'postgres.lock');
  await writeFile(file, '', { flag: 'a', mode: 0o600 });
  const lock = new DatabaseSync(file, { timeout: 0 });
  for (;;) {
    try {
      lock.exec('begin exclusive');
      return () => lock.close();
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) {
        lock.close();
        throw error;
      }
      await sleep(LOCK_LOOK_MS);
    }
  }
}

/** Reads what belongs to the database's files; undefined where there are none yet. */
export async function readSettings({ cluster, settings: file }: Folder): Promise<Settings | undefined> {
  try {
    const { port, ownerPassword, servicePassword } = JSON.parse(await readFile(file, 'utf8')) as Partial<Settings>;
    if (!Number.isInteger(port) || !ownerPassword || !servicePassword) throw new SyntaxError('incomplete');
    return { port: port as number, ownerPassword, servicePassword };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOTDIR' || (code === 'ENOENT' && !(await exists(cluster)))) return undefined;
    const state =
      code === 'ENOENT' ? 'is missing' : error instanceof SyntaxError ? 'is damaged' : `cannot be read (${code})`;
    throw new StartError(`the file ${file} ${state}: the database cannot be opened without it, put a copy of it back`);
  }
}

/** What a first start decides. */
export function newSettings(): Settings {
  return {
    port: choosePort(),
    ownerPassword: randomBytes(PASSWORD_BYTES).toString('hex'),
    servicePassword: randomBytes(PASSWORD_BYTES).toString('hex'),
  };
}

/** Writes the settings: whole and on the disk before they get their name. */
export async function saveSettings(file: string, settings: Settings): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(settings)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}

export function choosePort(): number {
  return randomInt(FIRST_PORT, LAST_PORT + 1);
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
