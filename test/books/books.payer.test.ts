import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { importVouchers } from '../../src/batches/import.ts';
import type { Context } from '../../src/context.ts';
import { listFloats } from '../../src/merchants/merchants.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { cancelVoucher, extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { type Ledger, openLedger, product, proveSound, type Sold, sell, spend } from '../support/books.ts';
import { fileOf } from '../support/folder.ts';
import { codesOf } from '../support/imports.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close } from '../support/settlements.ts';

const FAR = new Date('2026-06-30T23:59:59.999Z');

/** The balance of a merchant's float, in cents. */
const floatOf = async ({ service, merchant }: Context) =>
  Number((await listFloats(service.db, merchant.id))[0]?.balance);

/** Activates a voucher by its code, for the default value of 5000.00 if the batch has none. */
const open = (context: Context, { code, pin }: Sold) =>
  activate({ ...context, now: context.service.clock() }, { voucher: { code, pin } });

for (const buckets of [1, 3]) {
  const where = buckets === 1 ? '' : ', also over buckets';

  test(`a canceled voucher pays the float that paid for it, not that of its issuer${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator, started } = ledger;
    const [maker, payer] = [await ledger.merchant(100_000n), await ledger.merchant(2_000_000n)];
    const [plain, lost] = (await sell(maker, 2, undefined)) as [Sold, Sold];
    await open(payer, plain);
    await open(payer, lost);
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 1_000_000]);
    await spend(payer, plain, 10, 'a sale');
    await cancelVoucher(operator, plain.serial);
    await cancelVoucher(operator, await replaceVoucher(operator, lost.serial));
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 1_999_000]);

    // A voucher that its batch paid for is the generator's, whichever merchant activates it.
    const [sold] = (await sell(maker, 1, 25, { productCode: await later(ledger) })) as [Sold];
    await open(payer, sold);
    await cancelVoucher(operator, sold.serial);
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 1_999_000]);
    assert.equal((await showVoucher(started.service, plain.serial)).payerId, String(payer.merchant.id));
    await proveSound(ledger.started.service);
  });

  test(`what expires for the issuer goes to the float that paid, and comes back from it${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator, started } = ledger;
    const [maker, payer] = [await ledger.merchant(100_000n), await ledger.merchant(1_000_000n)];
    const productCode = await product(operator, 'ISSUER', 'issuer');
    const [card, other] = (await sell(maker, 2, undefined, { productCode })) as [Sold, Sold];
    await open(payer, card);
    await open(payer, other);
    await spend(payer, card, 100, 'a sale');
    const successor = await replaceVoucher(operator, other.serial);
    await ledger.at('2026-03-06T09:00:00Z');
    await ledger.close();
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 990_000]);

    // Money that comes back after the sweep is swept again, to the same float.
    const now = started.service.clock();
    await updateRedemption({ ...payer, now }, { reference: 'a sale', amountUsed: 40 });
    await ledger.at('2026-03-06T09:10:00Z');
    await ledger.close();
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 996_000]);

    await extendVoucher(operator, card.serial, FAR);
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 500_000]);
    assert.equal((await showVoucher(started.service, card.serial)).balance, 496_000n);
    // The payer's float has to cover it.
    await sell(payer, 1, 1);
    await assert.rejects(extendVoucher(operator, successor, FAR), { code: '50' });
    assert.deepEqual([await floatOf(maker), await floatOf(payer)], [100_000, 499_900]);
    await proveSound(ledger.started.service);

    await ledger.at('2026-03-07T00:30:00Z');
    await close(ledger);
    const days = { from: '2026-03-02', to: '2026-03-07' };
    const linesOf = async ({ merchant }: Context) =>
      rowsOf(await make(started.service, 'R6', { ...days, merchantId: merchant.id }))
        .filter(({ kind }) => kind === 'EXPIRY' || kind === 'REINSTATEMENT')
        .map(({ kind, amount }) => `${kind} ${amount}`)
        .sort();
    assert.deepEqual(await linesOf(maker), []);
    assert.deepEqual(await linesOf(payer), [
      ...['EXPIRY 4900.00', 'EXPIRY 5000.00', 'EXPIRY 60.00'],
      ...['REINSTATEMENT -4900.00', 'REINSTATEMENT -60.00'],
    ]);
    // The liability stays that of the issuer.
    const rows = rowsOf(await make(started.service, 'R2', days)).filter(
      ({ product: code }) => code === 'ISSUER',
    );
    assert.deepEqual([...new Set(rows.map(({ issuerId }) => issuerId))], [String(maker.merchant.id)]);
  });
}

test('an imported voucher pays its issuer, whose money the other system held', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator, started } = ledger;
  for (const paidFrom of ['funding', 'float'] as const) {
    const issuer = await ledger.merchant(100_000n);
    const serial = await takeOver(t, ledger, issuer, paidFrom);
    assert.equal(await floatOf(issuer), paidFrom === 'float' ? 95_000 : 100_000);
    assert.equal((await showVoucher(started.service, serial)).payerId, String(issuer.merchant.id));
    await cancelVoucher(operator, serial);
    assert.equal(await floatOf(issuer), paidFrom === 'float' ? 100_000 : 105_000);
  }
  await proveSound(ledger.started.service);
});

/** A product whose vouchers are paid for when they are generated, and activated later. */
async function later({ operator }: Ledger): Promise<string> {
  const terms = { ...productDefaults('USD', 2), activation: 'on-activation' } as const;
  await createProduct(operator, { ...terms, code: 'LATER', name: 'LATER' });
  return 'LATER';
}

/** Imports a voucher over 50.00. */
async function takeOver(
  t: TestContext,
  { operator, sql }: Ledger,
  { merchant }: Context,
  paidFrom: 'funding' | 'float',
): Promise<bigint> {
  const [code = ''] = codesOf(1);
  const file = await fileOf(t, 'cards.csv', `code,pin,balance\r\n${code},1234,50.00\r\n`);
  const rules = { format: 'csv', codes: 'exact', missingPin: 'refuse', product: 'DEFAULT' } as const;
  const wanted = { file, merchantId: merchant.id, paidFrom, rules: { ...rules, expiry: '2030-12-31' } };
  await importVouchers(operator, wanted, { dryRun: false });
  const [made] = await sql<{ serial: bigint }>('select max(serial_number) as serial from scrip.vouchers');
  return made?.serial ?? assert.fail('nothing was imported');
}
