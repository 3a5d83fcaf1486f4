import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import {
  Scrip,
  type ScripError,
  type ScripOptions,
  UnknownOutcomeError,
  type Variant,
} from '../../sdk/src/index.ts';
import { FAULTS, type Fault, startProxy } from '../support/sdk.proxy.ts';
import { failure } from '../support/sdk.server.ts';
import { Till } from '../support/till.ts';

/**
 * The client over a network that cuts, delays, duplicates and reorders requests: each reference has one
 * effect.
 */

/** An attempt that times out too early is repeated, with the same outcome. */
const ATTEMPT_TIMEOUT_MS = 500;

async function open(t: TestContext) {
  const till = await Till.open(t);
  const proxy = await startProxy(t, till.testService.baseUrl);
  const { keyId, secret } = till.merchant;
  const client = <V extends Variant>(variant: V, options: Partial<ScripOptions<V>> = {}) =>
    new Scrip({
      baseUrl: proxy.baseUrl,
      keyId,
      secret,
      variant,
      retryDelayMs: 10,
      fetch: proxy.fetch,
      ...options,
    });
  /** Without the proxy. */
  const direct = new Scrip({ baseUrl: till.testService.baseUrl, keyId, secret, variant: 'a' });
  return { till, proxy, direct, a: client('a'), b: client('b'), client };
}

/** The amounts in the journal under a reference. */
async function booked(direct: Scrip<'a'>, reference: string): Promise<number[]> {
  const all = await direct.transactions();
  return all.filter((each) => each.reference?.endsWith(reference)).map(({ amount }) => amount);
}

const plans = fc.array(fc.constantFrom<Fault>(...FAULTS), { minLength: 1, maxLength: 3 });

