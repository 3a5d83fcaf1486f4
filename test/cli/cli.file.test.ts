import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { writePublic } from '../../src/books/publish.ts';
import { writeWhole } from '../../src/cli/file.ts';
import { keep } from '../../src/cli/trial.ts';
import { rewriteKeyFile } from '../../src/keyring/file.ts';
import { withDraft } from '../../src/private-file.ts';
import { folderOf } from '../support/folder.ts';
import type { Scope } from '../support/scope.ts';

/** Starts a process that has written the beginning of an export, and does not go on. */
async function startExport(t: Scope, path: string) {
  const program = `
    import { writeWhole } from ${JSON.stringify(new URL('../../src/cli/file.ts', import.meta.url).href)};
    async function* pieces() {
      yield 'code,pin\\n';
      process.stdout.write('begun');
      await new Promise((resolve) => setTimeout(resolve, 600_000));
    }
    await writeWhole(${JSON.stringify(path)}, pieces(), true);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

test('what a killed process has written of a file is removed when the file is written again', async (t) => {
  const folder = folderOf(t);
  const [codes, others] = [join(folder, 'codes.csv'), join(folder, 'others.csv')];
  const [killed, alive] = await Promise.all([startExport(t, codes), startExport(t, others)]);
  killed.kill('SIGKILL');
  await once(killed, 'close');
  await writeWhole(others, ['others'], true);
  assert.equal((await readdir(folder)).filter((name) => name.endsWith('.part')).length, 2);

  await writeWhole(codes, ['codes'], true);
  const [left, ...more] = (await readdir(folder)).filter((name) => name.endsWith('.part'));
  assert.match(String(left), /^\.others\.csv\./);
  assert.deepEqual(more, []);

  alive.kill('SIGKILL');
  await once(alive, 'close');
  await writeWhole(others, ['others'], true);
  assert.deepEqual((await readdir(folder)).sort(), ['codes.csv', 'others.csv']);
  assert.equal(await readFile(codes, 'utf8'), 'codes');
});

test('a draft of a folder or of a published file is removed with what it holds', async (t) => {
  const folder = folderOf(t);
  for (const name of ['pack', 'checkpoint']) await mkdir(join(folder, `${name}.99999999-0123456789ab.part`));
  await writeFile(join(folder, 'pack.99999999-0123456789ab.part', 'owed.csv'), 'owed');
  await writePublic(join(folder, 'checkpoint'), 'text');
  await withDraft(join(folder, 'pack'), async () => {});
  assert.deepEqual(await readdir(folder), ['checkpoint']);
});

test('a file of keys that cannot be put in its place leaves no draft', async (t) => {
  const folder = folderOf(t);
  const path = join(folder, 'keys');
  await mkdir(path);
  await assert.rejects(keep(path, { secret: 'of the demo' }), { code: 'EISDIR' });
  await assert.rejects(rewriteKeyFile({ path, kms: undefined }, 'a key ring'), { code: 'EISDIR' });
  assert.deepEqual(await readdir(folder), ['keys']);
});

test('a draft is removed when a signal makes the process exit, as that of a pack', async (t) => {
  const folder = folderOf(t);
  const { href } = new URL('../../src/private-file.ts', import.meta.url);
  const program = `
    import { mkdir, writeFile } from 'node:fs/promises';
    import { withDraft } from ${JSON.stringify(href)};
    process.on('SIGTERM', () => process.exit(130));
    await withDraft(${JSON.stringify(join(folder, 'pack'))}, async (draft) => {
      await mkdir(draft);
      await writeFile(draft + '/owed.csv', 'owed');
      process.stdout.write('begun');
      await new Promise((resolve) => setTimeout(resolve, 600_000));
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  assert.equal((await readdir(folder)).length, 1);
  child.kill('SIGTERM');
  await once(child, 'close');
  assert.deepEqual(await readdir(folder), []);
});
