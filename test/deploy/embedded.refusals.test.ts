import assert from 'node:assert/strict';
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openEmbedded } from '../../src/db/embedded.ts';
import { createLogger } from '../../src/log.ts';

let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'scrip-refused-'));
});

after(() => rm(folder, { recursive: true, force: true }));

/** Expects that a data folder is refused with a message of one line. */
async function refused(dataDir: string, reason: RegExp): Promise<void> {
  await assert.rejects(openEmbedded(dataDir, createLogger('silent')), (error: Error) => {
    assert.equal(error.name, 'StartError');
    assert.match(error.message, reason);
    assert.match(error.message, /^[^\n]+$/);
    return true;
  });
}

async function folderOf(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(join(folder, name, 'postgres'), { recursive: true, mode: 0o700 });
  for (const [file, text] of Object.entries(files))
    await writeFile(join(folder, name, 'postgres', file), text);
  return join(folder, name);
}

test('a file is refused as the data folder', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '');
  await refused(file, /it is a file .*SCRIP_DATA_DIR/);
  await refused(join(file, 'below'), /it is a file .*SCRIP_DATA_DIR/);
});

test('a data folder that cannot be created is refused', async () => {
  await refused('/proc/nope/below', /cannot be (created|written) .*SCRIP_DATA_DIR/);
});

test('a data folder of another user is refused', async () => {
  // Root owns the top of the file system, and can give a folder away.
  let dataDir = '/';
  if (process.getuid?.() === 0) {
    dataDir = join(folder, 'given');
    await mkdir(dataDir);
    await chown(dataDir, 1, 1);
  }
  await refused(dataDir, /belongs to another user \(\w+\).*SCRIP_DATA_DIR/);
});

test('a data folder of another version of PostgreSQL is refused', async () => {
  await refused(
    await folderOf('older', { PG_VERSION: '17\n' }),
    /made by PostgreSQL 17, and this is PostgreSQL 18/,
  );
});

test('no empty database takes the place of one that a killed restore set aside or did not end', async () => {
  for (const left of ['postgres.replaced-20300101T000000000Z', 'postgres.restore-0123456789ab']) {
    const dataDir = join(folder, left);
    await mkdir(join(dataDir, left), { recursive: true, mode: 0o700 });
    await refused(dataDir, new RegExp(`has no database, but .* ${left}: run the restore again`));
  }
});

test('a data folder with missing or damaged settings is refused', async () => {
  await refused(await folderOf('bare', { PG_VERSION: '18\n' }), /scrip\.json is missing/);
  await refused(
    await folderOf('damaged', { PG_VERSION: '18\n', 'scrip.json': '{"port": 1' }),
    /scrip\.json is damaged/,
  );
});
