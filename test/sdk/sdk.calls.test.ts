import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Scrip, type Variant } from '../../sdk/src/index.ts';
import { failure } from '../support/sdk.server.ts';
import { Till } from '../support/till.ts';

/** Every call of the client, in both variants, against the service. */

async function open(t: TestContext, wanted?: Parameters<typeof Till.open>[1]) {
  const till = await Till.open(t, wanted);
  const { keyId, secret } = till.merchant;
  const client = <V extends Variant>(variant: V) =>
    new Scrip({ baseUrl: till.testService.baseUrl, keyId, secret, variant, maxAttempts: 3 });
  return { till, a: client('a'), b: client('b') };
}

import { masked } from '../support/http.client.ts';

describe('the client', () => {
  it('generates, redeems and lists alike in both variants', async (t) => {
    const { a, b } = await open(t);
    const made = {
      a: await a.generate({ productCode: 'DEFAULT', quantity: 2, value: 25 }),
      b: await b.generate({ quantity: 2, value: 25, expiryDate: new Date(Date.now() + 90 * 86_400_000) }),
    };
    for (const [variant, scrip] of [
      ['a', a],
      ['b', b],
    ] as const) {
      const batch = made[variant];
      assert.match(batch.reference, /^[0-9a-f-]{36}$/);
      assert.deepEqual([batch.status, batch.value, batch.replayed], ['COMPLETED', 25, false]);
      assert.ok(batch.status === 'COMPLETED' && batch.requestId);
      assert.equal(batch.vouchers.length, 2);
      const { replayed: _replayed, requestId: _requestId, ...plain } = batch;
      assert.deepEqual(await scrip.download(batch.reference), plain);

      const [voucher] = batch.vouchers;
      assert.ok(voucher?.pin);
      const { code, pin } = voucher;
      const redeemed = await scrip.redeem({ code, pin, amount: 10.5, reference: `order-${variant}` });
      const { transactionId, timestamp, requestId, ...rest } = redeemed;
      assert.deepEqual(rest, {
        transactionType: 'REDEMPTION',
        amount: 10.5,
        reference: `order-${variant}`,
        voucherCode: masked(code),
        serialNumber: String(voucher.serialNumber),
        refundStatus: null,
        note: null,
        replayed: false,
      });
      // The code and the PIN in one field are the same request.
      const again = await scrip.redeem({ code: code + pin, amount: 10.5, reference: `order-${variant}` });
      assert.deepEqual(
        [again.transactionId, again.timestamp, again.replayed],
        [transactionId, timestamp, true],
      );
      assert.ok(again.requestId && again.requestId !== requestId);
      const found = await scrip.transaction(`order-${variant}`);
      assert.deepEqual([found.transactionId, found.voucherCode], [transactionId, masked(code)]);
      assert.equal((await scrip.transactions())[0]?.transactionId, transactionId);

      const balance = await scrip.balance({ code, pin });
      assert.deepEqual(
        [balance.balance, balance.usableAmount, balance.value, balance.voucherCode, balance.serialNumber],
        [14.5, 14.5, variant === 'a' ? 25 : null, masked(code), voucher.serialNumber],
      );
      assert.deepEqual(balance, await scrip.balance({ code: code + pin }));
      assert.deepEqual(
        balance.transactions.map(({ transactionType, amount }) => [transactionType, amount]),
        [
          ['ACTIVATION', 25],
          ['REDEMPTION', 10.5],
        ],
      );
    }
  });

  it('activates by code and PIN in variant A, by serial number in variant B', async (t) => {
    const { till, a, b } = await open(t);
    const [one, two] = await till.vouchers(2, null);
    assert.ok(one && two);
    const inA = await a.activate({ code: one.code, pin: one.pin });
    assert.deepEqual([inA.transactionType, inA.amount, inA.replayed], ['ACTIVATION', 5000, false]);
    assert.deepEqual((await a.transaction(inA.reference)).transactionId, inA.transactionId);
    const inB = await b.activate({ serialNumber: two.serialNumber, value: 40, reference: 'till-7' });
    assert.deepEqual([inB.transactionType, inB.amount, inB.reference], ['ACTIVATION', 40, 'till-7']);
    assert.equal(
      (await b.activate({ serialNumber: inB.serialNumber, value: 40, reference: 'till-7' })).replayed,
      true,
    );
    assert.equal(
      (await failure(b.activate({ serialNumber: two.serialNumber }))).code,
      'voucherAlreadyActivated',
    );
  });

  it('updates and reverses a redemption, and returns the entries', async (t) => {
    const { till, a } = await open(t);
    const voucher = await till.voucher(25);
    await a.redeem({ ...voucher, amount: 10, reference: 'x' });
    const updated = await a.updateRedemption({ reference: 'x', amountUsed: 7.5 });
    assert.deepEqual(updated.summary, { originalAmount: 10, newAmount: 7.5, reference: 'x' });
    assert.deepEqual(
      [updated.originalTransaction, updated.cancellationTransaction, updated.newTransaction].map((each) => [
        each?.reference,
        each?.amount,
        each?.refundStatus,
      ]),
      [
        ['x', 10, 'CANCELLED'],
        ['CANCEL-x', -10, null],
        ['NEW-x', 7.5, 'NEW'],
      ],
    );
    const { reference: _reference, replayed: _replayed, requestId: _requestId, ...plain } = updated;
    assert.deepEqual(await a.redemptionUpdate('x'), plain);
    assert.equal(await till.balanceOf(voucher), 17.5);

    // A second update is refused, even an equal one. The error contains the first update.
    const refused = await failure(a.updateRedemption({ reference: 'x', amountUsed: 7.5 }));
    assert.deepEqual(
      [refused.code, refused.isRetryable, refused.update],
      ['redemptionAlreadyUpdated', false, plain],
    );

    await a.redeem({ ...voucher, amount: 5, reference: 'y' });
    const reversed = await a.reverseRedemption('y');
    assert.deepEqual([reversed.newTransaction, reversed.summary.newAmount], [null, 0]);
    assert.equal(await till.balanceOf(voucher), 17.5);
    assert.equal((await failure(a.transaction('y'))).code, 'notFound');
  });

  it('returns a large batch as processing, and refuses its download with a retryable error', async (t) => {
    const { till, a, b } = await open(t);
    void till;
    const batch = await b.generate({ quantity: 11, value: 1 });
    assert.deepEqual([batch.status, batch.vouchers], ['PROCESSING', undefined]);
    assert.deepEqual((await a.download(batch.reference)).status, 'PROCESSING');
    const early = await failure(a.downloadVouchers(batch.reference).next());
    assert.deepEqual(
      [early.code, early.isRetryable, early.reference],
      ['batchNotCompleted', true, batch.reference],
    );
  });
});
