import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guess } from '../../console/src/search.ts';

test('the form of a text says what it could name, and four digits of a code are no serial number', () => {
  const kinds = {
    '4829130576410731': 'code-with-pin',
    '482913057641': 'code',
    '4829…7641': 'masked',
    '4829xxxx7641': 'masked',
    '****7641': 'four-digits',
    '…7641': 'four-digits',
    '7641': 'reference',
    '10000000173': 'serial',
    '100000001734512': 'serial',
    '7-2026-0004': 'settlement',
    '0198c1d2-1234-7123-8123-123456789012': 'transaction',
    scrop_abcdefgh: 'token',
    'order-10071': 'reference',
  };
  for (const [text, kind] of Object.entries(kinds)) assert.equal(guess(text)?.kind, kind, text);
});
