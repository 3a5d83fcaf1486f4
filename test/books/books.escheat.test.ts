import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escheatUnclaimed, type Selection } from '../../src/books/escheat.ts';
import { transferOwn } from '../../src/books/own.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { extendVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { type Ledger, openLedger, product, type Sold, sell, spend } from '../support/books.ts';
import { waitForLocks } from '../support/owner.ts';
import { make, rowsOf } from '../support/reports.ts';

/** Money on expired vouchers that is paid to a state. */

const FAR = new Date('2026-06-30T23:59:59.999Z');
const USD = { currency: 'USD', decimals: 2 } as const;

/** Four vouchers of 50.00 whose money is unclaimed since 4 March; 20.00 of the first were spent. */
async function openUnclaimed(ledger: Ledger): Promise<[Sold, Sold, Sold, Sold]> {
  const shop = await ledger.merchant(1_000_000n);
  const productCode = await product(ledger.operator, 'UNCLAIMED', 'unclaimed');
  const cards = (await sell(shop, 4, 50, { productCode })) as [Sold, Sold, Sold, Sold];
  await spend(shop, cards[0], 20);
  await ledger.at('2026-03-05T08:00:00Z');
  await ledger.close();
  return cards;
}

const escheat = ({ operator }: Ledger, of: Selection, amountMinor?: bigint, reference = 'state') =>
  escheatUnclaimed(operator, { ...USD, of, amountMinor, reference });

async function balanceOf({ sql }: Ledger, kind: string): Promise<number> {
  const [row] = await sql<{ minor: number }>(
    `select scrip.account_balance(id)::int as minor from scrip.accounts
     where kind = '${kind}' and currency = 'USD'`,
  );
  return row?.minor ?? 0;
}

async function failures({ started }: Ledger): Promise<string[]> {
  const { checks } = await reconcile(started.service);
  return checks.filter(({ ok }) => !ok).map(({ name }) => name);
}

