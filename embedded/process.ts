import { execFile } from 'node:child_process';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Folder } from './folder.ts';

/** The server's process: found, recognized, ended. */

const POLL_MS = 10;

export type Server = { readonly pid: number; readonly port: number; readonly startedHere: boolean };

export const pidFile = ({ cluster }: Folder) => join(cluster, 'postmaster.pid');

export async function readPidFile(folder: Folder) {
  const text = await readFile(pidFile(folder), 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]), port: Number(lines[3]), isReady: lines[7]?.trim() === 'ready' };
}

/**
 * Finds the server that runs on this folder, and waits until it is ready. A server in another container
 * cannot be seen: its process id says nothing here.
 */
export async function findServer(folder: Folder): Promise<Server | undefined> {
  for (;;) {
    const note = await readPidFile(folder);
    if (!note || !(await isServer(note.pid, folder))) return undefined;
    if (note.isReady) return { pid: note.pid, port: note.port, startedHere: false };
    await sleep(POLL_MS);
  }
}

/**
 * Whether a process is the server of this folder, rather than one that has inherited a dead server's
 * process id.
 */
export async function isServer(pid: number, { cluster }: Folder): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  if (process.platform !== 'linux') return (await commandOf(pid)).includes(cluster);
  const [command = '', ...args] = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split(
    '\0',
  );
  if (!/\bpostgres$/.test(command)) return false;
  // The folder may have been moved since the start. Where the system hides it, the command line has to do.
  const at = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
  return at === undefined ? args.includes(cluster) : at === cluster || at === `${cluster} (deleted)`;
}

async function commandOf(pid: number): Promise<string> {
  return new Promise((resolve) => {
    execFile('/bin/ps', ['-o', 'command=', '-p', String(pid)], (error, output) =>
      resolve(error ? '' : output),
    );
  });
}

/** Ends a server whose files were removed under it: there is nothing left that it could write. */
export async function endServer(pid: number, folder: Folder): Promise<void> {
  if (await isServer(pid, folder)) process.kill(pid, 'SIGQUIT');
}
