import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readdir, rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { folderOf } from '../support/folder.ts';
import { startTestService } from '../support/harness.ts';
import { Operator } from '../support/operator.ts';
import { typed } from '../support/scrip.ts';

test('SCRIP_KEYS_FILE is read as the key ring, and never created or written', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  const folder = folderOf(t);
  const secret = join(folder, 'scrip_keys');
  const settings = { SCRIP_KEYS: '', SCRIP_KEYS_FILE: secret, SCRIP_DATA_DIR: join(folder, 'data') };
  const operator = Operator.at(started, settings);
  await operator.fails(
    /the key ring is missing: there is no file .*scrip_keys, which SCRIP_KEYS_FILE names/,
    ...typed`merchant list`,
  );
  assert.deepEqual(await readdir(folder), []);
  // Docker mounts a folder where the file to mount is missing.
  await mkdir(secret);
  await operator.fails(/the key file .*scrip_keys cannot be read \(EISDIR\)/, ...typed`merchant list`);
  await rmdir(secret);
  // A pipe without a writer would make the process wait for ever.
  execFileSync('mkfifo', [secret]);
  await operator.fails(/scrip_keys cannot be read \(no ordinary file\)/, ...typed`merchant list`);
  await unlink(secret);

  // Docker mounts a secret readable for all accounts, and writable for none.
  await writeFile(secret, `${started.keys}\n`);
  await chmod(secret, 0o444);
  await operator.json`merchant create --name Kiosk`;
  const { findings } = JSON.parse((await operator.run('doctor', '--json')).out);
  const ring = findings.find(({ check }: { check: string }) => check === 'key ring');
  assert.deepEqual([ring.state, ring.found], ['ok', `the file ${secret}`]);
});
