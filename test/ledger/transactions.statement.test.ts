import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import type { Transaction } from '../../src/ledger/transaction.ts';
import { findTransaction, listTransactions } from '../../src/ledger/transactions.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { findUpdate, updateRedemption } from '../../src/redemptions/update.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { asOperator } from '../support/harness.ts';
import { Bench, type Card } from '../support/statement.ts';

const bench = Bench.ofTests();
let other: Context;
let times = 0;

before(async () => {
  await bench.product('LATER', 'USD', 2, { activation: 'on-activation' });
  other = await bench.merchant();
});

/** The context at a time of its own, since IDs of the same time have no order. */
function later<Caller extends Context>(context: Caller): Caller {
  return { ...context, now: new Date(bench.now.getTime() + ++times) };
}

const sale = async (by: Context, card: Card, amount: number, reference?: string) =>
  (await redeem(later(by), { ...card, amount, ...(reference !== undefined && { reference }) })).transaction;
const listed = (by: Context, inForceOnly = false) => listTransactions(by, { inForceOnly });
const referencesOf = (list: readonly Transaction[]) => list.map(({ reference }) => reference);

describe('the list of a merchant', () => {
  test('holds its transactions, newest first', async () => {
    const by = await bench.merchant();
    const [card] = await bench.cards(later(by), 1, { value: 25, reference: 'batch' });
    const bare = await bench.card(by);
    const opened = (await activate(later(by), { voucher: bare, value: 3, reference: 'opened' })).transaction;
    const kept = await sale(by, card, 5);
    const [first, second] = [await sale(by, card, 4, 'less'), await sale(by, card, 3, 'gone')];
    const less = await updateRedemption(later(by), { reference: 'less', amountUsed: 2 });
    const gone = await updateRedemption(later(by), { reference: 'gone', amountUsed: 0 });
    const canceled = { refundStatus: 'CANCELLED', note: 'Canceled by an update of the redemption' };
    assert.deepEqual(less.original, { ...first, ...canceled });
    assert.deepEqual(gone.original, { ...second, ...canceled });
    assert.deepEqual(
      [gone.cancellation.note, gone.cancellation.amount.minor],
      [`Reversal of redemption ${second.transactionId}`, -300n],
    );
    assert.deepEqual(
      [less.replacement?.refundStatus, less.replacement?.note, gone.replacement],
      ['NEW', `Created by an update of redemption ${first.transactionId}`, null],
    );
    assert.deepEqual(await findUpdate(by, 'less'), less);
    const all = await listed(by);
    const [generated] = all.slice(-1);
    // The two rows of an update have the same time.
    const updated = [less.cancellation, less.replacement as Transaction].sort((one, two) =>
      one.transactionId < two.transactionId ? 1 : -1,
    );
    assert.deepEqual(all, [
      gone.cancellation,
      ...updated,
      gone.original,
      less.original,
      kept,
      opened,
      generated,
    ]);
    assert.deepEqual(
      [
        generated?.type,
        generated?.reference,
        generated?.amount,
        generated?.serialNumber,
        generated?.code,
        generated?.note,
      ],
      ['ACTIVATION', 'batch', { minor: 2500n, decimals: 2 }, card.serial, card.code, null],
    );
    assert.deepEqual(await listed(by, true), [less.replacement, kept, opened, generated]);
    assert.deepEqual(await listed(other), []);
  });

  test('contains the activations of its own batches only, and only of complete ones', async () => {
    const by = await bench.merchant();
    const later = await bench.merchant('LATER');
    const [kept, gone] = [await bench.card(by, 25), await bench.card(by, 25)];
    const paid = await bench.card(later, 25);
    const batch = `(select batch_id from vouchers where serial_number = ${gone.serial})`;
    await bench.query(`update batches set status = 'CANCELED' where id = ${batch}`);
    assert.deepEqual(
      (await listed(by)).map(({ serialNumber }) => serialNumber),
      [kept.serial],
    );
    assert.deepEqual(await listed(later), []);
    await activate(other, { voucher: paid });
    assert.deepEqual(await listed(later), []);
    assert.equal((await listed(other)).length, 1);
  });

  test('omits entries that an operator booked', async () => {
    const by = await bench.merchant();
    const card = await bench.card(by, 25);
    await replaceVoucher(asOperator(by.service), card.serial);
    assert.deepEqual(
      (await listed(by)).map(({ serialNumber }) => serialNumber),
      [card.serial],
    );
  });

  test('contains the fifty newest transactions of all kinds and batches', async () => {
    const by = await bench.merchant();
    const card = await bench.card(by, 100);
    for (let nth = 1; nth <= 52; nth++) {
      await bench.cards(later(by), 1, { value: 1, reference: `batch ${nth}` });
      await bench.query(
        `
          update batches set ended_at = '2030-02-01'::timestamptz + interval '${nth} s'
          where reference = 'batch ${nth}' and merchant_id = ${by.merchant.id}`,
      );
    }
    const expected = Array.from({ length: 50 }, (_, index) => `batch ${52 - index}`);
    assert.deepEqual(referencesOf(await listed(by)), expected);
    // Batches without an activation do not count.
    for (let nth = 1; nth <= 50; nth++) await bench.card(by);
    await bench.query("update batches set ended_at = '2030-03-01' where value_minor is null");
    assert.deepEqual(referencesOf(await listed(by)), expected);
    await sale(by, card, 1, 'sale');
    assert.deepEqual(referencesOf(await listed(by)), ['sale', ...expected.slice(0, 49)]);
    for (let nth = 1; nth <= 51; nth++) await sale(by, card, 1, `sale ${nth}`);
    assert.deepEqual(
      referencesOf(await listed(by)),
      Array.from({ length: 50 }, (_, index) => `sale ${51 - index}`),
    );
  });

  test('contains the fifty newest activations of a larger batch', async () => {
    const by = await bench.merchant();
    const cards: Card[] = [];
    for (let nth = 1; nth <= 6; nth++) cards.push(...(await bench.cards(later(by), 10, { value: 1 })));
    const last = `(select batch_id from vouchers where serial_number = ${cards.at(-1)?.serial})`;
    const serials = cards.map(({ serial }) => serial);
    for (const table of ['vouchers', 'journal'])
      await bench.query(`update ${table} set batch_id = ${last} where serial_number in (${serials.join()})`);
    // Batches end by the clock of the machine, which may be set back meanwhile.
    await bench.query(`update batches set ended_at = '2030-02-01' where id = ${last}`);
    const shown = (await listed(by)).map(({ serialNumber }) => serialNumber);
    assert.deepEqual(shown.sort(), serials.slice(10).sort());
  });
});

