import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { reportCsv } from '../../src/books/reports/reports.ts';
import { streamTransactions } from '../../src/books/reports/transactions.ts';
import type { Service } from '../../src/context.ts';
import { listFloats } from '../../src/merchants/merchants.ts';
import { getSettlement } from '../../src/settlement/settlements.ts';
import { linesOf } from '../../src/settlement/show.ts';
import { type Played, playDays, playMonth } from '../support/books.history.ts';
import { proveSound } from '../support/books.ts';
import { cents, exportedText, make, type Row, rowsOf } from '../support/reports.ts';
import { dollars } from '../support/settlements.ts';

const WHOLE = { from: '2026-03-02', to: '2026-03-06' };

async function proveSettlements(t: TestContext, { ledger, shop, cafe }: Played): Promise<void> {
  const { service } = ledger.started;
  await t.test('the settlement report of one merchant has its rows, and none of another one', async () => {
    const all = rowsOf(await make(service, 'R7', WHOLE));
    for (const merchantId of [shop, cafe]) {
      const own = rowsOf(await make(service, 'R7', { ...WHOLE, merchantId }));
      assert.ok(own.length > 0);
      assert.deepEqual(
        own,
        all.filter((row) => row['merchantId'] === String(merchantId)),
      );
    }
  });
}

/** The trial balance, the money owed, and breakage. */
async function proveBalances(t: TestContext, { ledger, shop, cafe }: Played): Promise<void> {
  const { service } = ledger.started;

  await t.test(
    'the trial balance sums to zero, and opens with the closing balances of the day before',
    async () => {
      const rows = rowsOf(await make(service, 'R1', WHOLE));
      assert.deepEqual(Object.fromEntries(rows.map(({ account, closing }) => [account, closing])), {
        FLOAT: '9157.00',
        VOUCHER: '528.00',
        SETTLEMENT: '125.00',
        UNCLAIMED: '0.00',
        BREAKAGE: '35.00',
        GOODWILL: '0.00',
        FUNDING: '-9845.00',
        RESERVE: '0.00',
        total: '0.00',
      });
      for (const day of ['2026-03-03', '2026-03-04', '2026-03-05']) {
        const before = rowsOf(await make(service, 'trial-balance', { from: '2026-03-02', to: day }));
        const after = rowsOf(await make(service, 'trial-balance', { from: day, to: '2026-03-06' }));
        for (const { account, opening } of after)
          assert.equal(
            opening,
            before.find((row) => row['account'] === account)?.['closing'] ?? '0.00',
            account,
          );
      }
    },
  );

  await t.test("the money owed and the operator's own money equal the funding, every day", async () => {
    const days = rowsOf(await make(service, 'outstanding', WHOLE));
    assert.deepEqual(
      days.map(({ day }) => day),
      ['2026-03-02', '2026-03-03', '2026-03-04', '2026-03-05'],
    );
    for (const { owed, own, minusFunding } of days)
      assert.equal(cents(owed) + cents(own), cents(minusFunding));
  });

  await t.test('broken down by merchant, it confirms to each what is owed to it', async () => {
    const rows = rowsOf(await make(service, 'R1', { ...WHOLE, breakdown: 'merchant' }));
    const shown = ['merchantId', 'floats', 'reserves', 'settlements', 'owed'];
    assert.deepEqual(
      rows.map((row) => shown.map((column) => row[column])),
      [
        [String(shop), '9157.00', '0.00', '30.00', '9187.00'],
        [String(cafe), '0.00', '0.00', '95.00', '95.00'],
        ['', '9157.00', '0.00', '125.00', '9282.00'],
      ],
    );
  });

  await t.test(
    'breakage is the expired amount less the reinstated one, by the policy of each product',
    async () => {
      const rows = rowsOf(await make(service, 'R5', WHOLE), 'booked');
      assert.deepEqual(rows, [
        { product: 'OPERATOR', account: 'BREAKAGE', expired: '100.00', reinstated: '50.00', net: '50.00' },
        { product: 'ISSUER', account: 'FLOAT', expired: '100.00', reinstated: '50.00', net: '50.00' },
        { product: 'UNCLAIMED', account: 'UNCLAIMED', expired: '100.00', reinstated: '50.00', net: '50.00' },
      ]);
    },
  );
}

async function proveByProduct(service: Service): Promise<void> {
  const soon = rowsOf(await make(service, 'R4', { ...WHOLE, breakdown: 'product' })).filter(
    ({ basis, days }) => basis === 'expires' && days === '91-180',
  );
  assert.deepEqual(
    soon.map(({ product, vouchers, outstanding }) => [product, vouchers, outstanding]),
    [
      ['DEFAULT', '0', '0.00'],
      ['OPERATOR', '1', '50.00'],
      ['ISSUER', '1', '50.00'],
      ['UNCLAIMED', '1', '50.00'],
    ],
  );
}

