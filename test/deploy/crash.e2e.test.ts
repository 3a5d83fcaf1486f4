import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../soak/process.ts';
import { Installation } from '../support/installation.ts';
import { Receiver, verify } from '../support/receiver.ts';
import { ofFile } from '../support/scope.ts';
import { openShop, type Shop } from '../support/shop.ts';
import { until } from '../support/until.ts';

/**
 * The service as an operator runs it, killed with its database in the middle of redemptions and of a
 * large batch.
 */

const TILLS = 16;
const QUANTITY = 30_000;
const CRASHES = 2;

type Sent = { readonly till: number; readonly reference: string; transactionId: string | undefined };

const t = ofFile();
let installation: Installation;
let shop: Shop;
let receiver: Receiver;
let secret: string;

const cardOf = (till: number) => shop.cards[till % shop.cards.length] ?? assert.fail();

/** Redeems until the service is gone. The last request has no answer, and an unknown outcome. */
async function sell(till: number, crash: number, sent: Sent[]): Promise<void> {
  for (let turn = 0; ; turn++) {
    const one: Sent = { till, reference: `sale-${crash}-${till}-${turn}`, transactionId: undefined };
    sent.push(one);
    const answer = await shop.redeem(cardOf(till), one.reference).catch(() => undefined);
    if (answer?.statusCode !== '00') return;
    one.transactionId = String(answer.data['transactionId']);
  }
}

const answered = (sent: readonly Sent[]) => sent.filter(({ transactionId }) => transactionId !== undefined);

before(async () => {
  installation = await Installation.make(t);
  Object.assign(installation.settings, {
    SCRIP_PORT: String(await freePort()),
    SCRIP_LOG_LEVEL: 'fatal',
    SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
  });
  receiver = await Receiver.start();
  t.after(() => receiver.stop());
  shop = await openShop(installation, await installation.serve());
  const { merchantId } = shop;
  secret = (await installation.json`webhook add --merchant ${merchantId} --url ${receiver.url}`).secret;
});

describe('a service killed together with its database', () => {
  it('loses no acknowledged redemption, and books each other one at most once', async () => {
    const large = await shop.call('/vouchers', { reference: 'large', quantity: QUANTITY, value: 1 });
    assert.equal(large.statusCode, '00');
    const sent: Sent[] = [];
    for (let crash = 1; crash <= CRASHES; crash++) {
      const tills = Array.from({ length: TILLS }, (_, till) => sell(till, crash, sent));
      // In the middle of work, however slow the machine is.
      const before = answered(sent).length;
      while (answered(sent).length < before + 4 * TILLS) await sleep(20);
      await installation.crash();
      await Promise.all(tills);
      await installation.serve();
    }
    const acknowledged = answered(sent);
    assert.ok(acknowledged.length > TILLS * CRASHES, 'the service was killed before it had work');
    for (const { reference, transactionId } of acknowledged) {
      const { data } = await shop.call(`/transactions/${reference}`);
      assert.equal(data['transactionId'], transactionId, reference);
    }
    for (const { till, reference } of sent)
      assert.equal((await shop.redeem(cardOf(till), reference)).statusCode, '00', reference);
    assert.equal(await shop.spent(), sent.length, 'each reference has exactly one effect');

    // Every redemption is notified at least once, always under the same id.
    const redeemed = () => receiver.received.filter(({ body }) => body.type === 'voucher.redeemed');
    const ids = () =>
      new Map(redeemed().map(({ headers, body }) => [headers['webhook-id'], body.data.reference]));
    await until('every redemption is announced', () => ids().size >= sent.length);
    assert.deepEqual([...ids().values()].sort(), sent.map(({ reference }) => reference).sort());
    for (const event of redeemed()) assert.ok(verify(event, secret));
  });

  it('completes the batch with exactly the quantity ordered', async () => {
    const batch = await until('the batch is produced', async () => {
      const { data } = await shop.call('/vouchers/large');
      return data['status'] !== 'PROCESSING' && data;
    });
    assert.equal(batch['status'], 'COMPLETED');
    const vouchers = batch['vouchers'] as { code: string }[];
    assert.equal(new Set(vouchers.map(({ code }) => code)).size, QUANTITY);
    const completed = await until('the end of the batch is announced', () =>
      receiver.received.find(({ body }) => body.data.reference === 'large'),
    );
    assert.equal(completed.body.data.quantity, QUANTITY);
    assert.equal((await installation.json`reconcile`).ok, true);
  });
});