describe('the transaction of a reference', () => {
  test('is the redemption or its replacement by an update, else the activation', async () => {
    const by = await bench.merchant();
    const card = await bench.card(by);
    const opened = (await activate(later(by), { voucher: card, value: 25, reference: 'x' })).transaction;
    assert.deepEqual(await findTransaction(by, 'x'), opened);
    const sold = await sale(by, card, 5, 'x');
    assert.deepEqual(await findTransaction(by, 'x'), sold);
    const { replacement } = await updateRedemption(later(by), { reference: 'x', amountUsed: 2 });
    assert.deepEqual(await findTransaction(by, 'x'), replacement);
    for (const reference of ['NEW-x', 'CANCEL-x', 'y', sold.transactionId])
      assert.equal(await findTransaction(by, reference), undefined);
    assert.equal(await findTransaction(other, 'x'), undefined);
  });

  test('is not found after a full reversal, and is found by its ID if it has no reference', async () => {
    const by = await bench.merchant();
    const card = await bench.card(by, 25);
    await sale(by, card, 5, 'gone');
    await updateRedemption(later(by), { reference: 'gone', amountUsed: 0 });
    const bare = await sale(by, card, 5);
    const found = await Promise.all(
      ['gone', bare.transactionId, 'unknown'].map((each) => findTransaction(by, each)),
    );
    assert.deepEqual(found, [undefined, bare, undefined]);
  });
});
