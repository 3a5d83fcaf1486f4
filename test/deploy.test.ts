import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { SETTINGS } from '../src/config.ts';
import { readProgram } from './program.ts';

const FOLDER = new URL('../deploy/', import.meta.url);
/** Variables of the files themselves: the proxy's domain and processes, and the folder of nightly backups. */
const OWN = ['SCRIP_DOMAIN', 'SCRIP_UPSTREAMS', 'SCRIP_BACKUPS'];

async function readAll(): Promise<[name: string, text: string][]> {
  const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(
    files.map(
      async ({ parentPath, name }) =>
        [name, await readFile(`${parentPath}/${name}`, 'utf8')] as [string, string],
    ),
  );
}

test('the files of a deployment name only settings and commands that exist', async () => {
  const known = new Set<string>([...Object.values(SETTINGS).map(({ name }) => name), ...OWN]);
  const words = new Set([...(await readProgram()).keys()].flatMap((name) => name.split(' ')));
  const files = await readAll();
  assert.ok(files.length >= 9);
  for (const [file, text] of files) {
    for (const [name] of text.matchAll(/\bSCRIP_[A-Z_]+/g))
      assert.ok(known.has(name), `${file} names ${name}`);
    for (const [, command = ''] of text.matchAll(/src\/main\.ts ([a-z]+)/g))
      assert.ok(words.has(command), `${file} runs ${command}`);
  }
});

test('no file of a deployment contains a password or a key', async () => {
  for (const [file, text] of await readAll()) {
    assert.doesNotMatch(text, /postgres:\/\/[a-z_]+:[^$…@]+@/, file);
    assert.doesNotMatch(text, /\bPASSWORD[:=] *['"]?[A-Za-z0-9]/, file);
  }
});
