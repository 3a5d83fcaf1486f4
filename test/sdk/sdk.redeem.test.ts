import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Scrip, type ScripOptions, UnknownOutcomeError, type Variant } from '../../sdk/src/index.ts';
import { startProxy } from '../support/sdk.proxy.ts';
import { failure } from '../support/sdk.server.ts';
import { Till } from '../support/till.ts';

/** Redemptions of several steps: `redeemUpTo`, and `redeem` with the balance for the receipt. */

async function open(t: TestContext) {
  const till = await Till.open(t);
  const proxy = await startProxy(t, till.testService.baseUrl);
  const { keyId, secret } = till.merchant;
  const client = <V extends Variant>(variant: V, options: Partial<ScripOptions<V>> = {}) =>
    new Scrip({
      baseUrl: till.testService.baseUrl,
      keyId,
      secret,
      variant,
      retryDelayMs: 10,
      ...options,
    });
  const badly = { baseUrl: proxy.baseUrl, fetch: proxy.fetch };
  return { till, proxy, client, badly };
}

describe('redeemUpTo', () => {
  it('takes the amount, or what is left, and says what remains to be paid', async (t) => {
    const { till, client } = await open(t);
    for (const scrip of [client('a'), client('b')]) {
      const card = await till.voucher(10.1);
      const all = await scrip.redeemUpTo({ ...card, amount: 7.4 });
      assert.deepEqual([all.amount, all.remaining], [7.4, 0]);
      const rest = await scrip.redeemUpTo({ ...card, amount: 7.4 });
      // As numbers, 7.4 - 2.7 is 4.7 and a remainder.
      assert.deepEqual([rest.amount, rest.remaining], [2.7, 4.7]);
      const error = await failure(scrip.redeemUpTo({ ...card, amount: 7.4 }));
      assert.equal(error.code, 'voucherAlreadyRedeemed');
      const wrong = card.pin === '0000' ? '0001' : '0000';
      assert.equal((await failure(scrip.redeemUpTo({ ...card, pin: wrong, amount: 1 }))).code, 'invalidPin');
    }
    await till.reconciles();
  });

  it('takes less if another till was faster', async (t) => {
    const { till, client } = await open(t);
    const card = await till.voucher(10);
    const other = client('b');
    let isFaster = true;
    const scrip = client('a', {
      fetch: async (url, how) => {
        if (String(url).endsWith('/redeem') && isFaster) {
          isFaster = false;
          await other.redeem({ ...card, amount: 6 });
        }
        return fetch(url, how);
      },
    });
    const paid = await scrip.redeemUpTo({ ...card, amount: 8, reference: 'order-1' });
    assert.deepEqual([paid.amount, paid.remaining, paid.replayed], [4, 4, false]);
  });

  it('takes once under a reference, whatever was lost, and never for another voucher', async (t) => {
    const { till, proxy, client, badly } = await open(t);
    for (const fault of ['hang', 'late', 'cut after', 'cut before', 'twice'] as const) {
      const [card, second] = await till.vouchers(2, 10);
      assert.ok(card && second);
      const once = client('b', { ...badly, maxAttempts: 1 });
      const request = { ...card, amount: 7, reference: `order ${fault}` };
      proxy.plan(['pass', fault]);
      const first = await once.redeemUpTo(request).catch((error: unknown) => error);
      if (first instanceof Error) assert.ok(first instanceof UnknownOutcomeError, String(first));
      // The first copy may have taken 7 of 10, so only 3 are left to take.
      const again = await client('a', badly).redeemUpTo(request);
      await proxy.settle();
      assert.deepEqual([again.amount, again.remaining, await till.balanceOf(card)], [7, 0, 3], fault);
      const other = client('a').redeemUpTo({ ...second, amount: 7, reference: request.reference });
      assert.equal((await failure(other)).code, 'referenceAlreadyUsed');
      assert.equal(await till.balanceOf(second), 10);
    }
    await till.reconciles();
  });
});

describe('redeem with the balance', () => {
  it('has it for the receipt, and is a payment without it', async (t) => {
    const { till, client } = await open(t);
    const card = await till.voucher(10);
    for (const scrip of [client('a'), client('b')]) {
      const paid = await scrip.redeem({ ...card, amount: 2 }, { withBalance: true });
      assert.equal(paid.balance?.balance, await till.balanceOf(card));
    }
    const scrip = client('b', {
      maxAttempts: 1,
      fetch: async (url, how) => {
        if (String(url).endsWith('/balance')) throw new TypeError('the connection is gone');
        return fetch(url, how);
      },
    });
    const paid = await scrip.redeem({ ...card, amount: 2 }, { withBalance: true });
    assert.deepEqual([paid.amount, paid.balance], [2, null]);
  });
});
