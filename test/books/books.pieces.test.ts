import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pieces } from '../../src/books/pieces.ts';

const MIDNIGHT = new Date('2026-03-02T00:00:00Z');
const NEXT_MIDNIGHT = new Date('2026-03-03T00:00:00Z');

/** A database with a number of rows, on which others write a number of transactions between two looks. */
function databaseOf({ isBusy = false, written = 0n, rows = 1_000n }) {
  let count = rows;
  const looks: bigint[] = [];
  const query = <Row>() => {
    looks.push(count);
    count += written;
    return Promise.resolve([{ count } as Row]);
  };
  return { looks, db: { isBusy: () => isBusy, query } };
}

/** A piece of work on many rows. */
const much = () => Promise.resolve(1_000_000);

test('a close rests while this process serves tills, or while any process writes', async () => {
  for (const busy of [{ isBusy: true }, { written: 1n }]) {
    const { db, looks } = databaseOf(busy);
    await new Pieces(db).run(much);
    assert.ok(looks.length >= 2);
  }
});

test('a rest ends as soon as nobody writes, or the process stops', async () => {
  const quiet = databaseOf({});
  await new Pieces(quiet.db).run(much);
  assert.equal(quiet.looks.length, 2, 'it looks once');
  const busy = databaseOf({ isBusy: true });
  await new Pieces(busy.db, () => true).run(much);
  assert.equal(busy.looks.length, 0);
});

test('a close does not rest after few rows, but after many pieces with few rows', async () => {
  const { db, looks } = databaseOf({ isBusy: true });
  const pieces = new Pieces(db);
  await pieces.run(() => Promise.resolve(6_000));
  assert.equal(looks.length, 0);
  await pieces.run(() => Promise.resolve(6_000));
  assert.ok(looks.length >= 2);
});

test('an interval is divided into whole hours without a gap, in fewer pieces where there are few rows', async () => {
  const hours = async (rows: number) => {
    const pieces: number[] = [];
    let last = MIDNIGHT;
    await new Pieces(databaseOf({ rows: 10_000n }).db).over(MIDNIGHT, NEXT_MIDNIGHT, (from, to) => {
      assert.deepEqual(from, last);
      last = to;
      pieces.push((to.getTime() - from.getTime()) / 3_600_000);
      return Promise.resolve(rows);
    });
    assert.deepEqual(last, NEXT_MIDNIGHT);
    return pieces;
  };
  assert.deepEqual(await hours(0), [1, 4, 16, 3]);
  assert.deepEqual(await hours(20_000), Array(24).fill(1));
});

test('an interval with few rows is one piece', async () => {
  const pieces: (readonly [Date, Date])[] = [];
  await new Pieces(databaseOf({ rows: 9_999n }).db).over(MIDNIGHT, NEXT_MIDNIGHT, (...piece) => {
    pieces.push(piece);
    return Promise.resolve(0);
  });
  assert.deepEqual(pieces, [[MIDNIGHT, NEXT_MIDNIGHT]]);
});
