import assert from 'node:assert/strict';
import { appendFile, cp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { Installation } from '../support/installation.ts';
import { ofFile } from '../support/scope.ts';
import { typed } from '../support/scrip.ts';

/** Backups and restores that are refused. */

let installation: Installation;
const t = ofFile();

before(async () => {
  installation = await Installation.backedUp(t, '--with-keys');
});

/** An empty data folder, and the key ring. */
const elsewhere = (of: Installation) => ({
  SCRIP_DATA_DIR: of.at('elsewhere'),
  SCRIP_KEYS_FILE: of.at('data', 'keys'),
});

test('folders of another installation are refused for backups, the archive and a restore', async (t) => {
  const one = await Installation.make(t);
  one.settings['SCRIP_ARCHIVE_DIR'] = one.at('archive');
  await one.serve();
  await one.json('backup', 'create', one.at('backups'), '--with-keys');
  await one.stop();
  const other = installation;
  await other.fails(/contains backups of another installation: use another folder/, [
    'backup',
    one.at('backups'),
  ]);
  await other.fails(/belongs to another installation: use an empty folder/, ['serve'], {
    SCRIP_ARCHIVE_DIR: one.at('archive'),
  });
  await other.fails(
    /the archived log in .* belongs to another installation than the backup/,
    ['restore', other.at('backups')],
    { SCRIP_ARCHIVE_DIR: one.at('archive'), ...elsewhere(other) },
  );
  await other.fails(/there is no archived log in .*nowhere/, ['restore', other.at('backups')], {
    SCRIP_ARCHIVE_DIR: other.at('nowhere'),
    ...elsewhere(other),
  });
});

test('a restore that cannot succeed is refused in one line, and changes nothing', async () => {
  const backups = installation.at('backups');
  const there = elsewhere(installation);
  await installation.fails(/is in use: stop every process/, typed`restore ${backups} --replace`);
  await installation.stop();
  await installation.fails(/contains a database, which may be newer than the backup of .*--replace/, [
    'restore',
    backups,
  ]);
  await installation.fails(/there is no backup in .*nowhere: check the path/, [
    'restore',
    installation.at('nowhere'),
  ]);
  await installation.fails(
    /2020-01-01T00:00:00.000Z is before the backup in .*which ended at 20/,
    typed`restore ${backups} --to 2020-01-01`,
    there,
  );
  await installation.fails(
    /a restore to a time needs the archived log: set SCRIP_ARCHIVE_DIR/,
    typed`restore ${backups} --to 2099-01-01`,
    there,
  );
  await installation.fails(/for the embedded database only.*docs\/how-to\/back-up.md/, ['backup', backups], {
    SCRIP_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
  });

  const [name = ''] = await readdir(backups);
  const damage = async (expected: RegExp, change: (backup: string) => Promise<void>) => {
    const copy = installation.at('damaged');
    await cp(join(backups, name), copy, { recursive: true });
    await change(copy);
    await installation.fails(expected, typed`restore ${copy} --trust`, there);
    await rm(copy, { recursive: true });
  };
  await damage(/is damaged: cluster\/PG_VERSION differs from its checksum; use another backup/, (backup) =>
    appendFile(join(backup, 'cluster', 'PG_VERSION'), 'x'),
  );
  await damage(/is damaged: cluster\/global\/pg_control is missing/, (backup) =>
    rm(join(backup, 'cluster', 'global', 'pg_control')),
  );
  await damage(/is damaged: SHA256SUMS is incomplete/, async (backup) => {
    const sums = await readFile(join(backup, 'SHA256SUMS'), 'utf8');
    await writeFile(join(backup, 'SHA256SUMS'), sums.split('\n').slice(1).join('\n'));
  });
  await damage(/is damaged: manifest.json cannot be read/, (backup) =>
    writeFile(join(backup, 'manifest.json'), '{'),
  );
  await damage(/is damaged: manifest.json differs/, (backup) =>
    appendFile(join(backup, 'manifest.json'), '\n'),
  );
  await rename(join(backups, name), join(backups, `${name}.partial`));
  await installation.fails(
    /there is no backup in .*only one that was not finished/,
    ['restore', backups],
    there,
  );
  assert.deepEqual(
    (await readdir(installation.at('elsewhere')).catch(() => [])).filter((each) =>
      each.startsWith('postgres.restore'),
    ),
    [],
  );
});
