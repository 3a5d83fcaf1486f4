import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leafHash } from '../../src/books/merkle.ts';
import { type Closing, listClosings, sumOfSlices, textOfClosing } from '../../src/books/seal.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { openLedger, sell, spend } from '../support/books.ts';

async function closedDay(t: Parameters<typeof openLedger>[0]) {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const [one, other] = await sell(shop, 2, 25);
  assert.ok(one && other);
  const spent = await spend(shop, one, 10, 'till 1');
  await spend(shop, other, 5, 'till 2');
  await ledger.at('2026-03-03T10:00:00Z');
  await ledger.close();
  const breaks = async () => (await verifyBooks(ledger.started.service)).breaks;
  assert.deepEqual(await breaks(), []);
  return { ledger, shop, one, spent, breaks };
}

test('an added row is found, and recorded as late by the next close', async (t) => {
  const { ledger, spent, breaks } = await closedDay(t);
  const [row] = await ledger.sql<{ id: string }>(`
    insert into scrip.journal (id, debit_account, credit_account, amount_minor, occurred_at, serial_number,
      merchant_id, kind, currency)
    select scrip.id_at(gen_random_uuid(), occurred_at), debit_account, credit_account, 1, occurred_at,
      serial_number, merchant_id, kind, currency
    from scrip.journal where id = '${spent.transactionId}' returning id`);
  const [found, ...others] = await breaks();
  assert.deepEqual([found?.change, found?.transactionId, others], ['added', row?.id, []]);
  await ledger.at('2026-03-04T10:00:00Z');
  const { closed } = await ledger.close();
  // The day that takes the row over fails: a voucher has a cent more than its entries.
  assert.deepEqual(
    closed.map(({ failed }) => failed),
    [['liability is what the vouchers hold']],
  );
  const [closing] = await ledger.sql<{ totals: string }>(
    "select totals from scrip.book_closings where day = '2026-03-03'",
  );
  assert.deepEqual(JSON.parse(closing?.totals ?? '').late, [row?.id]);
  const late = (await breaks()).filter(({ change }) => change === 'late');
  assert.deepEqual([late.map(({ transactionId }) => transactionId), late[0]?.day], [[row?.id], '2026-03-02']);
});

test('a rewritten or removed closing is found', async (t) => {
  const { ledger, breaks } = await closedDay(t);
  await ledger.at('2026-03-04T10:00:00Z');
  await ledger.close();
  await ledger.sql("update scrip.book_closings set rows = rows + 1 where day = '2026-03-02'");
  assert.deepEqual(
    (await breaks()).map(({ change }) => change),
    ['closing', 'seal'],
  );
  await ledger.sql("delete from scrip.book_closings where day = '2026-03-02'");
  assert.ok((await breaks()).some(({ day, change }) => day === '2026-03-02' && change === 'audit'));
  assert.ok((await breaks()).some(({ day, change }) => day === '2026-03-03' && change === 'chain'));
});

test('a day that was rewritten with all of its hashes is found by the sealed end of the audit', async (t) => {
  const { ledger, spent, breaks } = await closedDay(t);
  const { service } = ledger.started;
  const at = "'2026-03-02T09:00:00Z'";
  // The time of a redemption, the seal, the closing and its entry in the audit, with the project's formulas.
  await ledger.sql(`
    update scrip.journal set occurred_at = occurred_at + interval '1 second' where id = '${spent.transactionId}';
    update scrip.book_seals s set root = f.root, listing = f.listing
    from (
      select scrip.merkle_root(string_agg(r.leaf, ''::bytea order by r.occurred_at, r.id)) as root,
        string_agg(uuid_send(r.id) || substring(r.leaf from 1 for 4), ''::bytea
          order by r.occurred_at, r.id) as listing
      from scrip.book_rows r where r.slice_at = ${at}
    ) f where s.starts_at = ${at}`);
  const [day] = await service.db.query<Closing>(listClosings(null, null));
  assert.ok(day);
  const { root } = await sumOfSlices(service.db, day);
  await ledger.sql(`update scrip.book_closings set root = '\\x${root.toString('hex')}'`);
  const [closing] = await service.db.query<Closing>(listClosings(null, null));
  assert.ok(closing);
  const hash = leafHash(textOfClosing(closing)).toString('hex');
  await ledger.sql(`
    update scrip.audit set after = replace(after, '${closing.hash.toString('hex')}', '${hash}');
    update scrip.book_closings set hash = '\\x${hash}'`);
  const found = await breaks();
  assert.deepEqual(
    found.map(({ change, detail }) => [change, detail?.replace(/\d+/, '…')]),
    [['audit', 'entry …: it was changed']],
  );
});

test('a verification that was interrupted continues with the next day', async (t) => {
  const { ledger } = await closedDay(t);
  const { service } = ledger.started;
  await ledger.at('2026-03-05T10:00:00Z');
  await ledger.close();
  const daysOf = async () => (await verifyBooks(service)).days;
  assert.equal(await daysOf(), 3);
  assert.equal(await daysOf(), 3);
  const interrupted = (breaks: number) => `
    insert into scrip.book_verifications (started_at, verified_to, breaks) values (now(), '2026-03-02', ${breaks})`;
  await ledger.sql(interrupted(0));
  assert.equal(await daysOf(), 2);
  assert.equal(await daysOf(), 3);
  assert.equal((await verifyBooks(service, { lastDays: 2 })).days, 2);
  // What it had found would not be reported again.
  await ledger.sql(interrupted(1));
  assert.equal(await daysOf(), 3);
});

test('an interval is verified with its part of the audit, and a closing that lacks is found', async (t) => {
  const { ledger } = await closedDay(t);
  const { service } = ledger.started;
  await ledger.at('2026-03-06T10:00:00Z');
  await ledger.close();
  const found = async (of: Parameters<typeof verifyBooks>[1]) => {
    const { days, breaks } = await verifyBooks(service, of);
    return [days, ...breaks.map(({ day, change }) => `${day} ${change}`)];
  };
  assert.deepEqual(await found({ from: '2026-03-03', to: '2026-03-05' }), [2]);
  assert.deepEqual(await found({ to: '2026-03-04' }), [2]);
  await ledger.sql("delete from scrip.book_closings where day = '2026-03-04'");
  assert.deepEqual(await found({ to: '2026-03-04' }), [2]);
  assert.deepEqual(await found({ to: '2026-03-06' }), [3, '2026-03-05 chain', '2026-03-04 audit']);
});
