import assert from 'node:assert/strict';
import { access, readdir, stat } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderOf } from '../support/folder.ts';
import { emptyDatabase, testDatabase } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';
import { runScrip } from '../support/scrip.ts';

/** Commands without a database. */

const COMMANDS = [
  ['merchant', 'list'],
  ['batch', 'list', '--json'],
  ['float', 'top-up', '--merchant', '1', '--amount', '5'],
  ['db', 'url'],
  ['reconcile'],
];

test('a command in a mistyped data folder creates nothing, and names the setting', async (t) => {
  const folder = folderOf(t);
  const mistyped = join(folder, 'mistyped');
  for (const command of COMMANDS) {
    const { status, out, err } = await runScrip({ SCRIP_DATA_DIR: mistyped }, ...command);
    assert.deepEqual([status, out], [5, ''], command.join(' '));
    assert.match(
      err,
      /there is no Scrip database in .*mistyped: run `scrip serve` or `scrip migrate` first, .*SCRIP_DATA_DIR/,
    );
    await assert.rejects(access(mistyped));
  }
});

test('each command names a misspelled setting, beside its own outcome', async (t) => {
  const { url } = await testDatabase(t);
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_DATA_DIR: folderOf(t), SCRIP_PROT: '1' };
  const named = 'scrip: there is no setting SCRIP_PROT, so it is ignored: SCRIP_PORT is meant?\n';
  for (const [command, status] of [
    [['migrate'], 0],
    [['merchant', 'list'], 0],
    [['doctor', '--json'], 0],
    [['backup', '/nowhere'], 1],
    [['completion', 'bash'], 0],
  ] as const) {
    const ran = await runScrip(settings, ...command);
    assert.deepEqual([ran.status, ran.err.startsWith(named)], [status, true], `${command} ${ran.err}`);
  }
  // After a failure, stderr is one document.
  const { err } = await runScrip(settings, 'merchant', 'show', '1', '--json');
  assert.ok(JSON.parse(err).error);
});

test('a full disk of the database is told as such', async (t) => {
  const { url } = await testDatabase(t);
  await asOwner(
    url,
    `create function public.refuse() returns trigger language plpgsql as $$
begin raise exception 'could not extend file' using errcode = '53100'; end $$;
create trigger refuse before insert on scrip.merchants execute function public.refuse()`,
  );
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_DATA_DIR: folderOf(t) };
  const { status, err } = await runScrip(settings, 'merchant', 'create', '--name', 'Kiosk');
  assert.equal(status, 4);
  assert.match(err, /^scrip: the database has no space left on its disk: could not extend file$/m);
});

test('a wrong password of the database is told at the start as a setting to correct', async (t) => {
  const { url } = await testDatabase(t);
  const wrong = new URL(url);
  wrong.username = 'nobody';
  const { status, err } = await runScrip({ SCRIP_DATABASE_URL: wrong.href }, 'merchant', 'list');
  assert.deepEqual(
    [status, err.includes('refuses the user or password of SCRIP_DATABASE_URL')],
    [5, true],
    err,
  );
});

test('a database that is not reached by TLS is told in one line', async (t) => {
  for (const [answer, reason] of [
    ['N', 'The server does not support SSL connections'],
    ['Eno answer', 'There was an error establishing an SSL connection'],
  ] as const) {
    const server = createServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.end(answer)),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const url = `postgres://scrip:secret@127.0.0.1:${port}/scrip?sslmode=verify-full`;
    const { status, err } = await runScrip({ SCRIP_DATABASE_URL: url }, 'merchant', 'list');
    assert.deepEqual(
      [status, err],
      [
        4,
        `scrip: the database at 127.0.0.1:${port} cannot be reached by TLS (${reason}): check its certificate, and sslmode and sslrootcert of SCRIP_DATABASE_URL\n`,
      ],
    );
  }
});

test('no command but serve and migrate makes a database where its settings name none', async (t) => {
  const folder = folderOf(t);
  const settings = { SCRIP_DATA_DIR: join(folder, 'data'), SCRIP_PORT: '0' };
  for (const args of [['merchant', 'create', '--name', 'Oops', '--float', '5'], ['work']]) {
    const { status, out, err } = await runScrip(settings, ...args);
    assert.deepEqual([status, out], [5, '']);
    assert.match(err, /^(scrip: |.*)there is no Scrip database in .*data: .* and SCRIP_DATABASE_URL\n$/);
    assert.deepEqual(await readdir(folder), []);
  }
});

test('a command on a database without the schema creates nothing, and names the setting', async (t) => {
  const folder = folderOf(t);
  const { url } = await emptyDatabase(t);
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_DATA_DIR: join(folder, 'data') };
  const { status, out, err } = await runScrip(settings, 'merchant', 'list');
  assert.deepEqual([status, out], [5, '']);
  assert.match(
    err,
    /holds nothing of Scrip: run `scrip serve` or `scrip migrate` first, or check SCRIP_DATABASE_URL/,
  );
  const schemas = await asOwner(url, "select from pg_namespace where nspname = 'scrip'");
  assert.deepEqual([schemas.length, await readdir(folder)], [0, []]);
});

test('a first start with a database elsewhere warns once of the key file that it writes', async (t) => {
  const folder = folderOf(t);
  const { url } = await testDatabase(t);
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_DATA_DIR: join(folder, 'data') };
  const create = ['merchant', 'create', '--name', 'Kiosk', '--json'];
  const first = await runScrip(settings, ...create);
  assert.equal(first.status, 0, first.err);
  const warning = JSON.parse(first.err);
  const file = join(folder, 'data', 'keys');
  assert.deepEqual([warning.level, warning.file], [40, file]);
  assert.match(
    warning.msg,
    /SCRIP_KEYS is not set.*written to .*keys\. Back this file up.*scrip keyring make/,
  );
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const second = await runScrip(settings, ...create);
  assert.deepEqual([second.status, second.err], [0, '']);
});

test('a data folder that cannot be created is reported in one line, also with a database elsewhere', async (t) => {
  const { url } = await testDatabase(t);
  for (const settings of [{}, { SCRIP_DATABASE_URL: url }]) {
    const { status, out, err } = await runScrip(
      { ...settings, SCRIP_DATA_DIR: '/proc/nope', SCRIP_PORT: '0' },
      'serve',
    );
    assert.deepEqual([status, out], [5, '']);
    assert.match(
      err,
      /^scrip: the data folder \/proc\/nope cannot be (created|written)[^\n]*SCRIP_DATA_DIR\)\n$/,
    );
  }
});

test('a database that takes no writes is reported as a standby', async (t) => {
  const { url } = await testDatabase(t);
  const name = new URL(url).pathname.slice(1);
  await asOwner(url, `alter database ${name} set default_transaction_read_only = on`);
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_DATA_DIR: join(folderOf(t), 'data') };
  const { status, out, err } = await runScrip(settings, 'reconcile');
  assert.deepEqual([status, out], [4, '']);
  assert.match(
    err,
    /^scrip: the database at \S+ takes no writes: it is a standby, its recovery has not ended[^\n]*\n$/,
  );
});
