import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import {
  addToKeyFile,
  createKeyFile,
  isReadByOthers,
  keyFile,
  readKeyRing,
  rewriteKeyFile,
} from '../../src/keyring/file.ts';
import { folderOf } from '../support/folder.ts';

/** The key file: whoever loses it loses the vouchers, and whoever reads it can open them. */

test('of two first starts one creates the key file, and the other leaves it as it is', async (t) => {
  const file = keyFile({ dataDir: folderOf(t) });
  await Promise.all([createKeyFile(file), createKeyFile(file)]);
  const text = await readFile(file.path, 'utf8');
  const ring = readKeyRing(text, 'it');
  // With an entry for the routing key.
  assert.deepEqual([ring.checks().length, ring.routingFrom], [1, undefined]);
  await createKeyFile(file);
  assert.equal(await readFile(file.path, 'utf8'), text);
  assert.deepEqual(await readdir(dirname(file.path)), ['keys']);
});

test('a change removes the drafts of the key file that killed processes left, and no other file', async (t) => {
  const file = keyFile({ dataDir: folderOf(t) });
  await createKeyFile(file);
  const keyId = await addToKeyFile(file);
  const ring = await readFile(file.path, 'utf8');
  assert.deepEqual(readKeyRing(ring, 'it').holds(keyId), true);
  const { pid } = spawnSync(process.execPath, ['--version']);
  const left = ['keys.0123456789ab.part', `keys.${pid}-0123456789ab.part`];
  const kept = ['keys', `keys.${process.pid}-0123456789ab.part`, 'keys-old.0123456789ab.part'];
  for (const name of [...left, ...kept.slice(1)]) await writeFile(join(dirname(file.path), name), 'left');
  await rewriteKeyFile(file, ring);
  assert.deepEqual((await readdir(dirname(file.path))).sort(), kept.sort());
  assert.equal(await readFile(file.path, 'utf8'), ring);
});

test('a key file that its group or anybody else can read is told', async (t) => {
  const file = keyFile({ dataDir: folderOf(t) });
  assert.equal(await isReadByOthers(file), false);
  await createKeyFile(file);
  const seen = [];
  for (const mode of [0o600, 0o640, 0o604]) {
    await chmod(file.path, mode);
    seen.push(await isReadByOthers(file));
  }
  assert.deepEqual(seen, [false, true, true]);
});
