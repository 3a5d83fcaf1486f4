import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { passMark } from '../../src/books/seal.ts';
import { archiveMonths } from '../../src/db/archive.ts';
import { raw, sql } from '../../src/db/sql.ts';
import { openLedger, proveSound, sell, spend } from '../support/books.ts';
import { ownerOf } from '../support/owner.ts';
import { until } from '../support/until.ts';

/** Old months of the journal move to another tablespace while the service runs. */

const JOURNAL = sql`
select md5(string_agg(j::text, ' ' order by id)) as digest, count(*)::int as rows from scrip.journal j`;
/** The tables and indexes of January that are in a tablespace of their own, and other relics of the move. */
const PLACES = sql`
select c.relname as name, t.spcname as tablespace
from pg_class c left join pg_tablespace t on t.oid = c.reltablespace
where c.relname like 'journal\\_2026\\_01%' order by 1`;

/** A service in March, which has sold and redeemed a voucher in January. */
async function openInMarch(t: TestContext) {
  const ledger = await openLedger(t, '2026-01-15T12:00:00Z');
  const { url, service } = ledger.started;
  const owner = await ownerOf(t, url);
  for (const month of ['2026-01-01', '2026-02-01', '2026-03-01'])
    await owner.query(sql`select scrip.create_partition('journal', ${month}::date)`);
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 20);
  const january = await spend(shop, card, 1, 'january');
  await ledger.at('2026-03-15T12:00:00Z');
  await passMark(service);
  const tablespace = `cold_${randomUUID().slice(0, 8)}`;
  await owner.query(raw('set allow_in_place_tablespaces = on'));
  await owner.query(raw(`create tablespace ${tablespace} location ''`));
  return { ...ledger, url, service, shop, card, january, owner, tablespace };
}

test('old months move to a tablespace with all their rows, and their references stay used', async (t) => {
  const { url, service, shop, card, january, owner, tablespace } = await openInMarch(t);
  const before = await owner.query<{ digest: string; rows: number }>(JOURNAL);
  const archived = await archiveMonths(url, { before: '2026-03-31', tablespace });
  assert.deepEqual(
    archived.map(({ month }) => month),
    ['2026-01', '2026-02'],
  );
  assert.equal(archived[0]?.rows, before[0]?.rows);
  assert.deepEqual(await owner.query(JOURNAL), before);
  const places = await owner.query<{ name: string; tablespace: string }>(PLACES);
  assert.ok(places.length >= 4);
  for (const place of places) {
    assert.equal(place.tablespace, tablespace, place.name);
    assert.ok(!place.name.includes('copy'), place.name);
  }
  assert.deepEqual(await spend(shop, card, 1, 'january'), january);
  await spend(shop, card, 2, 'march');
  await proveSound(service);
  assert.deepEqual(await archiveMonths(url, { before: '2026-03-31', tablespace }), []);
});

test('tills redeem while a month waits for a long reader', async (t) => {
  const { url, shop, card, owner, tablespace } = await openInMarch(t);
  await owner.query(raw('begin; select from scrip.journal limit 1'));
  const archiving = archiveMonths(url, { before: '2026-02-01', tablespace });
  const copied = async () =>
    (await owner.query(sql`select from pg_locks where locktype = 'relation' and not granted`)).length > 0;
  await until('the copy waits to take its place', copied);
  for (let sale = 0; sale < 5; sale++) await spend(shop, card, 0.5, `beside ${sale}`);
  await owner.query(raw('commit'));
  assert.equal((await archiving).length, 1);
});

test('a month in which something can still be booked stays, and an unknown tablespace is named', async (t) => {
  const { url, tablespace, owner } = await openInMarch(t);
  await owner.query(sql`update scrip.book_horizon set at = '2026-01-31T23:00:00Z'`);
  assert.deepEqual(await archiveMonths(url, { before: '2026-03-31', tablespace }), []);
  await assert.rejects(archiveMonths(url, { before: '2026-03-31', tablespace: 'none' }), {
    message: /there is no tablespace none: create it first/,
  });
});

test('a month that maintenance holds is not moved, and the command says so', async (t) => {
  const { url, tablespace, owner } = await openInMarch(t);
  await owner.query(raw('begin; select pg_advisory_xact_lock(7311990004)'));
  await assert.rejects(archiveMonths(url, { before: '2026-03-31', tablespace }), {
    message: /2026-01 is in use by maintenance and was not moved: run it again/,
  });
  await owner.query(raw('rollback'));
  assert.equal((await archiveMonths(url, { before: '2026-03-31', tablespace })).length, 2);
});
