import assert from 'node:assert/strict';
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { test } from 'node:test';
import {
  addToKeyFile,
  createKeyFile,
  isReadByOthers,
  keyFile,
  readKeyRing,
  rewriteKeyFile,
} from '../../src/keyring/file.ts';
import { draftName } from '../../src/private-file.ts';
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

test('a change removes the drafts of the key file, and no other file', async (t) => {
  const file = keyFile({ dataDir: folderOf(t) });
  await createKeyFile(file);
  const keyId = await addToKeyFile(file);
  const ring = await readFile(file.path, 'utf8');
  assert.deepEqual(readKeyRing(ring, 'it').holds(keyId), true);
  const other = draftName(`${file.path}-of-another`);
  for (const path of [draftName(file.path), other]) await writeFile(path, 'left');
  await rewriteKeyFile(file, ring);
  assert.deepEqual((await readdir(dirname(file.path))).sort(), ['keys', other.split('/').at(-1)].sort());
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