describe('over a bad network', () => {
  it('a redemption is booked once, in both variants, whatever happens to its requests', async (t) => {
    const { till, proxy, direct, a, b } = await open(t);
    const voucher = await till.voucher(1000);
    let redemptions = 0;
    const planned = FAULTS.map((fault) => [fault]);
    await fc.assert(
      fc.asyncProperty(plans, fc.constantFrom(a, b), async (plan, scrip) => {
        const reference = `redeem-${++redemptions}`;
        proxy.plan(plan);
        const redeemed = await scrip.redeem({ ...voucher, amount: 1.25, reference });
        await proxy.settle();
        assert.deepEqual([redeemed.reference, redeemed.amount], [reference, 1.25]);
        assert.deepEqual(await booked(direct, reference), [1.25]);
        assert.equal((await direct.transaction(reference)).transactionId, redeemed.transactionId);
        assert.equal(await till.balanceOf(voucher), 1000 - redemptions * 1.25);
      }),
      { numRuns: 18, examples: planned.map((plan, at) => [plan as Fault[], at % 2 === 0 ? a : b]) },
    );
    await till.reconciles();
  });

  it('a batch is generated and paid for once', async (t) => {
    const { till, proxy, direct, a, b } = await open(t);
    for (const [at, fault] of FAULTS.entries()) {
      const reference = `batch-${at}`;
      proxy.plan([fault, fault]);
      const batch =
        at % 2 === 0
          ? await a.generate({ productCode: 'DEFAULT', quantity: 3, value: 20, reference })
          : await b.generate({ quantity: 3, value: 20, reference });
      await proxy.settle();
      assert.ok(batch.status === 'COMPLETED');
      assert.equal(batch.vouchers.length, 3);
      assert.deepEqual((await direct.download(reference)).vouchers, batch.vouchers);
      assert.deepEqual(await booked(direct, reference), [20, 20, 20]);
    }
    await till.reconciles();
  });

  it('a voucher is activated and paid for once', async (t) => {
    const { till, proxy, direct, a, b } = await open(t);
    for (const [at, fault] of FAULTS.entries()) {
      const voucher = await till.voucher(null);
      const reference = `activation-${at}`;
      proxy.plan([fault, fault]);
      const { code, pin, serialNumber } = voucher;
      await (at % 2 === 0 ? a.activate({ code, pin, reference }) : b.activate({ serialNumber, reference }));
      await proxy.settle();
      assert.deepEqual(await booked(direct, reference), [5000]);
      assert.equal(await till.balanceOf(voucher), 5000);
    }
    await till.reconciles();
  });

  it('a redemption is updated once: the answer that it was updated is a success after a retry', async (t) => {
    const { till, proxy, direct, a } = await open(t);
    for (const fault of FAULTS) {
      const voucher = await till.voucher(25);
      const reference = `update-${fault}`;
      await direct.redeem({ ...voucher, amount: 10, reference });
      proxy.plan([fault, fault]);
      const call = a.updateRedemption({ reference, amountUsed: 4 });
      if (fault === 'twice') {
        // To the service, a copy made by the network is a second update. The client, which sent one, may
        // get the answer to either.
        const update = await call.catch((error: ScripError) => error.update);
        assert.equal(update?.newTransaction?.amount, 4);
      } else {
        const updated = await call;
        assert.equal(updated.newTransaction?.amount, 4);
        assert.equal(updated.replayed, ['cut after', 'cut half', 'hang'].includes(fault), fault);
      }
      await proxy.settle();
      assert.deepEqual(await booked(direct, reference), [4, -10, 10]);
      assert.equal(await till.balanceOf(voucher), 21);

      await direct.redeem({ ...voucher, amount: 5, reference: `reverse-${fault}` });
      proxy.plan([fault]);
      const reversed = await a
        .reverseRedemption(`reverse-${fault}`)
        .catch((error: ScripError) => error.update);
      assert.equal(reversed?.newTransaction, null);
      await proxy.settle();
      assert.equal(await till.balanceOf(voucher), 21);
    }
    await till.reconciles();
  });

  it('an update that comes after another one is refused, even on a retry', async (t) => {
    const { till, proxy, direct, a } = await open(t);
    await direct.redeem({ ...(await till.voucher(25)), amount: 10, reference: 'x' });
    await direct.updateRedemption({ reference: 'x', amountUsed: 4 });
    proxy.plan(['cut after']);
    const refused = await failure(a.updateRedemption({ reference: 'x', amountUsed: 5 }));
    assert.ok(!(refused instanceof UnknownOutcomeError));
    const { code, update } = refused;
    assert.deepEqual([code, update?.summary.newAmount], ['redemptionAlreadyUpdated', 4]);
  });

  it('reads are retried, and lists are complete', async (t) => {
    const { till, proxy, direct, a, b } = await open(t);
    const voucher = await till.voucher(25);
    await direct.redeem({ ...voucher, amount: 10, reference: 'x' });
    for (const fault of FAULTS) {
      for (const scrip of [a, b]) {
        proxy.plan([fault]);
        assert.equal((await scrip.balance(voucher)).balance, 15);
        proxy.plan([fault]);
        assert.equal((await scrip.transaction('x')).amount, 10);
        proxy.plan([fault]);
        assert.equal((await scrip.transactions()).length, 2);
      }
    }
  });

  it('an attempt without an answer ends at its own timeout', async (t) => {
    const { till, proxy, client } = await open(t);
    const voucher = await till.voucher(25);
    const impatient = client('a', { attemptTimeoutMs: ATTEMPT_TIMEOUT_MS, fetch });
    proxy.plan(['hang']);
    assert.equal((await impatient.redeem({ ...voucher, amount: 10, reference: 'x' })).amount, 10);
    assert.equal(await till.balanceOf(voucher), 15);
  });
});

