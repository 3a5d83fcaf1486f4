import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describeFolder } from '../../embedded/folder.ts';
import { lockFolder } from '../../embedded/lock.ts';
import { isAlive } from '../../soak/process.ts';
import { type Embedded, findEmbedded, openEmbedded } from '../../src/db/embedded.ts';
import { createLogger } from '../../src/log.ts';
import { asOwner } from '../support/owner.ts';
import { until } from '../support/until.ts';

const log = createLogger('silent');
const MODULE = new URL('../../src/', import.meta.url).href;

/** The users of each data folder: released before the folder is removed. */
const inUse = new Map<string, { release(): Promise<void> }[]>();

async function dataFolder(t: TestContext): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'scrip-embedded-'));
  // Where root cannot make user namespaces, the account of the database must be able to reach the folder.
  await chmod(parent, 0o755);
  const folder = join(parent, 'data');
  const users: { release(): Promise<void> }[] = [];
  inUse.set(folder, users);
  t.after(async () => {
    for (const user of users) await user.release();
    // A test that failed may have left its server running.
    const pid = await serverOf(folder);
    if (pid !== undefined && pid !== process.pid && isAlive(pid)) process.kill(pid, 'SIGQUIT');
    await rm(parent, { recursive: true, force: true, maxRetries: 10 });
  });
  return folder;
}

async function serverOf(folder: string): Promise<number | undefined> {
  const text = await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : Number(text.split('\n')[0]);
}

/** Another process that uses the database until it is stopped or killed. */
type User = { readonly url: string; release(): Promise<void>; kill(): Promise<void> };

const USER = `
import { openEmbedded } from '${MODULE}db/embedded.ts';
import { createLogger } from '${MODULE}log.ts';
const embedded = await openEmbedded(process.argv[1], createLogger('silent'));
console.log(embedded.ownerUrl);
process.stdin.resume().on('end', () => embedded.release());`;

