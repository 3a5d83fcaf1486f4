import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { call, PROGRAMS } from '../support/proof-programs.ts';

/** Files that the programs which verify proofs cannot read. */

const page = await readFile(new URL('../../docs/reference/proof.md', import.meta.url), 'utf8');
const [, example = ''] = /^```text\n([\s\S]*?)^```/m.exec(page) ?? [];

/** What cannot be read, by its name, and why not. */
const UNREADABLE: readonly (readonly [string, Buffer | null, string])[] = [
  ['missing.txt', null, 'does not exist'],
  ['.', null, 'is a folder: name a file'],
  ['file.txt/proof.txt', null, 'does not exist'],
  ['proof.txt.gz', gzipSync('scrip proof 2'), 'is compressed: unpack it first'],
  ['latin-1.txt', Buffer.from('K\u00e4se', 'latin1'), 'is no text in UTF-8'],
];

test('both programs say in the same line why a file cannot be read, or how they are called', async () => {
  const folder = await temporaryFolder('scrip-unreadable-');
  const at = (name: string) => join(folder, name);
  await writeFile(at('file.txt'), example);
  for (const program of Object.values(PROGRAMS)) {
    const says = async (args: readonly string[], sentence: string | RegExp) => {
      const [status, said] = await call(program, args);
      assert.equal(status, 1);
      if (typeof sentence === 'string') assert.equal(said, `refused: ${sentence}`);
      else assert.match(said, sentence);
    };
    for (const [name, bytes, why] of UNREADABLE) {
      if (bytes) await writeFile(at(name), bytes);
      await says([at(name)], `${at(name)} ${why}`);
    }
    const against = (to: string) => [at('file.txt'), '--against', at(to)];
    await says(against('missing'), `${at('missing/checkpoint')} does not exist`);
    await says(against('file.txt'), `${at('file.txt/checkpoint')} does not exist`);
    for (const args of [[], ['--from', '1'], [at('file.txt'), '--key', 'k'], ['a', 'b']])
      await says(args, /^refused: usage: \S+ FILE \[--against DIR\] \[--key NAME\+ID\+KEY\]$/);
  }
});