describe('a redemption of unknown outcome', () => {
  it('is reported with its reference, and can be resolved', async (t) => {
    const { till, proxy, direct, client } = await open(t);
    const voucher = await till.voucher(25);
    const impatient = client('b', { maxAttempts: 2 });
    for (const [fault, happened] of [
      ['cut after', true],
      ['cut before', false],
    ] as const) {
      proxy.plan([fault, fault]);
      const unknown = await failure(impatient.redeem({ ...voucher, amount: 5 }), UnknownOutcomeError);
      assert.deepEqual(
        [unknown.code, unknown.isRetryable, unknown.statusCode],
        ['unknownOutcome', true, null],
      );
      const { reference } = unknown;
      assert.deepEqual(await booked(direct, reference), happened ? [5] : []);

      // A lookup changes nothing.
      const seen = (await unknown.lookup()) as { amount: number; replayed: boolean } | null;
      assert.deepEqual(seen && [seen.amount, seen.replayed], happened ? [5, true] : null);
      assert.deepEqual(await booked(direct, reference), happened ? [5] : []);

      // There is still no answer.
      proxy.plan(['cut before', 'cut before']);
      await failure(unknown.resolve(), UnknownOutcomeError);

      const settled = (await unknown.resolve()) as { reference: string; replayed: boolean };
      assert.deepEqual([settled.reference, settled.replayed], [reference, happened]);
      assert.deepEqual(await booked(direct, reference), [5]);
    }
    assert.equal(await till.balanceOf(voucher), 15);
  });

  it('resolves to a refusal if the service refuses the repeated request', async (t) => {
    const { till, proxy, client } = await open(t);
    const voucher = await till.voucher(25);
    proxy.plan(['cut before']);
    const unknown = await failure(
      client('a', { maxAttempts: 1 }).redeem({ ...voucher, amount: 26 }),
      UnknownOutcomeError,
    );
    const refused = await failure(unknown.resolve());
    assert.ok(!(refused instanceof UnknownOutcomeError));
    assert.equal(refused.code, 'insufficientBalance');
  });

  it('is looked up if the refusal does not decide it, and may stay unknown', async (t) => {
    const { till, proxy, client } = await open(t);
    const [one, two] = await till.vouchers(2, 25);
    assert.ok(one && two);
    const scrip = client('a', { maxAttempts: 1 });
    for (const [voucher, fault] of [
      [one, 'cut after'],
      [two, 'cut before'],
    ] as const) {
      proxy.plan([fault]);
      const unknown = await failure(scrip.redeem({ ...voucher, amount: 5 }), UnknownOutcomeError);
      // Another client locks the PIN: the same request is refused whether it was booked or not.
      const wrong = String((Number(voucher.pin) + 1) % 10_000).padStart(4, '0');
      for (let guess = 0; guess < 5; guess++)
        await scrip.balance({ code: voucher.code, pin: wrong }).catch(() => {});
      assert.equal((await failure(scrip.balance(voucher))).code, 'pinLocked');
      if (fault === 'cut after') assert.equal(((await unknown.resolve()) as { amount: number }).amount, 5);
      else assert.equal((await failure(unknown.resolve(), UnknownOutcomeError)).reference, unknown.reference);
    }
  });

  it('results from an abort after the request was sent', async (t) => {
    const { till, proxy, direct, client } = await open(t);
    const a = client('a', { fetch });
    const voucher = await till.voucher(25);
    proxy.plan(['hang']);
    const abort = new AbortController();
    const call = a.redeem({ ...voucher, amount: 5, reference: 'x' }, { signal: abort.signal });
    while (proxy.requests === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    abort.abort(new Error('the customer left'));
    const unknown = await failure(call, UnknownOutcomeError);
    assert.equal((unknown.cause as ScripError).code, 'aborted');
    await proxy.settle();
    assert.deepEqual(await booked(direct, 'x'), [5]);

    const requests = proxy.requests;
    const early = await failure(a.redeem({ ...voucher, amount: 5 }, { signal: AbortSignal.abort() }));
    assert.ok(!(early instanceof UnknownOutcomeError));
    assert.equal(early.code, 'aborted');
    assert.equal(proxy.requests, requests);
  });

  it('does not result from a failed connection: nothing was sent', async (t) => {
    const { till } = await open(t);
    await till.testService.stop();
    const { baseUrl } = till.testService;
    const scrip = new Scrip({ baseUrl, keyId: 'k', secret: 's', variant: 'a', maxAttempts: 2 });
    const error = await failure(scrip.redeem({ code: '482913057641', pin: '0731', amount: 5 }));
    assert.ok(!(error instanceof UnknownOutcomeError));
    assert.equal(error.code, 'networkFailure');
  });
});