async function startUser(folder: string): Promise<User> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', USER, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const fails = ended.then(() => assert.fail('the process ended before it had the database'));
  const [text] = (await Promise.race([once(child.stdout, 'data'), fails])) as [Buffer];
  fails.catch(() => {});
  const user = {
    url: text.toString().trim(),
    async release() {
      child.stdin.end();
      await ended;
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
  inUse.get(folder)?.push(user);
  return user;
}

/** Opens the database until the test ends or releases it. */
async function use(folder: string): Promise<Embedded> {
  const embedded = await openEmbedded(folder, log);
  inUse.get(folder)?.push(embedded);
  return embedded;
}

test('the first start creates a database, and the second one opens it', async (t) => {
  const folder = await dataFolder(t);
  assert.equal(await findEmbedded(folder), undefined);
  const first = await use(folder);
  await asOwner(first.ownerUrl, 'create table kept as select 7 as seven');
  await first.release();
  assert.equal(await serverOf(folder), undefined);
  assert.equal(await findEmbedded(folder), first.url);
  const second = await use(folder);
  assert.deepEqual([second.ownerUrl, second.url], [first.ownerUrl, first.url]);
  assert.deepEqual(await asOwner(second.ownerUrl, 'select seven from kept'), [{ seven: 7 }]);
});

test('other accounts cannot read the data folder, and the service is no superuser', async (t) => {
  const folder = await dataFolder(t);
  const { url } = await use(folder);
  const modeOf = async (...path: string[]) => (await stat(join(folder, ...path))).mode & 0o777;
  assert.equal((await modeOf()) & 0o066, 0);
  assert.equal(await modeOf('postgres'), 0o700);
  for (const file of ['postgres.log', 'postgres.lock', 'postgres.use', 'postgres/scrip.json'])
    assert.equal(await modeOf(file), 0o600);
  assert.deepEqual(
    await asOwner(url, 'select rolsuper, rolcreatedb from pg_roles where rolname = current_user'),
    [{ rolsuper: false, rolcreatedb: false }],
  );
});

test('the server writes commits to the disk, and no statement to its log', async (t) => {
  const folder = await dataFolder(t);
  const { ownerUrl } = await use(folder);
  const settings = ['fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums'];
  for (const name of settings) assert.deepEqual(await asOwner(ownerUrl, `show ${name}`), [{ [name]: 'on' }]);
  await assert.rejects(asOwner(ownerUrl, "select 'canary-1'::integer"));
  await assert.rejects(asOwner(ownerUrl, "do $$ begin raise exception 'canary-2'; end $$"));
  await asOwner(ownerUrl, "do $$ begin raise warning 'canary-3'; end $$");
  assert.ok(!(await readFile(join(folder, 'postgres.log'), 'utf8')).includes('canary'));
});

test('two concurrent first starts share one database, and the last user stops it', async (t) => {
  const folder = await dataFolder(t);
  const [one, other] = await Promise.all([startUser(folder), startUser(folder)]);
  assert.equal(one.url, other.url);
  await one.release();
  assert.deepEqual(await asOwner(other.url, 'select 1 as one'), [{ one: 1 }]);
  await other.release();
  assert.equal(await serverOf(folder), undefined);
  assert.deepEqual((await readdir(folder)).sort(), [
    'postgres',
    'postgres.lock',
    'postgres.log',
    'postgres.use',
  ]);
});

test('a start while the last user releases the database gets a running server', async (t) => {
  const folder = await dataFolder(t);
  const leaving = await use(folder);
  const [embedded] = await Promise.all([use(folder), leaving.release()]);
  assert.deepEqual(await asOwner(embedded.ownerUrl, 'select 1 as one'), [{ one: 1 }]);
  const [again] = await Promise.all([use(folder), embedded.release()]);
  assert.deepEqual(await asOwner(again.ownerUrl, 'select 1 as one'), [{ one: 1 }]);
  await again.release();
  assert.equal(await serverOf(folder), undefined);
});

test('the server of a killed process is used by the next one, and stopped by it', async (t) => {
  const folder = await dataFolder(t);
  const killed = await startUser(folder);
  const server = (await serverOf(folder)) as number;
  await asOwner(killed.url, 'create table kept as select 7 as seven');
  await killed.kill();
  assert.ok(isAlive(server));
  const embedded = await use(folder);
  assert.equal(await serverOf(folder), server);
  assert.deepEqual(await asOwner(embedded.ownerUrl, 'select seven from kept'), [{ seven: 7 }]);
  await embedded.release();
  assert.equal(await serverOf(folder), undefined);
});

test('committed rows survive when the process and the server are killed', async (t) => {
  const folder = await dataFolder(t);
  const killed = await startUser(folder);
  await asOwner(killed.url, 'create table kept as select 7 as seven');
  const server = (await serverOf(folder)) as number;
  process.kill(server, 'SIGKILL');
  await killed.kill();
  const { ownerUrl } = await use(folder);
  assert.deepEqual(await asOwner(ownerUrl, 'select seven from kept'), [{ seven: 7 }]);
});

test('a server starts although the process id of a dead one belongs to another process', async (t) => {
  const folder = await dataFolder(t);
  await (await use(folder)).release();
  const note = [process.pid, join(folder, 'postgres'), 1, 5432, '', '127.0.0.1', '', 'ready'];
  await writeFile(join(folder, 'postgres', 'postmaster.pid'), `${note.join('\n')}\n`);
  const { ownerUrl } = await use(folder);
  assert.deepEqual(await asOwner(ownerUrl, 'select 1 as one'), [{ one: 1 }]);
});

test('a start that is killed while it creates the database leaves no partial database', async (t) => {
  const folder = await dataFolder(t);
  await mkdir(folder, { mode: 0o700 });
  const child = spawn(process.execPath, ['--input-type=module', '-e', USER, folder], { stdio: 'ignore' });
  await until('a new database is being made', async () =>
    (await readdir(folder)).some((name) => name.startsWith('postgres.new-')),
  );
  child.kill('SIGKILL');
  await once(child, 'exit');
  await assert.rejects(access(join(folder, 'postgres')));
  const { ownerUrl } = await use(folder);
  assert.deepEqual(await asOwner(ownerUrl, 'select 1 as one'), [{ one: 1 }]);
});

test('a server that dies is started again at the same address', async (t) => {
  const folder = await dataFolder(t);
  const { ownerUrl } = await use(folder);
  const server = (await serverOf(folder)) as number;
  process.kill(server, 'SIGKILL');
  await until('the database answers', () =>
    asOwner(ownerUrl, 'select 1').then(
      () => true,
      () => false,
    ),
  );
  assert.notEqual(await serverOf(folder), server);
});

test('a new port is chosen, and kept, when another program has taken the old one', async (t) => {
  const folder = await dataFolder(t);
  const { ownerUrl, release } = await use(folder);
  await release();
  const taken = createServer().listen(Number(new URL(ownerUrl).port), '127.0.0.1');
  t.after(() => taken.close());
  await once(taken, 'listening');
  const moved = await use(folder);
  assert.notEqual(new URL(moved.ownerUrl).port, new URL(ownerUrl).port);
  await moved.release();
  assert.equal(await findEmbedded(folder), moved.url);
});

test('a server that dies while it is released is not started again', async (t) => {
  const folder = await dataFolder(t);
  const gone = Promise.withResolvers<void>();
  const listening = createLogger('silent');
  listening.warn = (() => gone.resolve()) as typeof listening.warn;
  const embedded = await openEmbedded(folder, listening);
  inUse.get(folder)?.push(embedded);
  const unlock = await lockFolder(describeFolder(folder));
  const server = (await serverOf(folder)) as number;
  process.kill(server, 'SIGKILL');
  await gone.promise;
  // The restart waits for the lock, and the release comes before it.
  unlock();
  await embedded.release();
  for (let turn = 0; turn < 10; turn++) {
    (await lockFolder(describeFolder(folder)))();
    await sleep(20);
  }
  assert.equal(await serverOf(folder), server);
  assert.equal(isAlive(server), false);
});

test('the lock of a folder needs no space, so that commands work on a full disk', async (t) => {
  const folder = await dataFolder(t);
  await mkdir(folder);
  const source = `
    const { lockFolder } = await import('${new URL('../../embedded/lock.ts', import.meta.url)}');
    (await lockFolder({ root: process.argv[1] }))();`;
  // The system refuses every byte that the process writes to a file.
  const script = 'ulimit -f 0 && exec "$0" --input-type=module -e "$1" "$2"';
  await promisify(execFile)('sh', ['-c', script, process.execPath, source, folder]);
});

test('the server starts although its log cannot be rotated', async (t) => {
  const folder = await dataFolder(t);
  await mkdir(join(folder, 'postgres.log.1'), { recursive: true });
  await writeFile(join(folder, 'postgres.log'), 'x'.repeat(6 * 1024 ** 2));
  const database = await use(folder);
  assert.deepEqual(await asOwner(database.url, 'select 1 as one'), [{ one: 1 }]);
});
