import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { OPERATIONS } from '../../src/operations/table.ts';

/** What a refusal says of a field: a form shows the label of each other field that it names. */

const names = new Set(OPERATIONS.flatMap(({ input }) => Object.keys(input.properties)));
const MESSAGE = /\b(?:invalid|wrong)\(\s*'\w+',\s*'[\w-]+',\s*'([^'\n]+)'/g;
const isField = (word: string) => names.has(word) && /[A-Z]/.test(word);

/** The names of fields in a message that nothing marks: compound ones, and those that are prepositions. */
const unmarked = (message: string) => {
  const text = message.replace(/`\w+`/g, '');
  return [
    ...(text.match(/\w+/g) ?? []).filter(isField),
    ...(text.match(/\b(with|as|before|than) (from|to)\b|\bfrom or to\b/g) ?? []),
  ];
};

test('a refusal marks the names of other fields', () => {
  const found = globSync('src/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(MESSAGE)].map(([, message = '']) => ({ file, message })),
  );
  assert.ok(found.length > 50, `only ${found.length} messages were found`);
  assert.deepEqual(
    found.filter(({ message }) => unmarked(message).length > 0),
    [],
  );
  assert.deepEqual(unmarked('needs perSecond'), ['perSecond']);
  assert.deepEqual(unmarked('must be a voucher of the same batch as from'), ['as from']);
});
