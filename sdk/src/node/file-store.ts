import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DamagedStoreError, type PendingCall, type PendingStore } from '../pending.ts';

/** Pending calls in a folder: a file for each. */

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const nameOf = ({ operation, reference }: PendingCall) => `${sha256(`${operation} ${reference}`)}.json`;
const CALL = /^[0-9a-f]{64}\.json$/;
/** A file that was being written when its process ended. Its call was not sent. */
const UNFINISHED = /^[0-9a-f]{64}\.json\.[0-9a-f-]{36}$/;

/**
 * A store for `pending` that keeps calls in a folder, which it creates with mode 700. The folder belongs to
 * one merchant and one process. A call is on the disk before it is sent, and its file is never half written.
 * A file that was changed or damaged is reported by `recover`, and stays until you remove it.
 */
export function fileStore(folder: string): PendingStore {
  const pathOf = (call: PendingCall) => join(folder, nameOf(call));
  return {
    async put(call) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const path = pathOf(call);
      const unfinished = `${path}.${randomUUID()}`;
      const text = JSON.stringify(call);
      const file = await open(unfinished, 'wx', 0o600);
      try {
        await file.writeFile(`${sha256(text)} ${text}\n`);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(unfinished, path);
      await syncFolder(folder);
    },

    // A call that comes back after a power failure is only recovered once more: no need to sync.
    async delete(call) {
      await unlink(pathOf(call)).catch(ignoreAbsent);
    },

    async list() {
      const calls: PendingCall[] = [];
      const damaged: string[] = [];
      for (const name of await namesIn(folder)) {
        const path = join(folder, name);
        if (UNFINISHED.test(name)) await unlink(path).catch(ignoreAbsent);
        if (!CALL.test(name)) continue;
        const call = parse(await readFile(path, 'utf8'));
        if (call !== undefined && nameOf(call) === name) calls.push(call);
        else damaged.push(path);
      }
      if (damaged.length === 0) return calls;
      throw new DamagedStoreError(`these pending calls cannot be read: ${damaged.join(', ')}`, calls);
    },
  };
}

/** The call of a file; undefined for a damaged one. */
function parse(text: string): PendingCall | undefined {
  const [, sum, json = ''] = /^([0-9a-f]{64}) (.*)\n$/s.exec(text) ?? [];
  return sha256(json) === sum ? JSON.parse(json) : undefined;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    ignoreAbsent(error);
    return [];
  }
}

/** Without this, a file that was renamed may be absent after a power failure. */
async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders, and has no need to.
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function ignoreAbsent(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
