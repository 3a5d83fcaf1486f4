import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { start } from '@scrip/embedded';
import { describeFolder } from '../../embedded/folder.ts';
import { UseLock } from '../../embedded/lock.ts';
import { createLogger } from '../../src/log.ts';
import { folderOf } from '../support/folder.ts';
import { asOwner } from '../support/owner.ts';

/**
 * Two containers that share a data folder and nothing else: neither sees the other's processes. A PID
 * namespace has the same effect, where the system permits one.
 */

const OPTIONS = { database: 'scrip', user: 'scrip_service', log: createLogger('silent') };
/** No wait, for a folder that no other process is going to release. */
const AT_ONCE = { ...OPTIONS, waitMs: 0 };
const IN_USE = { name: 'EmbeddedError', message: /is in use, and its server cannot be seen from here/ };

const USER = `
import { start } from '${import.meta.resolve('@scrip/embedded')}';
const log = { debug() {}, info() {}, warn() {}, error() {} };
const options = { database: 'scrip', user: 'scrip_service', log, waitMs: 0 };
const database = await start(process.argv[1], options).catch((error) => ({ error }));
console.log(database.error?.message ?? database.ownerUrl);
if (database.error) process.exit(1);
process.stdin.resume().on('end', () => database.release());`;

/**
 * The arguments for a PID namespace, as root or as root of a user namespace; undefined where neither is
 * permitted.
 */
async function findNamespace(): Promise<string[] | undefined> {
  const own = ['--pid', '--fork', '--kill-child', '--mount-proc'];
  for (const args of [own, ['--user', '--map-root-user', ...own]]) {
    if (
      await promisify(execFile)('unshare', [...args, 'true']).then(
        () => true,
        () => false,
      )
    )
      return args;
  }
  return undefined;
}

type Other = { readonly output: string; end(): Promise<void>; kill(): Promise<void> };

/** Starts a process in its own namespace that opens the folder, and prints its address or its error. */
async function startElsewhere(t: TestContext, namespace: readonly string[], folder: string): Promise<Other> {
  const program = [process.execPath, '--input-type=module', '-e', USER, folder];
  const child: ChildProcess = spawn('unshare', [...namespace, ...program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  t.after(() => child.kill('SIGKILL'));
  const [output] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return {
    output: output.toString().trim(),
    async end() {
      child.stdin?.end();
      await ended;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

test('a start waits while a process of another container uses the data folder', async (t) => {
  const folder = folderOf(t);
  await (await start(folder, OPTIONS)).release();
  const other = await UseLock.open(describeFolder(folder));
  other.hold();
  // A process id of another container, which belongs to another program here, or to none.
  const note = [process.pid, join(folder, 'postgres'), 1, 5432, '', '127.0.0.1', '', 'ready'].join('\n');
  await writeFile(join(folder, 'postgres', 'postmaster.pid'), note);
  await assert.rejects(start(folder, AT_ONCE), IN_USE);
  assert.equal(await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8'), note);

  // The start that waits continues when the other container releases the folder.
  const waiting = start(folder, { ...OPTIONS, waitMs: 60_000 });
  other.close();
  const database = await waiting;
  assert.deepEqual(await asOwner(database.url, 'select 1 as one'), [{ one: 1 }]);
  await database.release();
});

test('a second PID namespace cannot open a data folder before the first one has released it', async (t) => {
  const namespace = await findNamespace();
  if (!namespace) return t.diagnostic('this system permits no PID namespace');
  const folder = folderOf(t);
  const here = await start(folder, OPTIONS);
  const refused = await startElsewhere(t, namespace, folder);
  assert.match(refused.output, IN_USE.message);
  assert.deepEqual(await asOwner(here.url, 'select 1 as one'), [{ one: 1 }]);
  await here.release();

  const there = await startElsewhere(t, namespace, folder);
  assert.match(there.output, /^postgres:/);
  await assert.rejects(start(folder, AT_ONCE), IN_USE);
  assert.deepEqual(await asOwner(there.output, 'select 1 as one'), [{ one: 1 }]);
  await there.end();

  // A container that is killed takes its server with it, and leaves the folder free.
  const killed = await startElsewhere(t, namespace, folder);
  assert.match(killed.output, /^postgres:/);
  await killed.kill();
  const again = await start(folder, OPTIONS);
  assert.deepEqual(await asOwner(again.url, 'select 1 as one'), [{ one: 1 }]);
  await again.release();
});

test('an account that has a number and no name creates a database and opens it again', async (t) => {
  const namespace = ['--user', '--map-user=4242', '--map-group=4242'];
  const isPermitted = await promisify(execFile)('unshare', [...namespace, 'unshare', '--user', 'true']).then(
    () => true,
    () => false,
  );
  if (!isPermitted) return t.diagnostic('this system permits no user namespace');
  const folder = folderOf(t);
  for (const _ of [1, 2]) {
    const there = await startElsewhere(t, namespace, folder);
    assert.match(there.output, /^postgres:/);
    assert.deepEqual(await asOwner(there.output, 'select 1 as one'), [{ one: 1 }]);
    await there.end();
  }
});