/** The balances of vouchers, by product, month and age. */
async function proveLiability(t: TestContext, { ledger, shop }: Played): Promise<void> {
  const { service } = ledger.started;

  await t.test(
    'liability is rolled forward to the balances of the vouchers, in total and by month',
    async () => {
      const made = await make(service, 'R2', WHOLE);
      const byProduct = rowsOf({
        ...made,
        tables: made.tables.filter(({ section }) => section === undefined),
      });
      const { issuer, ...standard } = byProduct[0] as Row;
      assert.deepEqual(standard, {
        product: 'DEFAULT',
        issuerId: String(shop),
        scope: 'network',
        opening: '0.00',
        issued: '500.00',
        imported: '0.00',
        reversed: '40.00',
        refunded: '0.00',
        reinstated: '0.00',
        adjustedUp: '5.00',
        redeemed: '95.00',
        expired: '0.00',
        voided: '0.00',
        adjustedDown: '2.00',
        cashedOut: '70.00',
        escheated: '0.00',
        closing: '378.00',
        vouchers: '4',
      });
      assert.ok(issuer);
      const [total, ...none] = rowsOf(await make(service, 'R2', { ...WHOLE, section: 'total' }));
      const sums = ['issued', 'reinstated', 'redeemed', 'expired', 'closing', 'vouchers'];
      assert.deepEqual(
        [none.length, ...sums.map((column) => total?.[column])],
        [0, ...['800.00', '150.00', '95.00', '300.00', '528.00', '7']],
      );
      const [held] = await ledger.sql<{ minor: bigint }>(
        'select sum(balance_minor)::bigint as minor from scrip.vouchers',
      );
      const closing = byProduct.reduce((sum, row) => sum + cents(row['closing']), 0n);
      assert.equal(closing, held?.minor);
      const months = rowsOf(made, 'months').reduce((sum, row) => sum + cents(row['closing']), 0n);
      assert.equal(months, closing);
      const ages = rowsOf(await make(service, 'R4', WHOLE));
      for (const basis of ['expires', 'idle'])
        assert.equal(
          ages
            .filter((row) => row['basis'] === basis)
            .reduce((sum, row) => sum + cents(row['outstanding']), 0n),
          closing,
        );
      await proveByProduct(service);
      const ahead = rowsOf(await make(service, 'R4', WHOLE), 'expiryMonths');
      assert.deepEqual(
        [ahead.length, ahead[0]?.['month'], ahead[12]?.['month'], ahead[13]?.['month']],
        [14, '2026-03', '2027-03', 'later'],
      );
      assert.equal(
        ahead.reduce((sum, row) => sum + cents(row['outstanding']), 0n),
        closing,
      );
    },
  );
}

/** The numbers of float statements. */
async function proveNumbers(t: TestContext, { ledger, shop }: Played): Promise<void> {
  const { service } = ledger.started;

  await t.test('a float statement of closed days has a number: the one of camt.053 for a day', async () => {
    const of = async (from: string, to: string) => make(service, 'R6', { from, to, merchantId: shop });
    const month = await of(WHOLE.from, WHOLE.to);
    const number = `20260302-20260305-FLOAT-${shop}-USD`;
    assert.deepEqual(
      month.tables.map((table) => table.number),
      [number],
    );
    const [head = '', line = ''] = reportCsv(month, 'standard').split('\r\n');
    assert.equal(line.split(',')[head.split(',').indexOf('number')], number);
    const [day] = (await of('2026-03-03', '2026-03-04')).tables;
    const wanted = { format: 'camt053', from: '2026-03-03', to: '2026-03-04', merchantId: shop } as const;
    assert.ok((await exportedText(service, wanted)).includes(`<Stmt><Id>${day?.number}</Id>`));
    const [open] = (await of('2026-03-05', '2026-03-07')).tables;
    assert.equal(open?.number, undefined);
  });
}

