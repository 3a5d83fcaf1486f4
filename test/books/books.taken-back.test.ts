import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelBatch, voidBatch } from '../../src/batches/cancel.ts';
import { findBatch } from '../../src/batches/export.ts';
import { fillBatch } from '../../src/batches/fill.ts';
import { generate } from '../../src/batches/generate.ts';
import { streamTransactions } from '../../src/books/reports/transactions.ts';
import { escheatVoucher } from '../../src/books/vouchers.ts';
import type { Service } from '../../src/context.ts';
import { extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { openLedger, product, proveSound, sell } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close } from '../support/settlements.ts';

const DAY = { from: '2026-03-02', to: '2026-03-03' };
const text = (cents: number) => (cents / 100).toFixed(2);

/**
 * Compares the trial balance (R1) and the liability.
 * @param cents how many vouchers of one cent were made and voided
 */
async function proveSums(service: Service, cents: number): Promise<void> {
  const moved = rowsOf(await make(service, 'R1', DAY))
    .filter((row) => row['debits'] !== '0.00' || row['credits'] !== '0.00')
    .map(({ account, debits, credits, closing }) => [account, debits, credits, closing]);
  assert.deepEqual(moved.slice(0, -1), [
    ['FLOAT', '250.00', '10050.00', '9800.00'],
    ['RESERVE', text(25_000 + cents), text(25_000 + cents), '0.00'],
    ['VOUCHER', text(10_000 + cents), text(20_000 + cents), '100.00'],
    ['FUNDING', '10000.00', '100.00', '-9900.00'],
  ]);
  const [liability, ...others] = rowsOf(await make(service, 'liability', DAY)).filter((row) => row['scope']);
  assert.equal(others.length, 0);
  const { opening, issued, voided, escheated, expired, closing, vouchers } = liability ?? {};
  assert.deepEqual(
    [opening, issued, voided, escheated, expired, closing, vouchers],
    ['0.00', text(20_000 + cents), text(cents), '100.00', '0.00', '100.00', '1'],
  );
  const [evening] = rowsOf(await make(service, 'R3', DAY));
  assert.deepEqual(
    ['vouchers', 'outstanding', 'reserves', 'floats', 'owed', 'own', 'minusFunding'].map(
      (column) => evening?.[column],
    ),
    ['1', '100.00', '0.00', '9800.00', '9900.00', '0.00', '9900.00'],
  );
  const held = rowsOf(await make(service, 'R4', DAY)).filter((row) => row['outstanding'] !== '0.00');
  assert.deepEqual(
    held.map((row) => [row['basis'] ?? row['month'], row['vouchers'], row['outstanding']]),
    [
      ['expires', '1', '100.00'],
      ['idle', '1', '100.00'],
      ['2027-03', '1', '100.00'],
    ],
  );
}

/** Compares the reports of the merchant. */
async function proveMerchant(service: Service, merchantId: number): Promise<void> {
  const float = rowsOf(await make(service, 'R6', { ...DAY, merchantId }));
  assert.deepEqual(
    float.map(({ kind, amount, balance }) => [kind, amount, balance]),
    [
      ['opening', '', '0.00'],
      ['TOP_UP', '10000.00', '10000.00'],
      ['RESERVATION', '-200.00', '9800.00'],
      ['RESERVATION', '-50.00', '9750.00'],
      ['RELEASE', '50.00', '9800.00'],
      ['closing', '', '9800.00'],
    ],
  );
  for (const name of ['R5', 'R7', 'R9', 'R10', 'R13'])
    assert.deepEqual(rowsOf(await make(service, name, DAY), name === 'R5' ? 'booked' : undefined), [], name);
  const lines = [];
  for await (const { kind, amount } of streamTransactions(service, { ...DAY, merchantId }))
    lines.push([kind, amount]);
  assert.deepEqual(lines, [
    ['ACTIVATION', '100.00'],
    ['ACTIVATION', '100.00'],
  ]);
  const [vat] = rowsOf(await make(service, 'R11', DAY));
  assert.deepEqual([vat?.['issued'], vat?.['redeemed'], vat?.['expired']], ['200.00', '0.00', '0.00']);
}

test('the books are exact to the cent after a half-made batch is canceled and a voucher escheated', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator } = ledger;
  const { service } = ledger.started;
  const shop = await ledger.merchant(1_000_000n);
  const merchantId = shop.merchant.id;
  const [card] = await sell(shop, 2, 100);
  assert.ok(card);
  const now = service.clock();
  await generate({ ...shop, now }, { quantity: 5_000, value: 0.01, reference: 'half made' });
  const { id, transactionId } = await findBatch({ ...shop, now }, 'half made');
  await fillBatch(service, id, () => true);
  await cancelBatch(operator, transactionId);
  await voidBatch(service, id);
  await escheatVoucher(operator, { serialNumber: card.serial, reference: 'state' });
  const [made] = await ledger.sql<{ cents: number }>(
    `select count(*)::int as cents from scrip.vouchers where batch_id = ${id}`,
  );
  const cents = made?.cents ?? 0;
  assert.ok(cents > 0);
  await ledger.at('2026-03-03T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-02']);

  await proveSums(service, cents);
  await proveMerchant(service, merchantId);
  await proveSound(service);
});

test('a voucher that expired is extended before it is replaced, so that what it held comes back', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator, started } = ledger;
  const { service } = started;
  const shop = await ledger.merchant();
  await product(operator, 'SHORT', 'operator');
  const [card] = await sell(shop, 1, 50, { productCode: 'SHORT' });
  assert.ok(card);
  await ledger.at('2026-03-05T09:00:00Z');
  await ledger.close();
  assert.equal((await showVoucher(service, card.serial)).balance, 0n);
  await assert.rejects(replaceVoucher(operator, card.serial), { code: '54' });
  await extendVoucher(operator, card.serial, new Date('2026-06-30T23:59:59.999Z'));
  const replacement = await showVoucher(service, await replaceVoucher(operator, card.serial));
  assert.deepEqual([replacement.state, replacement.balance], ['ACTIVE', 5_000n]);
});
