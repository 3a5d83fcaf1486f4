import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inspect } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, type WebhookRefusal, WebhookVerificationError } from '../../sdk/src/index.ts';
import { DIALECTS, update } from '../support/dialects.ts';
import { Hooked } from '../support/webhooks.ts';

/** The client verifies deliveries that the published library has signed. */

const SECRET = `whsec_${btoa('a secret of thirty-two bytes, eh')}`;
const OTHER = `whsec_${btoa('another secret of thirty-two byt')}`;
const SENT_AT = new Date('2026-03-01T12:00:00Z');
const now = () => SENT_AT.getTime();
const ID = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W';
const EVENT = {
  type: 'float.low',
  timestamp: '2026-03-01T11:59:59.000Z',
  data: { currency: 'EUR', balance: 90.5, threshold: 100, note: 'é € 😀' },
};
const BODY = JSON.stringify(EVENT);
const TIMESTAMP = String(SENT_AT.getTime() / 1000);

const sign = (body = BODY, secret = SECRET) => new Webhook(secret).sign(ID, SENT_AT, body);
const headersOf = (signature: string) => ({
  'webhook-id': ID,
  'webhook-timestamp': TIMESTAMP,
  'webhook-signature': signature,
});

async function refused(reason: WebhookRefusal, delivery: Promise<unknown>): Promise<void> {
  await assert.rejects(delivery, (error) => {
    assert.ok(error instanceof WebhookVerificationError, String(error));
    assert.equal(error.reason, reason);
    assert.doesNotMatch(inspect(error), /whsec_|a secret|another/);
    return true;
  });
}

