import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { Installation } from '../support/installation.ts';
import { ofFile } from '../support/scope.ts';
import { startScrip, typed } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/**
 * Backups of the embedded database, made, verified and restored by the commands, one after the other on one
 * installation.
 */

let installation: Installation;
const t = ofFile();

before(async () => {
  installation = await Installation.backedUp(t);
});

test('backup verify starts a copy of the backup, and reconciles its books', async () => {
  const checked = await installation.json`backup verify ${installation.at('backups')}`;
  assert.equal(checked.ok, true);
  assert.ok(checked.checks.length > 5);
  const [name, ...others] = await readdir(installation.at('backups'));
  assert.deepEqual(others, []);

  // sha256sum can check the checksums.
  const backup = installation.at('backups', name ?? '');
  const lines = (await readFile(join(backup, 'SHA256SUMS'), 'utf8')).trim().split('\n');
  assert.ok(lines.length > 100);
  for (const line of lines.slice(0, 20)) {
    const [sum, file = ''] = line.split('  ');
    assert.equal(
      createHash('sha256')
        .update(await readFile(join(backup, file)))
        .digest('hex'),
      sum,
    );
  }
});

test('a backup contains the key ring only with --with-keys, and a restore puts it back', async () => {
  const keys = await readFile(installation.at('data', 'keys'), 'utf8');
  const without = await readdir(installation.at('backups'), { recursive: true });
  for (const name of without.filter((each) => each.endsWith('/keys'))) assert.fail(name);
  await installation.fails(
    /the key ring is missing, and the backup contains none: set SCRIP_KEYS, or put the key file/,
    ['restore', installation.at('backups')],
    { SCRIP_DATA_DIR: installation.at('elsewhere') },
  );
  await assert.rejects(readdir(installation.at('elsewhere')));
  const [other] = JSON.parse((await installation.run(typed`keyring make --json`)).out).key.split('\n');
  const wrong = {
    SCRIP_DATA_DIR: installation.at('elsewhere'),
    SCRIP_KEYS: `${other},${keys.split('\n').find((line) => line.startsWith('routing:'))}`,
  };
  const restore = ['restore', installation.at('backups')];
  await installation.fails(/was written under the key \w+, which the key ring lacks/, restore, wrong);
  await installation.fails(/the key ring does not fit this database/, [...restore, '--trust'], wrong);

  await installation.json`backup create ${installation.at('backups')} --with-keys`;
  const { SCRIP_DATA_DIR: served = '' } = installation.settings;
  installation.settings['SCRIP_DATA_DIR'] = installation.at('elsewhere');
  // A key ring that comes with the backup does not prove who made it.
  await installation.fails(/there is no key ring to prove that this is unchanged: .*--trust accepts it/, [
    'restore',
    installation.at('backups'),
  ]);
  await installation.json`restore ${installation.at('backups')} --trust`;
  assert.equal(await readFile(installation.at('elsewhere', 'keys'), 'utf8'), keys);
  assert.equal(await installation.balance(), 100);
  // The doctor knows the backup that was restored.
  const { findings } = await installation.json`doctor`;
  assert.equal(findings.find(({ check }: { check: string }) => check === 'backup').state, 'ok');
  installation.settings['SCRIP_DATA_DIR'] = served;
});

test('backup verify and restore remove what killed ones left among temporary files, and a signal ends them', async () => {
  const temporary = installation.at('temporary');
  const running = `scrip-temporary-${process.pid}-runs`;
  await mkdir(join(temporary, 'scrip-temporary-99999999-dead', 'postgres'), { recursive: true });
  await mkdir(join(temporary, running));
  const verify = typed`backup verify ${installation.at('backups')} --trust`;
  const restore = typed`restore ${installation.at('backups')} --trust`;
  const settings = { TMPDIR: temporary, SCRIP_DATA_DIR: installation.at('ended') };
  for (const line of [verify, restore]) {
    const { child, ended } = startScrip({ ...installation.settings, ...settings }, line);
    await until('it has begun', async () => (await readdir(temporary)).some((name) => isOf(name, child.pid)));
    child.kill('SIGTERM');
    assert.deepEqual(await ended, { status: 130, out: '', err: 'scrip: interrupted: nothing was changed\n' });
    assert.deepEqual(await readdir(temporary), [running]);
  }
  const left = await readdir(installation.at('ended'));
  assert.deepEqual(
    left.filter((name) => /^postgres(?:$|\.restore)/.test(name)),
    [],
  );
  const { status, err } = await installation.run(verify, { TMPDIR: temporary });
  assert.equal(status, 0, err);
  assert.deepEqual(await readdir(temporary), [running]);
});

const isOf = (name: string, pid: number | undefined) => name.startsWith(`scrip-temporary-${pid}-`);

test('with --keep older backups are removed once a new one is complete', async () => {
  const folder = installation.at('backups');
  await mkdir(join(folder, 'killed.partial'));
  const second = await installation.json`backup create ${folder} --keep 2`;
  const third = await installation.json`backup create ${folder} --keep 2`;
  const listed = await installation.json`backup list ${folder}`;
  assert.deepEqual(
    listed.map(({ path }: { path: string }) => path),
    [second.path, third.path],
  );
  assert.equal((await readdir(folder)).length, 2);
});

test('a backup names a folder that is too full, and leaves nothing in it', async () => {
  const folder = installation.at('small');
  await mkdir(folder);
  const script = 'mount -t tmpfs -o size=20m small "$0" && "$@"; status=$?; ls "$0"; exit $status';
  const by = ['unshare', '--user', '--map-root-user', '--mount', '/bin/sh', '-c', script, folder];
  const { status, out, err } = await installation.run(['backup', folder], {}, by);
  assert.deepEqual([status, out], [5, ''], err);
  assert.match(
    err,
    /^scrip: the backup folder .* is too full: the backup needs \d+ MB, and \d+ MB are free\n$/,
  );
});

test('backup verify fails if the books of the backup differ', async () => {
  await installation.query('update scrip.floats set balance_minor = balance_minor + 1');
  await installation.json`backup create ${installation.at('differing')}`;
  const { status, out: text } = await installation.run(
    typed`backup verify ${installation.at('differing')} --json`,
  );
  assert.equal(status, 1);
  assert.equal(JSON.parse(text).ok, false);
});

test('a command whose output cannot be written stops the database that it has started', async () => {
  const by = ['/bin/sh', '-c', '"$@" > /dev/full', 'sh'];
  const elsewhere = installation.at('elsewhere');
  const { status } = await installation.run(['merchant', 'list'], { SCRIP_DATA_DIR: elsewhere }, by);
  assert.equal(status, 3);
  assert.ok(!(await readdir(join(elsewhere, 'postgres'))).includes('postmaster.pid'));
});
