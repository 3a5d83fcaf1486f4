import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../src/operations/perform.ts';
import { Problem } from '../../src/problem.ts';
import { blockVoucher } from '../../src/vouchers/operate.ts';
import { webhooks } from '../../src/webhooks/endpoints.ts';
import { listEvents } from '../../src/webhooks/pull.ts';
import { openLedger, sell } from '../support/books.ts';
import { assertDescribed } from '../support/described.ts';
import { DIALECTS, update } from '../support/dialects.ts';
import { asOperator, COMMAND_LINE } from '../support/harness.ts';
import { close } from '../support/settlements.ts';
import { Till } from '../support/till.ts';

test('the operator reads the events of all merchants, with the merchant of each', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  const operator = asOperator(service);
  const other = await Till.another(till.testService);
  const [{ redeem }] = DIALECTS;
  await webhooks.add.run(operator, { pull: true });
  const voucher = await till.voucher(25);
  await other.done(redeem(voucher, 10, 'elsewhere'));
  await till.done(redeem(voucher, 5, 'here'));
  await till.done(update('here', 4));
  // Up to here no merchant has an endpoint.
  await webhooks.add.run(operator, { pull: true, merchantId: String(till.merchant.id) });
  await till.done(redeem(voucher, 1, 'later'));
  // One that is blocked already changes nothing.
  for (let times = 0; times < 2; times++) await blockVoucher(operator, BigInt(voucher.serialNumber));
  const read = async (merchantId?: string) =>
    (await listEvents.run(operator, { ...(merchantId && { merchantId }) })).items.map(({ type, data }) => {
      const { merchantId: of, reference, serialNumber } = data as Record<string, unknown>;
      return [type, of, reference ?? serialNumber];
    });
  const [one, two] = [String(till.merchant.id), String(other.merchant.id)];
  const all = await read();
  const expected = [
    ['voucher.redeemed', two, 'elsewhere'],
    ['voucher.redeemed', one, 'here'],
    ['redemption.updated', one, undefined],
    ['voucher.redeemed', one, 'later'],
    ['voucher.blocked', one, String(voucher.serialNumber)],
  ];
  assert.deepEqual(all.slice(1), expected);
  assert.deepEqual(all[0]?.slice(0, 2), ['voucher.batch.completed', one]);
  assert.deepEqual(
    await read(one),
    expected.slice(3).map(([type, , what]) => [type, undefined, what]),
  );
  const [own] = (await webhooks.list.run(operator, {})).items;
  assert.equal(own?.merchantId, null);
  await till.reconciles();
});

test('an endpoint of the operator never gets codes, nor is one proposed', async (t) => {
  const { service } = (await Till.open(t)).testService;
  const input = { url: 'https://example.com/', full: true };
  const isInvalid = (error: unknown) => error instanceof Problem && error.code === 'invalid';
  await assert.rejects(webhooks.add.run(asOperator(service), input), isInvalid);
  const principal = { ...COMMAND_LINE, kind: 'token', id: '1', steppedUp: true } as const;
  await assert.rejects(perform(webhooks.add, { service, principal, input }), isInvalid);
});

test('the operator learns that a day was closed', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const operator = asOperator(service);
  await webhooks.add.run(operator, { pull: true, events: ['day.closed'] });
  const shop = await ledger.merchant();
  await sell(shop, 1, 25);
  await ledger.at('2026-03-04T09:00:00Z');
  await close(ledger);
  const { items } = await listEvents.run(operator, {});
  for (const { type, data } of items) assertDescribed({ type, data });
  assert.deepEqual(
    items.map(({ type, data }) => [type, (data as { day: string; failed: string[] }).failed]),
    [
      ['day.closed', []],
      ['day.closed', []],
    ],
  );
});
