import assert from 'node:assert/strict';
import { after, before, describe, it, test } from 'node:test';
import { startTestService } from '../support/harness.ts';
import { Operator } from '../support/operator.ts';
import { Receiver, verify } from '../support/receiver.ts';
import { typed } from '../support/scrip.ts';

describe('the webhook commands', () => {
  const operator = Operator.ofTests({ SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true' });
  let merchant: string;
  let receiver: Receiver;

  before(async () => {
    merchant = (await operator.json`merchant create --name Hooked --float 1000`).id;
    receiver = await Receiver.start();
  });
  after(() => receiver.stop());

  it('add, show, test, rotate and remove an endpoint, and list and resend its deliveries', async () => {
    const { url } = receiver;
    const events = ['--event', 'voucher.redeemed', '--event', 'float.low', '--event', 'float.low'];
    const { id, secret } = await operator.json`webhook add --merchant ${merchant} --url ${url} ${events}`;
    assert.match(secret, /^whsec_/);
    const shown = await operator.json`webhook show ${id}`;
    assert.deepEqual(
      [shown.id, shown.merchantId, shown.url, shown.events, shown.full, shown.enabled],
      [id, merchant, url, ['voucher.redeemed', 'float.low'], false, true],
    );
    assert.equal(
      JSON.stringify(await operator.json`webhook list --merchant ${merchant}`).includes(secret),
      false,
    );

    const tested = await operator.json`webhook test ${id}`;
    assert.deepEqual([tested.delivered, tested.status, tested.error], [true, 200, null]);
    const [sent] = receiver.received;
    assert.ok(sent && verify(sent, secret));
    assert.equal(sent.body.type, 'webhook.test');

    const [delivery] = await operator.json`webhook deliveries ${id}`;
    assert.deepEqual([delivery.type, delivery.state, delivery.attempts], ['webhook.test', 'DELIVERED', 1]);
    const attempts = await operator.json`webhook deliveries ${id} --event ${sent.headers['webhook-id']}`;
    assert.deepEqual([attempts.length, attempts[0].number, attempts[0].status], [1, 1, 200]);
    assert.deepEqual(await operator.json`webhook deliveries ${id} --state failed`, []);
    assert.deepEqual(await operator.json`webhook resend ${id} --event ${delivery.eventId}`, {
      resent: 1,
    });
    assert.deepEqual(await operator.json`webhook resend ${id} --failed-since 2020-01-01`, {
      resent: 0,
    });
    await operator.fails(/--event or --failed-since is required/, ...typed`webhook resend ${id}`);

    const rotated = await operator.json`webhook rotate ${id}`;
    assert.notEqual(rotated.secret, secret);
    await operator.json`webhook test ${id}`;
    const again = receiver.received.at(-1);
    assert.ok(again && verify(again, secret) && verify(again, rotated.secret));

    assert.equal((await operator.run`webhook enable ${id}`).status, 0);
    assert.equal((await operator.run`webhook remove ${id}`).status, 0);
    await operator.fails(/no endpoint/, ...typed`webhook show ${id}`);
  });

  it('end with status 1 if a test delivery fails', async () => {
    receiver.answer(500);
    const { id } = await operator.json`webhook add --merchant ${merchant} --url ${receiver.url}`;
    const { status, out } = await operator.run`webhook test ${id} --json`;
    assert.equal(status, 1);
    assert.equal(JSON.parse(out).delivered, false);
  });
});

test('an endpoint needs a public https address unless SCRIP_WEBHOOK_ALLOW_PRIVATE is set', async (t) => {
  const operator = Operator.at(await startTestService(), {});
  t.after(operator.testService.stop);
  const { id } = await operator.json`merchant create --name Shop`;
  const add = (url: string) => ['webhook', 'add', '--merchant', id, '--url', url];
  await operator.fails(/https addresses only/, ...add('http://example.com/'));
  await operator.fails(/127\.0\.0\.1 is not a public address/, ...add('https://127.1:8443/'));
  await operator.fails(/localhost is not a public address/, ...add('https://localhost:8443/'));
});
