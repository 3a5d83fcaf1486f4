import assert from 'node:assert/strict';
import { test } from 'node:test';
import { announceExpiries } from '../../src/api-keys/expiry.ts';
import { apiKeys } from '../../src/api-keys/keys.ts';
import { sweepExpired } from '../../src/books/sweep.ts';
import { sql } from '../../src/db/sql.ts';
import { DAY_MS } from '../../src/time.ts';
import { blockVoucher, cancelVoucher, replaceVoucher, unblockVoucher } from '../../src/vouchers/operate.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { judgeEndpoints } from '../../src/webhooks/record.ts';
import { assertDescribed } from '../support/described.ts';
import { asOperator } from '../support/harness.ts';
import { Till } from '../support/till.ts';

/** A merchant with a pull endpoint, and the events that it got since it was last asked. */
async function listening(till: Till) {
  const { service } = till.testService;
  const wanted = { merchantId: till.merchant.id, url: null, events: null, full: false };
  const { id } = await addEndpoint(asOperator(service), wanted, false);
  let after = '00000000-0000-0000-0000-000000000000';
  return async () => {
    const events = await service.db.query<{ id: string; type: string; data: object }>(sql`
select event_id as id, type, data from webhook_deliveries
where endpoint_id = ${id} and event_id > ${after}::uuid and type not like 'voucher.batch.%'
order by event_id`);
    after = events.at(-1)?.id ?? after;
    for (const event of events) assertDescribed(event);
    return events.map(({ type, data }) => [type, data]);
  };
}

test('the merchant that generated a voucher learns what the operator and time do to it, once', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const operator = asOperator(service);
  const events = await listening(till);
  const others = await listening(await Till.another(till.testService));
  const vouchers = await till.vouchers(3, 25);
  const [first, second, third] = vouchers.map(({ serialNumber }) => BigInt(serialNumber)) as [
    bigint,
    bigint,
    bigint,
  ];
  const serialNumber = String(first);
  for (const change of [blockVoucher, blockVoucher, unblockVoucher, unblockVoucher])
    await change(operator, first);
  assert.deepEqual(await events(), [
    ['voucher.blocked', { serialNumber }],
    ['voucher.unblocked', { serialNumber }],
  ]);
  const replacedBy = String(await replaceVoucher(operator, first));
  await cancelVoucher(operator, second);
  assert.deepEqual(await events(), [
    ['voucher.replaced', { serialNumber, replacedBy }],
    ['voucher.canceled', { serialNumber: String(second), amount: 25, currency: 'USD' }],
  ]);
  clock.advance(400 * DAY_MS);
  await sweepExpired(service);
  await sweepExpired(service);
  assert.deepEqual(
    new Set((await events()).map((each) => JSON.stringify(each))),
    new Set(
      [String(third), replacedBy].map((each) =>
        JSON.stringify(['voucher.expired', { serialNumber: each, amount: 25, currency: 'USD' }]),
      ),
    ),
  );
  assert.deepEqual(await others(), []);
  await till.reconciles();
});

test('a merchant learns that a key expires, has expired and was revoked, each once', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const operator = { ...asOperator(service), isAgreed: true };
  const events = await listening(till);
  const merchantId = String(till.merchant.id);
  const expiresAt = new Date(clock.now().getTime() + 8 * DAY_MS).toISOString();
  const { keyId } = await apiKeys.create.run(operator, { merchantId, expiresAt });
  const named = { keyId, expiresAt };
  const seen = [];
  for (const days of [0, 2, 0, 7, 1]) {
    clock.advance(days * DAY_MS);
    await announceExpiries(service);
    seen.push(...(await events()));
  }
  assert.deepEqual(
    seen.map(([type, data]) => [type, { ...(data as typeof named), expiresAt }]),
    [
      ['api-key.expiring', named],
      ['api-key.expired', named],
    ],
  );
  const revoked = { keyId: till.merchant.keyId };
  for (const _ of [1, 2]) await apiKeys.revoke.run(operator, revoked);
  const revocations = (await events()).map(([type, data]) => [type, (data as typeof revoked).keyId]);
  assert.deepEqual(revocations, [['api-key.revoked', revoked.keyId]]);
});

test('an endpoint that is turned off is announced at the other endpoints of its merchant', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  const events = await listening(till);
  const wanted = { merchantId: till.merchant.id, url: 'https://example.com/', events: null, full: false };
  const { id } = await addEndpoint(asOperator(service), wanted, true);
  const attempt = { status: 410, error: 'HTTP 410', durationMs: 1, attemptedAt: service.clock() };
  const made = [{ delivery: { endpointId: id, failingSince: null }, attempt }] as never;
  await judgeEndpoints(service, made);
  await judgeEndpoints(service, made);
  assert.deepEqual(await events(), [
    ['webhook.disabled', { endpointId: String(id), reason: 'it answered 410 Gone' }],
  ]);
});