for (const buckets of [1, 3]) {
  const where = buckets === 1 ? '' : ', over buckets';

  test(`money that was paid to a state does not come back to its voucher${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator, started } = ledger;
    const [first, second, third] = await openUnclaimed(ledger);
    assert.equal(await balanceOf(ledger, 'UNCLAIMED'), 18_000);
    const booked = await escheat(ledger, { serialNumbers: [second.serial, first.serial] }, 8_000n);
    assert.deepEqual(
      booked.vouchers.map(({ serialNumber, amount }) => [BigInt(serialNumber), amount]),
      [
        [first.serial, 3_000n],
        [second.serial, 5_000n],
      ],
    );
    assert.deepEqual([booked.amount, booked.replayed], [8_000n, false]);
    for (const { serial } of [first, second])
      await assert.rejects(extendVoucher(operator, serial, FAR), { code: '51', message: /paid to a state/ });
    assert.equal((await showVoucher(started.service, first.serial)).state, 'EXPIRED');
    // The money of another voucher is still there.
    await extendVoucher(operator, third.serial, FAR);
    assert.equal(await balanceOf(ledger, 'UNCLAIMED'), 5_000);
    assert.deepEqual(await failures(ledger), []);

    const again = await escheat(ledger, { serialNumbers: [first.serial, second.serial] }, 8_000n);
    assert.deepEqual(again, { ...booked, replayed: true });
    await assert.rejects(escheat(ledger, { serialNumbers: [second.serial] }), { code: '94' });
    const nothing = { code: '51', message: new RegExp(`${third.serial} has no unclaimed money`) };
    for (const { serial } of [third, second].reverse())
      await assert.rejects(escheat(ledger, { serialNumbers: [serial] }, undefined, `again ${serial}`), {
        ...nothing,
        message: new RegExp(`${serial} has no unclaimed money`),
      });
  });
}

test('all that expired before a day is paid to a state under one movement', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { started } = ledger;
  const cards = await openUnclaimed(ledger);
  const none = { expiredBefore: new Date('2026-03-04T23:59:59.999Z') };
  await assert.rejects(escheat(ledger, none), { code: '51' });
  const all = { expiredBefore: new Date('2026-03-05T00:00:00Z') };
  await assert.rejects(escheat(ledger, all, 17_999n), { code: '13', message: /180\.00/ });
  const { transactionId, vouchers, amount } = await escheat(ledger, all);
  assert.deepEqual([vouchers.length, amount], [4, 18_000n]);
  // The same reference for another day is another command.
  await assert.rejects(escheat(ledger, none), { code: '94' });
  const rows = await ledger.sql<{ id: string; amount: number }>(
    `select id, amount_minor::int as amount from scrip.journal where kind = 'ESCHEAT'`,
  );
  assert.deepEqual(rows, [{ id: transactionId, amount: 18_000 }]);
  assert.equal(await balanceOf(ledger, 'UNCLAIMED'), 0);
  await ledger.at('2026-03-06T00:20:00Z');
  await ledger.close();

  // The report names each voucher whose money is unclaimed, on each day as it was.
  const on = async (from: string, to: string) =>
    rowsOf(await make(started.service, 'R10', { from, to }), 'unclaimed');
  assert.deepEqual(await on('2026-03-05', '2026-03-06'), []);
  const before = await on('2026-03-04', '2026-03-05');
  assert.deepEqual(
    before.map(({ serialNumber, amount }) => [serialNumber, amount]),
    cards.map(({ serial }, at) => [String(serial), at === 0 ? '30.00' : '50.00']),
  );
  const { serialNumber: _serial, amount: _amount, ...days } = before[0] ?? {};
  assert.deepEqual(days, {
    product: 'UNCLAIMED',
    issuedOn: '2026-03-02',
    lastUsedOn: '2026-03-02',
    expiredOn: '2026-03-04',
  });
  assert.deepEqual((await verifyBooks(started.service)).breaks, []);
});

for (const first of ['extension', 'escheat'] as const)
  test(`an ${first} that was first to ask for a voucher wins`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
    const [{ serial }] = await openUnclaimed(ledger);
    const asks = {
      extension: () => extendVoucher(ledger.operator, serial, FAR),
      escheat: () => escheat(ledger, { serialNumbers: [serial] }),
    };
    const second = first === 'escheat' ? 'extension' : 'escheat';
    // Both wait for a lock of the voucher, which is granted in the order of the requests.
    await ledger.sql('begin');
    await ledger.sql(`select from scrip.vouchers where serial_number = ${serial} for update`);
    const won = asks[first]();
    await waitForLocks(ledger.started.url, 1);
    const lost = assert.rejects(asks[second](), { code: '51' });
    await waitForLocks(ledger.started.url, 2);
    await ledger.sql('commit');
    await won;
    await lost;
    assert.equal(await balanceOf(ledger, 'UNCLAIMED'), 15_000);
    assert.deepEqual(await failures(ledger), []);
  });

test("breakage that the operator took out is given back at the operator's expense", async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator, started } = ledger;
  const shop = await ledger.merchant();
  const productCode = await product(operator, 'SHORT', 'operator');
  const [card] = (await sell(shop, 1, 50, { productCode })) as [Sold];
  await ledger.at('2026-03-05T08:00:00Z');
  await ledger.close();
  const taken = { ...USD, account: 'breakage', amountMinor: 5_000n, reference: 'income' } as const;
  await transferOwn(operator, taken);
  await extendVoucher(operator, card.serial, FAR);
  assert.equal((await showVoucher(started.service, card.serial)).balance, 5_000n);
  assert.equal(await balanceOf(ledger, 'BREAKAGE'), -5_000);
  assert.deepEqual(await failures(ledger), []);
});

test('reconcile finds an escheat whose vouchers do not add up to it, or that was given back', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const [first, second, , other] = await openUnclaimed(ledger);
  await escheat(ledger, { serialNumbers: [first.serial, second.serial] });
  await extendVoucher(ledger.operator, other.serial, FAR);
  assert.deepEqual(await failures(ledger), []);
  const tamper = async (statement: string) => {
    await ledger.sql(`begin; set local search_path = scrip; create table kept as table escheated_expiries;
      ${statement}; commit`);
    const found = await failures(ledger);
    await ledger.sql(`begin; set local search_path = scrip; truncate escheated_expiries;
      insert into escheated_expiries table kept; drop table kept; commit`);
    return found;
  };
  const ofFirst = `where serial_number = ${first.serial}`;
  for (const statement of [
    `delete from escheated_expiries ${ofFirst}`,
    `update escheated_expiries set serial_number = serial_number + 1 ${ofFirst}`,
    `update escheated_expiries set amount_minor = amount_minor + 1 ${ofFirst};
     update escheated_expiries set amount_minor = amount_minor - 1 where serial_number = ${second.serial}`,
    `update escheated_expiries set expiry_id = (select id from journal
       where kind = 'EXPIRY' and serial_number = ${other.serial}) ${ofFirst}`,
    'update escheated_expiries set escheat_id = gen_random_uuid()',
  ])
    assert.deepEqual(await tamper(statement), ['escheats'], statement);
  assert.deepEqual(await failures(ledger), []);
});