describe('a webhook', () => {
  it('is verified for every type of body and headers', async () => {
    const headers = headersOf(sign());
    const bytes = new TextEncoder().encode(BODY);
    const expected = { id: ID, ...EVENT };
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    for (const each of [headers, new Headers(headers), upper, lists]) {
      for (const body of [BODY, bytes, bytes.buffer, Buffer.from(BODY)]) {
        assert.deepEqual(await verifyWebhook(body, each, SECRET, { now }), expected);
      }
    }
    const event = await verifyWebhook(BODY, headers, SECRET.slice('whsec_'.length), { now });
    assert.ok(event.type === 'float.low');
    assert.equal(event.data.balance, 90.5);
  });

  it('is verified during a rotation of its secret, on either side', async () => {
    const both = headersOf(`v1a,${btoa('asymmetric')} ${sign(BODY, OTHER)} ${sign()}`);
    await verifyWebhook(BODY, both, SECRET, { now });
    await verifyWebhook(BODY, headersOf(sign()), [OTHER, SECRET], { now });
    await refused('noMatchingSignature', verifyWebhook(BODY, headersOf(sign(BODY, OTHER)), SECRET, { now }));
    await refused('noMatchingSignature', verifyWebhook(BODY, both, [], { now }));
  });

  it('is refused if any part of it was changed', async () => {
    const headers = headersOf(sign());
    await refused(
      'noMatchingSignature',
      verifyWebhook(BODY.replace('90.5', '90.6'), headers, SECRET, { now }),
    );
    await refused('noMatchingSignature', verifyWebhook(`${BODY} `, headers, SECRET, { now }));
    await refused(
      'noMatchingSignature',
      verifyWebhook(BODY, { ...headers, 'webhook-id': 'msg_1' }, SECRET, { now }),
    );
    const later = { ...headers, 'webhook-timestamp': String(Number(TIMESTAMP) + 1) };
    await refused('noMatchingSignature', verifyWebhook(BODY, later, SECRET, { now }));
    for (const signature of [
      sign().replace('v1,', 'v2,'),
      sign().replace('v1,', ''),
      sign().slice(0, -4),
      'v1,',
      'v1,%%%',
      'x',
    ]) {
      await refused('noMatchingSignature', verifyWebhook(BODY, headersOf(signature), SECRET, { now }));
    }
  });

  it('is refused if it is too old, or from the future', async () => {
    const at = (seconds: number) => ({ now: () => SENT_AT.getTime() + seconds * 1000 });
    const headers = headersOf(sign());
    await verifyWebhook(BODY, headers, SECRET, at(300));
    await verifyWebhook(BODY, headers, SECRET, at(-300));
    await refused('tooOld', verifyWebhook(BODY, headers, SECRET, at(301)));
    await refused('tooNew', verifyWebhook(BODY, headers, SECRET, at(-301)));
    await verifyWebhook(BODY, headers, SECRET, { ...at(-301), toleranceSeconds: 400 });
    for (const none of [Number.NaN, -1, 'long' as never]) {
      await assert.rejects(
        verifyWebhook(BODY, headers, SECRET, { ...at(400), toleranceSeconds: none }),
        (error) => error instanceof TypeError,
      );
    }
    await assert.rejects(verifyWebhook(BODY, headers, SECRET, { now: () => Number.NaN }), TypeError);
    for (const timestamp of ['soon', '1e9', '-1', ' 1']) {
      const other = { ...headers, 'webhook-timestamp': timestamp };
      await refused('invalidTimestamp', verifyWebhook(BODY, other, SECRET, { now }));
    }
  });

  it('is refused if a header is missing, or if its body is not an event', async () => {
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      await refused(
        'missingHeader',
        verifyWebhook(BODY, { ...headersOf(sign()), [name]: undefined }, SECRET, { now }),
      );
      await refused(
        'missingHeader',
        verifyWebhook(BODY, { ...headersOf(sign()), [name]: '' }, SECRET, { now }),
      );
    }
    for (const body of [
      '',
      'null',
      '[]',
      '{"type":"x"}',
      '{"type":"x","timestamp":"y","data":null}',
      '{"type":',
    ]) {
      await refused('invalidBody', verifyWebhook(body, headersOf(sign(body)), SECRET, { now }));
    }
  });

  it('is refused with a message for the developer if its body is already parsed', async () => {
    for (const body of [EVENT, undefined, null, [1, 2]]) {
      await assert.rejects(
        verifyWebhook(body as never, headersOf(sign()), SECRET, { now }),
        /must be the body as it came/,
      );
    }
  });

  it('is refused if the secret is invalid, with a message that does not contain it', async () => {
    for (const secret of ['whsec_', 'whsec_%canary%', '', undefined as never, null as never]) {
      await assert.rejects(verifyWebhook(BODY, headersOf(sign()), secret, { now }), (error) => {
        assert.ok(error instanceof TypeError);
        assert.doesNotMatch(inspect(error), /canary/);
        return true;
      });
    }
  });
});

it('a delivery of the service is verified, and conforms to its type', async (t) => {
  const hooked = await Hooked.open(t);
  const { receiver, secret } = await hooked.add(t, [
    'voucher.redeemed',
    'redemption.updated',
    'voucher.batch.completed',
  ]);
  const [a] = DIALECTS;
  assert.ok(a);
  await hooked.till.done(a.redeem(await hooked.till.voucher(), 5, 'sale'));
  await hooked.till.done(update('sale', 3));
  const deliveries = await receiver.has(3);
  const events = await Promise.all(
    deliveries.map(({ text, headers }) => verifyWebhook(text, headers, secret)),
  );
  const seen = events.map((event) => {
    if (event.type === 'voucher.redeemed') return [event.type, event.data.amount, event.data.reference];
    if (event.type === 'redemption.updated')
      return [event.type, event.data.newTransaction?.amount, event.data.transactions.length];
    return event.type === 'voucher.batch.completed'
      ? [event.type, event.data.quantity, event.data.status]
      : [event.type];
  });
  assert.deepEqual(seen.sort(), [
    ['redemption.updated', 3, 3],
    ['voucher.batch.completed', 1, 'COMPLETED'],
    ['voucher.redeemed', 5, 'sale'],
  ]);
  assert.equal(new Set(events.map(({ id }) => id)).size, 3);
});
