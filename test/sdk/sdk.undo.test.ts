import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Scrip, type ScripOptions, UnknownOutcomeError, type Variant } from '../../sdk/src/index.ts';
import { makeToken } from '../support/operator.api.ts';
import { FAULTS, startProxy } from '../support/sdk.proxy.ts';
import { answering, failure, json, voucher as prepared } from '../support/sdk.server.ts';
import { Till } from '../support/till.ts';

/** `undo`: whatever happened to a redemption, and to the undoing, no money is taken. */

/** An attempt that times out too early is repeated, with the same outcome. */
const ATTEMPT_TIMEOUT_MS = 500;

async function open(t: TestContext, wanted?: Parameters<typeof Till.open>[1]) {
  const till = await Till.open(t, wanted);
  const proxy = await startProxy(t, till.testService.baseUrl);
  const { keyId, secret, id } = till.merchant;
  const portalToken = await makeToken(till.testService, ['cashier'], id);
  const client = <V extends Variant>(variant: V, options: Partial<ScripOptions<V>> = {}) =>
    new Scrip({
      baseUrl: proxy.baseUrl,
      keyId,
      secret,
      variant,
      portalToken,
      retryDelayMs: 10,
      fetch: proxy.fetch,
      ...options,
    });
  return { till, proxy, client };
}

