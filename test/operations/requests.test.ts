import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { flushDeclines } from '../../src/vouchers/declines.ts';
import { DIALECTS } from '../support/dialects.ts';
import { operatorApi } from '../support/operator.api.ts';
import { type Made, makeVouchers } from '../support/operator.ts';

const api = operatorApi();
let merchant: { readonly id: number; readonly authorization: string };
let vouchers: readonly Made[];

before(async () => {
  merchant = await api.testService.createMerchant({ permit: ['update-redemption'] });
  const { context } = await authenticate(api.testService.service, merchant.authorization);
  vouchers = await makeVouchers(context, 'mine', 3);
});

type Asked = { readonly method: string; readonly path: string; readonly body?: unknown };

/** Sends a request of the merchant. @returns the id of the request, and the data of the answer */
async function ask({ method, path, body }: Asked) {
  const { authorization } = merchant;
  const answer = await api.call(method, path, body, { authorization });
  const id = answer.headers.get('x-request-id') ?? assert.fail('no id');
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  return { id, ...answer.body };
}

const show = (id: string) => api.get(`/requests/${id}`);
const own = async (id: string, merchantId = merchant.id, role = 'viewer') =>
  api.call('GET', `/portal/v1/requests/${id}`, undefined, {
    authorization: `Bearer ${await api.token([role], merchantId)}`,
  });

describe('the id of a request', () => {
  for (const [index, dialect] of DIALECTS.entries()) {
    test(`is that of the transaction that it booked, and a repetition has another (${dialect.name})`, async () => {
      const { code, pin } = vouchers[index] as Made;
      const redeem = dialect.redeem({ serialNumber: 0, code, pin }, 1, `sale ${index}`);
      const booked = await ask(redeem);
      assert.equal(booked.id, booked.data.transactionId);
      const { body } = await show(booked.id);
      assert.deepEqual(
        [body.requestId, body.transaction.reference, body.transaction.amount, body.decline, body.batch],
        [booked.id, `sale ${index}`, 1, null, null],
      );
      assert.equal((await own(booked.id)).body.transaction.reference, `sale ${index}`);
      const repeated = await ask(redeem);
      assert.equal(repeated.data.transactionId, booked.id);
      assert.notEqual(repeated.id, booked.id);
      assert.equal((await show(repeated.id)).status, 404);
      const looked = await ask(dialect.lookup(`sale ${index}`));
      assert.notEqual(looked.id, booked.id);
    });

    test(`finds the batch that it ordered (${dialect.name})`, async () => {
      const ordered = await ask(dialect.generate(`order ${index}`, 11, 5));
      const { body } = await show(ordered.id);
      assert.deepEqual([body.batch.reference, body.batch.quantity], [`order ${index}`, 11]);
    });

    test(`finds why it was declined (${dialect.name})`, async () => {
      const { code, pin } = vouchers[2] as Made;
      const refused = await ask(dialect.redeem({ serialNumber: 0, code, pin }, 9_999, `too much ${index}`));
      assert.equal(refused.statusCode, '51');
      await flushDeclines(api.testService.service);
      const { body } = await show(refused.id);
      assert.deepEqual([body.decline.id, body.decline.code, body.transaction], [refused.id, '51', null]);
      assert.equal((await own(refused.id)).body.decline.reference, `too much ${index}`);
    });
  }

  test('finds what it changed, and a booking at the till of the portal', async () => {
    const changed = await api.post(`/merchants/${merchant.id}/forbid`, { permission: 'download' });
    const id = changed.headers.get('x-request-id') ?? '';
    const { body } = await show(id);
    assert.deepEqual(
      body.changes.map(({ action, subject }: { action: string; subject: string }) => [action, subject]),
      [['merchant.forbid', `merchant ${merchant.id}`]],
    );
    // It was the operator, whose people are none of the merchant's business.
    assert.equal((await own(id)).status, 404);
    const authorization = `Bearer ${await api.token(['cashier'], merchant.id)}`;
    const { code, pin } = vouchers[2] as Made;
    const sale = { code, pin, amount: 1, reference: 'by hand' };
    const booked = await api.call('POST', '/portal/v1/till/redeem', sale, { authorization });
    assert.equal(booked.headers.get('x-request-id'), booked.body.transaction.transactionId);
    const key = await api.call(
      'POST',
      '/portal/v1/api-keys',
      {},
      {
        authorization: `Bearer ${await api.token(['owner'], merchant.id)}`,
      },
    );
    const made = await own(key.headers.get('x-request-id') ?? '');
    assert.equal(made.body.changes[0].action, 'api-key.create');
  });

  test('of another merchant seems not to exist', async () => {
    const { code, pin } = vouchers[0] as Made;
    const [dialect] = DIALECTS;
    const booked = await ask(dialect.redeem({ serialNumber: 0, code, pin }, 1, 'private'));
    const refused = await ask(dialect.redeem({ serialNumber: 0, code, pin }, 9_999, 'private too'));
    const ordered = await ask(dialect.generate('private order', 11, 5));
    await flushDeclines(api.testService.service);
    const other = await api.testService.createMerchant();
    for (const { id } of [booked, refused, ordered]) {
      assert.equal((await own(id)).status, 200);
      assert.equal((await own(id, other.id)).status, 404);
    }
  });
});
