import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  access,
  appendFile,
  cp,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Installation } from '../support/installation.ts';
import { archived } from '../support/log.ts';
import { ofFile } from '../support/scope.ts';
import { typed } from '../support/scrip.ts';

/**
 * Somebody can write to the backups and to the archived log, but has no key of the key ring. Files are
 * changed together with their checksums.
 */

let installation: Installation;
let original = '';
const t = ofFile();

before(async () => {
  installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  await installation.serve();
  await installation.json`merchant create --name Kiosk --float 100`;
  await installation.json`backup create ${installation.at('backups')}`;
  const [name = ''] = await readdir(installation.at('backups'));
  original = installation.at('backups', name);
});

const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

/** Changes a copy of the backup, and writes the checksums and counts that fit the change. */
async function forged(change: (backup: string) => Promise<void>): Promise<string> {
  const backup = installation.at('forged');
  await rm(backup, { recursive: true, force: true });
  await cp(original, backup, { recursive: true });
  await change(backup);
  const manifestFile = join(backup, 'manifest.json');
  const manifest = JSON.parse(await readFile(manifestFile, 'utf8'));
  // Those of the original are there by a link too, which a listing does not follow.
  const lists = await Promise.all([original, backup].map((each) => readdir(each, { recursive: true })));
  const lines: string[] = [];
  for (const file of new Set(lists.flat()))
    if (!/SHA256SUMS|manifest.json$/.test(file) && (await stat(join(backup, file))).isFile())
      lines.push(`${sha256(await readFile(join(backup, file)))}  ${file}`);
  const text = `${JSON.stringify({ ...manifest, files: lines.length }, null, 2)}\n`;
  await writeFile(manifestFile, text);
  lines.push(`${sha256(Buffer.from(text))}  manifest.json`);
  await writeFile(join(backup, 'SHA256SUMS'), `${lines.join('\n')}\n`);
  return backup;
}

const elsewhere = () => ({
  SCRIP_DATA_DIR: installation.at('elsewhere'),
  SCRIP_KEYS_FILE: installation.at('data', 'keys'),
  SCRIP_ARCHIVE_DIR: '',
});

test('a backup that was changed together with its checksums is refused, and starts nothing', async () => {
  const canary = installation.at('canary');
  const backup = await forged((at) =>
    appendFile(
      join(at, 'cluster', 'postgresql.auto.conf'),
      ['recovery_end_command', 'restore_command', 'archive_cleanup_command']
        .map((name) => `${name} = 'touch ${canary}'\n`)
        .join(''),
    ),
  );
  const refused = /the backup .*forged was changed after it was written: use another backup/;
  await installation.fails(refused, typed`backup verify ${backup}`);
  await installation.fails(refused, ['restore', backup], elsewhere());
  await rm(join(backup, 'SHA256SUMS.hmac'));
  await installation.fails(/nothing proves who wrote the backup .*forged: use another backup/, [
    'restore',
    backup,
  ]);
  await writeFile(join(backup, 'SHA256SUMS.hmac'), `other.${'A'.repeat(43)}\n`);
  await installation.fails(
    /was written under the key other, which the key ring lacks/,
    typed`backup verify ${backup}`,
  );

  // Also if it is trusted, its settings are not obeyed. What an operator had added is kept for reading.
  assert.equal((await installation.json`backup verify ${backup} --trust`).ok, true);
  const { status, out, err } = await installation.run(typed`restore ${backup} --trust --json`, elsewhere());
  assert.equal(status, 0, err);
  const { ownSettings } = JSON.parse(out);
  assert.match(await readFile(ownSettings, 'utf8'), /^recovery_end_command = /m);
  assert.equal((await installation.run(['reconcile'], elsewhere())).status, 0);
  await assert.rejects(access(canary));
  await rm(installation.at('elsewhere'), { recursive: true });
});