/** The reports of single merchants: their floats and settlements. */
async function proveMerchants(t: TestContext, { ledger, shop, cafe }: Played): Promise<void> {
  const { service } = ledger.started;

  await t.test('the float statement ends with the stored float', async () => {
    const rows = rowsOf(await make(service, 'float-statement', { ...WHOLE, merchantId: shop }));
    const [float] = await listFloats(service.db, shop);
    assert.equal(cents(rows.at(-1)?.['balance']), float?.balance);
    assert.deepEqual(
      rows.map(({ kind, amount }) => [kind, amount]),
      [
        ['opening', ''],
        ['TOP_UP', '10000.00'],
        ['RESERVATION', '-500.00'],
        ['RESERVATION', '-100.00'],
        ['RESERVATION', '-100.00'],
        ['RESERVATION', '-100.00'],
        ['TOP_UP', '77.00'],
        ['FLOAT_CORRECTION', '-70.00'],
        ['FLOAT_REFUND', '-100.00'],
        ['EXPIRY', '50.00'],
        ['EXPIRY', '50.00'],
        ['REINSTATEMENT', '-50.00'],
        ['closing', ''],
      ],
    );
  });

  await t.test('settlements and the matrix of issuers and acceptors agree', async () => {
    const settled = rowsOf(await make(service, 'R7', WHOLE)).filter(({ product }) => product === 'total');
    assert.deepEqual(
      settled.map(({ merchantId, redeemed, reversed, cashedOut, closing }) => [
        merchantId,
        redeemed,
        reversed,
        cashedOut,
        closing,
      ]),
      [
        [String(shop), '30.00', '0.00', '0.00', '30.00'],
        [String(cafe), '65.00', '40.00', '70.00', '95.00'],
      ],
    );
    const matrix = rowsOf(await make(service, 'issuer-acceptor', WHOLE));
    assert.deepEqual(
      matrix.map(({ issuerId, acceptorId, net }) => [issuerId, acceptorId, net]),
      [
        [String(shop), String(shop), '30.00'],
        [String(shop), String(cafe), '25.00'],
      ],
    );
  });
}

test('the reports of four days with every kind of entry equal those computed by hand', async (t) => {
  const played = await playDays(t);
  const { ledger, shop } = played;
  const { service } = ledger.started;
  await proveSettlements(t, played);
  await proveBalances(t, played);
  await proveLiability(t, played);
  await proveMerchants(t, played);
  await proveNumbers(t, played);

  await t.test('the transactions of a merchant are complete, with masked codes', async () => {
    const lines = [];
    for await (const line of streamTransactions(service, { ...WHOLE, merchantId: shop })) lines.push(line);
    assert.deepEqual(
      lines.map(({ kind }) => kind),
      ['REDEMPTION', ...Array.from({ length: 11 }, () => 'ACTIVATION')],
    );
    assert.ok(lines.every(({ voucherCode }) => /^\d{4}\*{4}\d{4}$/.test(String(voucherCode))));
  });

  await t.test('the books reconcile, and closed days have not changed', async () => {
    await proveSound(service);
  });
});

test('the page for accountants shows the figures of the reports of its month', async (t) => {
  const { ledger, cafe, settlements } = await playMonth(t);
  const { service } = ledger.started;
  const month = { from: '2026-03-02', to: '2026-04-01' };
  const lines: string[] = [];
  const add = (...cells: (string | number | null | undefined)[]) => lines.push(`| ${cells.join(' | ')} |`);
  for (const { account, opening, debits, credits, closing } of rowsOf(await make(service, 'R1', month)))
    add(account, opening, debits, credits, closing);
  const [whole] = rowsOf(await make(service, 'R2', month));
  for (const column of [
    'issued',
    'reversed',
    'adjustedUp',
    'redeemed',
    'adjustedDown',
    'cashedOut',
    'closing',
  ])
    add(column, whole?.[column]);
  const evenings = ['02', '03', '04', '05', '09', '17', '31'].map((day) => `2026-03-${day}`);
  for (const { day, owed, own, minusFunding } of rowsOf(await make(service, 'R3', month)))
    if (evenings.includes(day ?? '')) add(day, owed, own, minusFunding);
  for (const { account, expired, reinstated, net } of rowsOf(await make(service, 'R5', month), 'booked'))
    add(account, expired, reinstated, net);
  const paid = [];
  for (const id of settlements) {
    const settlement = await getSettlement(service.db, id);
    const { firstDay, lastDay, payable } = settlement;
    for (const { product, kind, rows, amount } of await linesOf(service.db, settlement))
      add(`${firstDay} to ${lastDay}`, product, kind, rows, dollars(amount));
    add(`${firstDay} to ${lastDay}`, '', 'payable', '', dollars(payable));
    paid.push(payable);
  }
  // The account held the payout of the first settlement, and still holds that of the second.
  const account = rowsOf(await make(service, 'R7', { ...month, merchantId: cafe })).at(-1);
  assert.equal(cents(account?.['closing']), paid[1]);
  assert.equal(cents(account?.['paidOut']), paid[0]);
  const page = await readFile(new URL('../../docs/explanation/books.md', import.meta.url), 'utf8');
  const shown = page.replace(/ +\|/g, ' |');
  assert.deepEqual(
    lines.filter((line) => !shown.includes(line.replace(/ +\|/g, ' |'))),
    [],
  );
  await proveSound(service);
});
