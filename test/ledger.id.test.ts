import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { idFloor, newId } from '../src/ledger/id.ts';
import { checkLookupReference, checkReference } from '../src/ledger/reference.ts';
import { maskCode } from '../src/ledger/transaction-data.ts';

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
const is18 = (error: unknown) => (error as { code?: string }).code === '18';

test('ids are of version 7, tell their time, increase strictly and are never alike, thousands in a millisecond too', () => {
  const now = new Date('2030-01-02T03:04:05.678Z');
  const ids = Array.from({ length: 5000 }, () => newId(now));
  for (const id of ids) assert.match(id, UUID_7);
  assert.equal(timeOf(ids[0] as string), now.getTime());
  assert.equal((ids[0] as string).slice(14, 18), '7000');
  assert.equal((ids[1] as string).slice(14, 18), '7001');
  // What runs over the 4,096 of a millisecond borrows from the next one.
  assert.equal(timeOf(ids[4095] as string), now.getTime());
  assert.equal(timeOf(ids[4096] as string), now.getTime() + 1);
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids.map((id) => id.slice(19))).size, ids.length, 'the random parts are drawn anew');
  assert.equal(new Set(ids.map((id) => id[19])).size, 4, 'the variant leaves two bits to chance');
});

test('an id of a clock that went back is greater than the one before, unless that one was far ahead', () => {
  const later = newId(new Date('2031-01-01T00:10:00Z'));
  const earlier = newId(new Date('2031-01-01'));
  assert.ok(earlier > later);
  // Ids must be of the hour around their booking: one that was made by a wrong clock is left behind.
  assert.equal(timeOf(newId(new Date('2030-12-31T23:59:59Z'))), Date.parse('2030-12-31T23:59:59Z'));
  assert.equal(timeOf(newId(new Date('2031-01-02'))), Date.parse('2031-01-02'));
});

test('the floor of a time is below every id of it, and above those before', () => {
  assert.equal(idFloor(new Date(0x0123456789ab)), '01234567-89ab-7000-8000-000000000000');
  assert.equal(idFloor(new Date(1)), '00000000-0001-7000-8000-000000000000');
  assert.equal(idFloor(new Date(-5)), '00000000-0000-7000-8000-000000000000');
  const at = new Date('2040-01-01');
  assert.ok(idFloor(at) <= newId(at));
  assert.ok(newId(at) < idFloor(new Date('2040-01-02')));
});

test('a reference has 1 to 100 characters, none of control, in whole pairs', () => {
  for (const reference of [
    'x',
    'x'.repeat(100),
    '🎁'.repeat(100),
    'a b',
    'xCANCEL-1',
    'cancel-1',
    'NEW',
    'ÜNEW-',
  ]) {
    checkReference(reference);
    checkLookupReference(reference);
  }
  const broken = [
    '',
    'x'.repeat(101),
    '🎁'.repeat(101),
    'x'.repeat(201),
    `${'🎁'.repeat(100)}x`,
    'a\nb',
    '\u0000',
    'a\u007f',
    '\u0085',
    '\ud83c',
  ];
  for (const reference of broken) {
    assert.throws(() => checkReference(reference), is18, JSON.stringify(reference));
    assert.throws(() => checkLookupReference(reference), is18, JSON.stringify(reference));
  }
});

test('the names of updates are theirs, and may be looked for', () => {
  for (const reference of ['NEW-1', 'CANCEL-1', 'NEW-', 'CANCEL-']) {
    assert.throws(() => checkReference(reference), is18, reference);
    checkLookupReference(reference);
  }
});

test('a mask leaves four digits at both ends', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[1-9]\d{11}$/), (code) => {
      assert.equal(maskCode(code), `${code.slice(0, 4)}****${code.slice(8)}`);
    }),
  );
});
