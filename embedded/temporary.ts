import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, type Folder } from './folder.ts';
import { type Log, stopServer } from './server.ts';

/** Folders for temporary files. A process that is killed leaves its own, and the next one removes it. */

const PREFIX = 'scrip-temporary-';

/**
 * Makes a folder that only this account can enter, and removes it afterwards.
 * @param above the folder for temporary files
 */
export async function withTemporary<Made>(
  above: string,
  log: Log,
  use: (folder: string) => Promise<Made>,
): Promise<Made> {
  await removeKilled(above, log);
  const folder = await mkdtemp(join(above, `${PREFIX}${process.pid}-`));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes the folders of killed processes. A copy of a database in one of them is stopped first. */
async function removeKilled(above: string, log: Log): Promise<void> {
  for (const name of await readdir(above)) {
    const pid = name.startsWith(PREFIX) ? /^(\d{1,10})-/.exec(name.slice(PREFIX.length))?.[1] : undefined;
    const folder = join(above, name);
    if (pid === undefined || isAlive(Number(pid)) || !(await isOwn(folder))) continue;
    await stopServer(copyIn(folder), log);
    await rm(folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/** Another account may have chosen the name in the shared folder. */
async function isOwn(path: string): Promise<boolean> {
  const facts = await lstat(path).catch(() => undefined);
  return facts?.isDirectory() === true && facts.uid === process.getuid?.();
}

/** Returns the place of a copy of a database in a temporary folder. */
export const copyIn = (root: string): Folder => inFolder(root, join(root, 'postgres'));

/** Returns the place of a database that is prepared in a folder. */
export const inFolder = (root: string, cluster: string): Folder => ({
  root,
  cluster,
  settings: join(cluster, 'scrip.json'),
  log: join(root, 'postgres.log'),
});