describe('a redemption is undone', () => {
  it('and its request, which arrives a minute later, takes nothing', async (t) => {
    const { till, proxy, client } = await open(t);
    const card = await till.voucher(100);
    for (const variant of ['a', 'b'] as const) {
      const scrip = client(variant, { maxAttempts: 1 });
      const reference = `Kasse 3/Bon 17 ${variant} – ä€🎁`;
      // The proxy holds the request until it has answered the next one: that of the undoing.
      proxy.plan(['late']);
      await failure(scrip.redeem({ ...card, amount: 5, reference }), UnknownOutcomeError);
      const { requestId, ...undone } = await scrip.undo(reference);
      assert.deepEqual(undone, {
        outcome: 'given-up',
        reference,
        transactionId: null,
        reversalId: null,
        amount: null,
        voucherCode: null,
      });
      assert.ok(requestId);
      await proxy.settle();
      assert.equal(await till.balanceOf(card), 100);
      const late = await failure(scrip.redeem({ ...card, amount: 5, reference }));
      assert.deepEqual([late.code, late.constructor.name], ['referenceAlreadyUsed', 'ScripError']);
    }
    await till.reconciles();
  });

  it('once, whatever the network does to it, to its undoing and to a second undoing', async (t) => {
    const { till, proxy, client } = await open(t);
    const card = await till.voucher(100);
    const outcomes = new Set<string>();
    for (const [at, fault] of FAULTS.entries()) {
      for (const other of [fault, FAULTS[(at + 1) % FAULTS.length] ?? fault]) {
        // On a busy machine many attempts time out.
        const options = { attemptTimeoutMs: ATTEMPT_TIMEOUT_MS, maxAttempts: 50 };
        const scrip = at % 2 === 0 ? client('a', options) : client('b', options);
        const reference = `${fault}, then ${other}`;
        proxy.plan([fault]);
        const once = client('a', { maxAttempts: 1 });
        await once.redeem({ ...card, amount: 1.25, reference }).catch(() => {});
        proxy.plan([other, other]);
        const both = await Promise.all([scrip.undo(reference), scrip.undo(reference)]);
        await proxy.settle();
        for (const { outcome } of both) outcomes.add(outcome);
        assert.equal(await till.balanceOf(card), 100, reference);
      }
    }
    assert.deepEqual([...outcomes].sort(), ['already-reversed', 'given-up', 'reversed']);
    await till.reconciles();
  });

  it('while it is still waiting: it does not end as paid', async (t) => {
    const { till, client } = await open(t);
    const card = await till.voucher(100);
    for (const isBooked of [true, false]) {
      let redemptions = 0;
      const reference = `waiting ${isBooked}`;
      const scrip = client('b', {
        baseUrl: till.testService.baseUrl,
        fetch: async (url, how) => {
          if (!String(url).endsWith('/redeem')) return fetch(url, how);
          // The first copy gets no answer. The second one is sent after the undoing.
          if (++redemptions > 1) await scrip.undo(reference);
          if (redemptions > 1 || isBooked) await (await fetch(url, how)).clone().text();
          if (redemptions === 1) throw new TypeError('the connection is gone');
          return fetch(url, how);
        },
      });
      const error = await failure(scrip.redeem({ ...card, amount: 5, reference }));
      assert.deepEqual(
        [error.code, error.constructor.name, error.reference],
        [isBooked ? 'undone' : 'referenceAlreadyUsed', 'ScripError', reference],
      );
      assert.equal(redemptions, 2);
      assert.equal(await till.balanceOf(card), 100);
    }
  });

  it('is not undone if it was changed, or without the rights, and says so', async (t) => {
    const { till, client } = await open(t);
    const card = await till.voucher(100);
    const direct = { baseUrl: till.testService.baseUrl, fetch };
    const scrip = client('a', direct);
    await scrip.redeem({ ...card, amount: 10, reference: 'changed' });
    await scrip.updateRedemption({ reference: 'changed', amountUsed: 4 });
    const changed = await failure(scrip.undo('changed'));
    assert.deepEqual([changed.code, changed.operation], ['redemptionAlreadyUpdated', 'undo']);
    assert.equal(await till.balanceOf(card), 96);

    const { id } = till.merchant;
    const stranger = await Till.another(till.testService);
    const tokens = {
      unauthorized: ['no-token', undefined],
      accessDenied: [
        await makeToken(till.testService, ['viewer'], id),
        // Otherwise the reference would be given up at the wrong merchant.
        await makeToken(till.testService, ['owner'], stranger.merchant.id),
        await makeToken(till.testService, ['owner']),
      ],
    };
    for (const [code, given] of Object.entries(tokens)) {
      for (const portalToken of given) {
        const error = await failure(client('b', { ...direct, portalToken }).undo('changed'));
        assert.deepEqual([error.code, error.isRetryable], [code, false]);
        assert.ok(!JSON.stringify(error).includes(portalToken ?? 'key_'), 'the error has the token');
      }
    }
    const forbidden = await Till.another(till.testService, { permit: [] });
    const portalToken = await makeToken(till.testService, ['owner'], forbidden.merchant.id);
    const { keyId, secret } = forbidden.merchant;
    const without = await failure(client('b', { ...direct, keyId, secret, portalToken }).undo('x'));
    assert.equal(without.code, 'accessDenied');
    for (const reference of ['', '.', 'NEW-1', '\ud800', 'a\u0000b', 'x'.repeat(101)])
      assert.equal((await failure(scrip.undo(reference))).code, 'invalidReference');
    for (const reference of [undefined, null, 7, {}])
      assert.equal((await failure(scrip.undo(reference as never))).code, 'invalidRequest');
  });

  it('or its undoing ends with an unknown outcome, which a repetition resolves', async (t) => {
    let isUp = false;
    const body = {
      outcome: 'given-up',
      reference: 'order-1',
      transactionId: null,
      reversalId: null,
      amount: null,
      voucherCode: null,
    };
    const { b, count } = await answering(t, (request, response, sent) => {
      if (request.url?.endsWith('/redeem')) return json(response, 503, { statusCode: '91' });
      assert.equal(request.headers.authorization, 'Bearer token');
      assert.deepEqual(JSON.parse(sent), { reference: 'order-1', keyId: 'key' });
      if (isUp) return json(response, 200, body);
      response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
    });
    const scrip = new Scrip({
      ...b.toJSON(),
      secret: 's',
      portalToken: 'token',
      maxAttempts: 2,
      retryDelayMs: 1,
    } as never);
    await failure(scrip.redeem({ ...prepared, amount: 1, reference: 'order-1' }), UnknownOutcomeError);
    const unknown = await failure(scrip.undo('order-1'), UnknownOutcomeError);
    assert.equal(count(), 4);
    assert.equal(await unknown.lookup(), null);
    isUp = true;
    assert.deepEqual(await unknown.resolve(), { ...body, requestId: null });
  });
});
