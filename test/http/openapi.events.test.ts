import assert from 'node:assert/strict';
import { test } from 'node:test';
import Schema from 'typebox/schema';
import { describeDialect } from '../../docs/generate/openapi.ts';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { EVENTS } from '../../src/webhooks/outbox.ts';
import { DIALECTS, update } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { strict } from '../support/openapi.ts';
import { Hooked } from '../support/webhooks.ts';

type Described = Record<
  string,
  { post: { requestBody: { content: { 'application/json': { schema: object } } } } }
>;

test('every event has the fields of its OpenAPI schema', async (t) => {
  const hooked = await Hooked.open(t, { float: 1_000_000n });
  const { till, service } = hooked;
  const { receiver } = await hooked.add(t);
  const [a] = DIALECTS;
  assert.ok(a);
  const voucher = await till.voucher();
  await till.done(a.redeem(voucher, 5, 'sale'));
  await till.done(update('sale', 3));
  await till.done(a.redeem(voucher, 5, 'another sale'));
  await till.done(update('another sale', 0));
  await till.done(a.activate(await till.voucher(null), 'activation'));
  await till.done(a.generate('dear', 1, 4_000));
  const { data } = await till.done(a.generate('large', 20, 1));
  await cancelBatch(asOperator(service), data.transactionId);
  const types = () => new Set(receiver.received.map(({ body }) => body.type));
  // Settlements need closed days: settlement.test.ts checks their events against the documents.
  const awaited = EVENTS.filter((type) => !type.startsWith('settlement.'));
  for (let count = 1; awaited.some((type) => !types().has(type)); count++) await receiver.has(count);
  const { webhooks } = describeDialect(VARIANT_A) as unknown as { webhooks: Described };
  for (const { body } of receiver.received) {
    const { schema } =
      webhooks[body.type]?.post.requestBody.content['application/json'] ?? assert.fail(body.type);
    const validator = Schema.Compile(strict(schema));
    const [, errors] = validator.Errors(body);
    assert.ok(validator.Check(body), `${body.type}: ${JSON.stringify(errors)}`);
  }
});