test('files, folders and links that no backup contains are refused', async () => {
  const refuses = async (expected: RegExp, change: (cluster: string, backup: string) => Promise<unknown>) => {
    const backup = await forged(async (at) => void (await change(join(at, 'cluster'), at)));
    await installation.fails(expected, typed`backup verify ${backup} --trust`);
  };
  const strange = (name: string) => new RegExp(`is damaged: ${name} does not belong into it`);
  for (const file of ['standby.signal', 'tablespace_map', 'scrip.conf', 'pg_hba.conf', 'base/1/canary.so'])
    await refuses(strange(`cluster/${file}`), (cluster) => writeFile(join(cluster, file), ''));
  await refuses(strange('elsewhere'), (_cluster, at) => writeFile(join(at, 'elsewhere'), ''));
  await refuses(strange('../../canary'), async (_cluster, at) => {
    const file = join(at, 'manifest.json');
    const manifest = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...manifest, folders: [...manifest.folders, '../../canary'] }));
  });
  await refuses(/base\/1\/2619 is not a file of this folder/, async (cluster) => {
    await rename(join(cluster, 'base', '1', '2619'), installation.at('outside'));
    await symlink(installation.at('outside'), join(cluster, 'base', '1', '2619'));
  });
  await refuses(/base\/1\/\w+ is not a file of this folder/, async (cluster) => {
    await rename(join(cluster, 'base', '1'), installation.at('outside-folder'));
    await symlink(installation.at('outside-folder'), join(cluster, 'base', '1'));
  });
});

test('an archived log that was changed, or comes from elsewhere, is refused', async () => {
  await installation.topUp('archived');
  // The end of a backup completes a segment.
  await installation.json`backup create ${installation.at('later')}`;
  await archived(installation);
  const archive = installation.at('archive');
  const copy = { ...elsewhere(), SCRIP_ARCHIVE_DIR: installation.at('copied-archive') };
  const refuses = async (expected: RegExp, change: (archive: string) => Promise<unknown>) => {
    await cp(archive, copy.SCRIP_ARCHIVE_DIR, { recursive: true });
    await change(copy.SCRIP_ARCHIVE_DIR);
    await installation.fails(expected, ['restore', original], copy);
    await rm(copy.SCRIP_ARCHIVE_DIR, { recursive: true });
  };
  const names = await readdir(archive);
  const whole = names.filter((each) => /^[0-9A-F]{24}\..{40}/.test(each)).at(-1) ?? assert.fail(names.join());
  const tail = names.find((each) => each.endsWith('.tail')) ?? assert.fail(names.join());
  const wasChanged = /the file .* in .*copied-archive was changed after it was written: use the backup alone/;
  const flipped = (content: Buffer) => {
    content[content.length - 1] = (content.at(-1) ?? 0) ^ 1;
    return content;
  };
  await refuses(wasChanged, async (at) => {
    const file = join(at, whole);
    await writeFile(file, gzipSync(flipped(gunzipSync(await readFile(file)))));
  });
  await refuses(/the file .* in .*copied-archive is damaged: restore a copy of it/, async (at) => {
    const file = join(at, whole);
    await writeFile(file, flipped(await readFile(file)));
  });
  await refuses(wasChanged, async (at) => {
    const [name = ''] = await readdir(join(at, tail));
    const piece = join(at, tail, name);
    await writeFile(piece, flipped(await readFile(piece)));
  });
  const [, segment = '', key = '', code = ''] = /^(.{24})\.(.+)\.(.{43})\.gz$/.exec(whole) ?? [];
  // A true segment under the name of another one.
  await refuses(wasChanged, (at) =>
    rename(join(at, whole), join(at, whole.replace(segment, '00000000000000000000000F'))),
  );
  // The history of a timeline that never was, with which a restore would leave out what it names.
  await refuses(wasChanged, (at) =>
    writeFile(join(at, `00000009.history.${key}.${'A'.repeat(43)}`), '1\t0/1\tbefore\n'),
  );
  await refuses(/was written under the key other, which the key ring lacks/, (at) =>
    rename(join(at, whole), join(at, `${segment}.other.${code}.gz`)),
  );
});

test('a backup contains no password of the database', async () => {
  const { ownerPassword, servicePassword } = JSON.parse(
    await readFile(installation.at('data', 'postgres', 'scrip.json'), 'utf8'),
  );
  for (const each of await readdir(original, { recursive: true, withFileTypes: true })) {
    if (!each.isFile()) continue;
    const content = await readFile(join(each.parentPath, each.name), 'latin1');
    assert.ok(!content.includes(ownerPassword) && !content.includes(servicePassword), each.name);
  }
  // A restored database therefore has passwords of its own.
  await mkdir(installation.at('other'), { mode: 0o700 });
  const other = { ...elsewhere(), SCRIP_DATA_DIR: installation.at('other') };
  assert.equal((await installation.run(['restore', original], other)).status, 0);
  const restored = await readFile(installation.at('other', 'postgres', 'scrip.json'), 'utf8');
  assert.ok(!restored.includes(ownerPassword) && !restored.includes(servicePassword));
  assert.equal((await installation.run(['reconcile'], other)).status, 0);
});
