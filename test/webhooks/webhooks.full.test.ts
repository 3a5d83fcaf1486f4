import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readVouchersOf } from '../../src/batches/export.ts';
import type { Service } from '../../src/context.ts';
import { type Delivery, makeBodies } from '../../src/webhooks/outbox.ts';
import { Till } from '../support/till.ts';

/** The data of a batch event for an endpoint. */
async function dataFor(service: Service, transactionId: string, endpoint: Pick<Delivery, 'url' | 'full'>) {
  const delivery: Delivery = {
    bucket: 0,
    endpointId: 1,
    eventId: transactionId,
    type: 'voucher.batch.completed',
    subjectId: transactionId,
    data: { transactionId },
    occurredAt: new Date(),
    leaseUntil: new Date(),
    attempts: 0,
    tries: 0,
    secret: Buffer.alloc(0),
    previousSecret: null,
    failingSince: null,
    ...endpoint,
  };
  const [body] = await makeBodies(service, [delivery], readVouchersOf);
  assert.ok(typeof body === 'string');
  return JSON.parse(body).data;
}

test('an endpoint for full vouchers gets those of a batch only over HTTPS, up to a limit', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  const body = { reference: 'full', quantity: 7, value: 2 };
  const { vouchers, transactionId } = (await till.done({ method: 'POST', path: '/api/v2/vouchers', body }))
    .data;
  const full = { url: 'https://shop.example/', full: true };
  assert.deepEqual((await dataFor(service, transactionId, full)).vouchers, vouchers);
  assert.equal('vouchers' in (await dataFor(service, transactionId, { ...full, full: false })), false);
  assert.equal(
    'vouchers' in (await dataFor(service, transactionId, { ...full, url: 'http://127.0.0.1/' })),
    false,
  );
  assert.equal(await readVouchersOf(service, transactionId, 6), undefined);
});
