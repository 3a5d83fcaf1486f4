import { randomBytes, randomInt } from 'node:crypto';
import { constants } from 'node:fs';
import { access, chmod, mkdir, open, readdir, readFile, realpath, rename, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { EmbeddedError } from './error.ts';

/** The data folder, and the settings that are kept beside the database's files. */

export type Folder = {
  readonly root: string;
  /** The database's files. The folder exists complete or not at all. */
  readonly cluster: string;
  readonly settings: string;
  /** The server's log. */
  readonly log: string;
};

/** What a first start decides. Kept among the database's files, so that both come into being in one step. */
export type Settings = {
  readonly port: number;
  readonly ownerPassword: string;
  readonly servicePassword: string;
  /** Where the log is archived, as the last process that was configured to said. */
  readonly archiveDir?: string | undefined;
  /**
   * Whether the log stays in the data folder until such a process says where it goes: the database was
   * restored, and may be a copy beside the one whose archive it knows.
   */
  readonly keepsLog?: boolean | undefined;
};

/** Below the range from which the system takes ports for outgoing connections. */
const PORT_MIN = 20_000;
const PORT_MAX = 31_999;
export const SETTINGS_FILE = 'scrip.json';
const PASSWORD_BYTES = 32;

export const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

export function describeFolder(root: string): Folder {
  const cluster = join(root, 'postgres');
  return { root, cluster, settings: join(cluster, SETTINGS_FILE), log: join(root, 'postgres.log') };
}

/**
 * Makes sure that the data folder exists, belongs to this account and can be written.
 * @throws EmbeddedError
 */
export async function prepareFolder(path: string): Promise<Folder> {
  const dataDir = resolve(path);
  try {
    await makeFolder(dataDir);
    await requireOwn(dataDir, 'the data folder', 'folder');
    const { mode } = await stat(dataDir);
    const self = process.getuid?.();
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    const names = await readdir(dataDir);
    // The mode of a folder that holds other files only is its owner's business.
    const isOurs = names.length === 0 || names.some((name) => name.startsWith('postgres'));
    // An account of the database's own needs 711 to reach its files (programs.ts); it can list nothing.
    const wanted = self === 0 && (mode & 0o777) === 0o711 ? 0o711 : 0o700;
    if (isOurs && (mode & 0o777) !== wanted) await chmod(dataDir, wanted);
    return describeFolder(await realpath(dataDir));
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    throw new EmbeddedError(complaint(dataDir, codeOf(error)), 'folder');
  }
}

/**
 * Refuses a folder or file of another account, which could have put it into the current folder. What does not
 * exist belongs to nobody.
 * @param what its name in the message
 * @throws EmbeddedError
 */
export async function requireOwn(path: string, what: string, alternative?: 'folder'): Promise<void> {
  const facts = await stat(path).catch(() => undefined);
  const self = process.getuid?.();
  if (!facts || self === undefined || facts.uid === self) return;
  // Root can put a file anywhere. The database's own files must be writable, so their folder is not root's.
  if (facts.uid === 0 && facts.isFile()) return;
  const owner = await nameOf(facts.uid);
  throw new EmbeddedError(
    `${what} ${path} belongs to another user (${owner}): run Scrip as ${owner}`,
    alternative,
  );
}

/**
 * Creates a folder, with those above it, for this account only.
 * @throws EmbeddedError
 */
export async function makeFolder(path: string): Promise<void> {
  await make(resolve(path)).catch((error: unknown) => {
    throw new EmbeddedError(complaint(resolve(path), codeOf(error)), 'folder');
  });
}

/**
 * Unlike a recursive mkdir, it ends where a file system answers ENOENT below a folder that exists (/proc).
 */
async function make(path: string): Promise<void> {
  const makeOne = () => mkdir(path, { mode: 0o700 });
  await makeOne()
    .catch(async (error: unknown) => {
      if (codeOf(error) !== 'ENOENT' || path === dirname(path)) throw error;
      await make(dirname(path));
      await makeOne();
    })
    .catch(async (error: unknown) => {
      const isThere = codeOf(error) === 'EEXIST' && (await stat(path)).isDirectory();
      if (!isThere) throw error;
    });
}

function complaint(dataDir: string, code: string | undefined): string {
  if (code === 'EEXIST' || code === 'ENOTDIR')
    return `the data folder ${dataDir} cannot be created: it is a file`;
  if (code === 'ENOENT') return `the data folder ${dataDir} cannot be created`;
  return `the data folder ${dataDir} cannot be written (${code ?? 'unknown reason'})`;
}

async function nameOf(uid: number): Promise<string> {
  return (await listAccounts()).find((account) => account.uid === uid)?.name ?? `number ${uid}`;
}

export type Account = { readonly name: string; readonly uid: number; readonly gid: number };

/** The accounts of /etc/passwd. */
export async function listAccounts(): Promise<Account[]> {
  const text = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length > 3)
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }));
}

/**
 * Reads the settings.
 * @returns undefined if there is no database yet
 * @throws EmbeddedError if a database has lost them
 */
export async function readSettings({ cluster, settings: file }: Folder): Promise<Settings | undefined> {
  try {
    const read = JSON.parse(await readFile(file, 'utf8')) as Partial<Settings>;
    const { port, ownerPassword, servicePassword, archiveDir, keepsLog } = read;
    if (!Number.isInteger(port) || !ownerPassword || !servicePassword) throw new SyntaxError('incomplete');
    return { port: port as number, ownerPassword, servicePassword, archiveDir, keepsLog };
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOTDIR' || (code === 'ENOENT' && !(await exists(cluster)))) return undefined;
    const state =
      code === 'ENOENT'
        ? 'is missing'
        : error instanceof SyntaxError
          ? 'is damaged'
          : `cannot be read (${code})`;
    throw new EmbeddedError(
      `the file ${file} ${state}: the database cannot be opened without it, restore a copy of it`,
    );
  }
}

export function newSettings(): Settings {
  return {
    port: choosePort(),
    ownerPassword: randomBytes(PASSWORD_BYTES).toString('hex'),
    servicePassword: randomBytes(PASSWORD_BYTES).toString('hex'),
  };
}

/** Writes the settings: complete and on the disk before they get their name. */
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
  return randomInt(PORT_MIN, PORT_MAX + 1);
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
