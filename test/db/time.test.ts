import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import pg from 'pg';
import { parseTimestamp } from '../../src/db/sql.ts';
import { addDays, isDay, isoDay, isoFromJson, isoTime } from '../../src/time.ts';

const DAY_MS = 86_400_000;
/** Any time that a Date can hold, and times around the ends of days and seconds. */
const times = fc.oneof(
  fc.integer({ min: -8.64e15, max: 8.64e15 }),
  fc
    .tuple(
      fc.integer({ min: -1_000, max: 100_000 }),
      fc.constantFrom(-1, 0, 1, 999, 1_000, 59_999, 60_000, 3_600_000),
    )
    .map(([day, ms]) => day * DAY_MS + ms),
);

test('a time is formatted as Date formats it, after any other time', () => {
  fc.assert(
    fc.property(fc.array(times, { minLength: 1, maxLength: 20 }), (all) => {
      for (const ms of all) {
        const text = new Date(ms).toISOString();
        assert.equal(isoTime(ms), text);
        assert.equal(isoDay(ms), text.slice(0, text.indexOf('T')));
      }
    }),
  );
});

test('more days than the cache holds are formatted correctly', () => {
  for (let day = 0; day < 3_000; day++)
    assert.equal(isoTime(day * DAY_MS), new Date(day * DAY_MS).toISOString());
});

test('an invalid time is refused', () => {
  for (const none of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1]) {
    assert.throws(() => isoTime(none), RangeError);
    assert.throws(() => isoDay(none), RangeError);
  }
  assert.throws(() => isoFromJson('no time'), RangeError);
});

test('a time in JSON of the database is truncated to milliseconds', () => {
  const cases = [
    ['2026-03-02T09:15:04+00:00', '2026-03-02T09:15:04.000Z'],
    ['2026-03-02T09:15:04.1+00:00', '2026-03-02T09:15:04.100Z'],
    ['2026-03-02T09:15:04.117+00:00', '2026-03-02T09:15:04.117Z'],
    ['2026-03-02T09:15:04.117999+00:00', '2026-03-02T09:15:04.117Z'],
    // In a session with another time zone.
    ['2026-03-02T09:15:04.117+05:30', '2026-03-02T03:45:04.117Z'],
  ] as const;
  for (const [text, expected] of cases) assert.equal(isoFromJson(text), expected);
});

test('a time of the database is parsed as the driver parses it, after any other time', () => {
  const driver = pg.types.getTypeParser(1184, 'text') as (text: string) => unknown;
  const texts = fc.oneof(
    times
      .filter((ms) => ms > -6e13 && ms < 2.5e14)
      .map((ms) => new Date(ms).toISOString().replace('T', ' ').replace('Z', '+00')),
    fc.constantFrom('infinity', '-infinity', '2026-03-02 09:15:04+00', '2026-03-02 09:15:04.123456+00'),
    fc.constantFrom(
      '2026-03-02 09:15:04.1+00',
      '2026-03-02 09:15:04+05:30',
      '12026-03-02 09:15:04+00',
      '0044-03-15 12:00:00+00 BC',
    ),
  );
  fc.assert(
    fc.property(fc.array(texts, { minLength: 1, maxLength: 20 }), (all) => {
      for (const text of [...all, ...all]) assert.deepEqual(parseTimestamp(text), driver(text), text);
    }),
  );
  const first = parseTimestamp('2026-03-02 09:15:04+00') as Date;
  first.setTime(0);
  assert.deepEqual(parseTimestamp('2026-03-02 09:15:04+00'), new Date('2026-03-02T09:15:04Z'));
});

test('a day exists or not, and days are counted over the ends of months and years', () => {
  for (const text of ['2026-04-31', '2026-02-29', '2026-13-01', '2026-1-01', '2026-01-01T00:00', ''])
    assert.equal(isDay(text), false, text);
  for (const text of ['2024-02-29', '9999-12-31']) assert.equal(isDay(text), true, text);
  assert.equal(addDays('2026-12-31', 1), '2027-01-01');
  assert.equal(addDays('2024-03-01', -1), '2024-02-29');
});
