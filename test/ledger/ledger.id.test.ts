import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkLookupReference, checkReference } from '../../src/ledger/claims.ts';
import { idFloor, newId } from '../../src/ledger/id.ts';
import { maskCode } from '../../src/ledger/transaction.ts';

const UUID_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
const is18 = (error: unknown) => (error as { code?: string }).code === '18';

test('ids are increasing UUIDs of version 7, also within a millisecond', () => {
  const now = new Date('2030-01-02T03:04:05.678Z');
  const ids = Array.from({ length: 5000 }, () => newId(now));
  for (const id of ids) assert.match(id, UUID_7);
  assert.equal(timeOf(ids[0] as string), now.getTime());
  assert.equal((ids[0] as string).slice(14, 18), '7000');
  assert.equal((ids[1] as string).slice(14, 18), '7001');
  // After 4,096 ids of a millisecond, the next ones have the following millisecond.
  assert.equal(timeOf(ids[4095] as string), now.getTime());
  assert.equal(timeOf(ids[4096] as string), now.getTime() + 1);
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids.map((id) => id.slice(19))).size, ids.length, 'the random parts differ');
  assert.equal(new Set(ids.map((id) => id[19])).size, 4, 'two bits of the variant are random');
});

test('ids still increase after the clock was set back, unless it was far ahead', () => {
  const later = newId(new Date('2031-01-01T00:10:00Z'));
  const earlier = newId(new Date('2031-01-01'));
  assert.ok(earlier > later);
  // The time of an id must be within an hour of its booking: an id of a wrong clock does not bind later ones.
  assert.equal(timeOf(newId(new Date('2030-12-31T23:59:59Z'))), Date.parse('2030-12-31T23:59:59Z'));
  assert.equal(timeOf(newId(new Date('2031-01-02'))), Date.parse('2031-01-02'));
});

test('the floor of a time is not above any id of that time, and above all ids before it', () => {
  assert.equal(idFloor(new Date(0x0123456789ab)), '01234567-89ab-7000-8000-000000000000');
  assert.equal(idFloor(new Date(1)), '00000000-0001-7000-8000-000000000000');
  assert.equal(idFloor(new Date(-5)), '00000000-0000-7000-8000-000000000000');
  const at = new Date('2040-01-01');
  assert.ok(idFloor(at) <= newId(at));
  assert.ok(newId(at) < idFloor(new Date('2040-01-02')));
});

test('a reference has 1 to 100 characters, without control characters or lone surrogates', () => {
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

test('references that begin with NEW- or CANCEL- are refused, except in a lookup', () => {
  for (const reference of ['NEW-1', 'CANCEL-1', 'NEW-', 'CANCEL-']) {
    assert.throws(() => checkReference(reference), is18, reference);
    checkLookupReference(reference);
  }
});

test('a masked code shows four digits at both ends', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[1-9]\d{11}$/), (code) => {
      assert.equal(maskCode(code), `${code.slice(0, 4)}****${code.slice(8)}`);
    }),
  );
});
