import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { audit } from '../../src/audit/audit.ts';
import type { Permission } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { exampleOf } from '../../src/http/operator/openapi.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import type { Decline } from '../../src/vouchers/declines.ts';
import { flushDeclines } from '../../src/vouchers/declines.ts';
import { asOperator } from '../support/harness.ts';
import { operatorApi } from '../support/operator.api.ts';
import { type Made, makeVouchers } from '../support/operator.ts';

/** A merchant with one thing of each kind. */
type Side = {
  readonly merchantId: number;
  readonly token: string;
  readonly keyId: string;
  readonly transactionId: string;
  readonly vouchers: readonly Made[];
};

const api = operatorApi();
let one: Side;
let other: Side;

async function makeSide(permit: readonly Permission[] = []): Promise<Side> {
  const merchant = await api.testService.createMerchant({ permit });
  const { context } = await authenticate(api.testService.service, merchant.authorization);
  const vouchers = await makeVouchers(context, 'mine', 3);
  const [{ code, pin }] = vouchers;
  const { transaction } = await redeem(context, { code, pin, amount: 5, reference: 'sale-1' });
  const token = await api.token(['owner'], merchant.id);
  return {
    merchantId: merchant.id,
    token,
    keyId: merchant.keyId,
    transactionId: transaction.transactionId,
    vouchers,
  };
}

before(async () => {
  one = await makeSide();
  other = await makeSide();
});

const as = ({ token }: Side) => ({ authorization: `Bearer ${token}` });
const ask = (side: Side, method: string, path: string, body?: unknown) =>
  api.call(method, `/portal/v1${path}`, body, as(side));

describe('the portal', () => {
  test('shows a merchant its own float, transactions, batches and keys', async () => {
    const { body: merchant } = await ask(one, 'GET', '/merchant');
    assert.deepEqual([merchant.id, merchant.floats[0].balance], [String(one.merchantId), 99_910]);
    const { body: transactions } = await ask(one, 'GET', '/transactions?limit=1');
    assert.equal(transactions.items[0].transactionId, one.transactionId);
    const { body: keys } = await ask(one, 'GET', '/api-keys');
    assert.deepEqual(
      keys.items.map((each: { keyId: string }) => each.keyId),
      [one.keyId],
    );
    const found = await ask(one, 'POST', '/transactions/find', { reference: 'sale-1' });
    assert.equal(found.body.transactionId, one.transactionId);
  });

  test('names the products that a merchant may order, and those whose vouchers it has redeemed', async () => {
    const wanted = { code: 'HERS', name: 'Only hers', merchantId: String(other.merchantId) };
    const { status } = await api.call('POST', '/operator/v1/products', wanted);
    assert.equal(status, 201);
    const namesOf = async (side: Side) => {
      const { body } = await ask(side, 'GET', '/products');
      return body.items.map(({ code, name }: Record<string, string>) => `${code} ${name}`);
    };
    assert.deepEqual(await namesOf(other), ['DEFAULT Voucher', 'HERS Only hers']);
    assert.deepEqual(await namesOf(one), ['DEFAULT Voucher']);
    await api.testService.service.db.query(sql`
insert into book_movements
  (day, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id, rows, amount_minor)
select '2026-01-01', currency, 'REDEMPTION', 'VOUCHER', 'SETTLEMENT', ${one.merchantId}, ${other.merchantId}, id, 1, 1
from products where code = 'HERS'`);
    assert.deepEqual(await namesOf(one), ['DEFAULT Voucher', 'HERS Only hers']);
  });

  test('tells an opaque merchant nothing about a code whose PIN it did not know', async () => {
    const merchant = await api.testService.createMerchant({ opaque: true });
    const authorization = { authorization: `Bearer ${await api.token(['owner'], merchant.id)}` };
    const call = (method: string, path: string, body?: object) =>
      api.call(method, `/portal/v1${path}`, body, authorization);
    const [{ code, pin, serialNumber }] = one.vouchers as [Made];
    const wrong = pin === '0000' ? '0001' : '0000';
    for (const guess of [code, code, '999999999999']) {
      const path = '/merchant-client/v2/balance';
      const { authorization: key } = merchant;
      const { body } = await api.call('POST', path, { code: guess, pin: wrong }, { authorization: key });
      assert.equal(body.statusCode, '14');
    }
    await flushDeclines(api.testService.service);
    const { body } = await call('GET', '/declines');
    const shown = body.items.map((each: Decline) => [each.code, each.serialNumber, each.currency]);
    assert.deepEqual(shown, [
      ['14', null, null],
      ['14', null, null],
      ['14', null, null],
    ]);
    const about = await call('GET', `/declines?serialNumber=${serialNumber}&limit=1`);
    assert.deepEqual(about.body, { items: [], nextCursor: null });
    const { body: all } = await api.get(`/declines?merchantId=${merchant.id}`);
    assert.deepEqual(
      all.items.map((each: Decline) => each.code),
      ['14', '55', '55'],
    );
  });

  test('refuses a merchant that names another one, or calls the operator API', async () => {
    const named = await ask(one, 'GET', `/transactions?merchantId=${other.merchantId}`);
    assert.deepEqual([named.status, named.body.errors[0].field], [400, 'merchantId']);
    const operator = await api.call('GET', '/operator/v1/merchants', undefined, as(one));
    assert.equal(operator.status, 403);
    const portal = await api.call('GET', '/portal/v1/merchant');
    assert.equal(portal.status, 403);
  });

  test('checks vouchers with the same PIN guard as the merchant API', async () => {
    const [, voucher] = one.vouchers as [Made, Made];
    const { code, pin } = voucher;
    const cashier = { ...one, token: await api.token(['cashier'], one.merchantId) };
    const right = await ask(cashier, 'POST', '/vouchers/check', { code, pin });
    assert.deepEqual([right.status, right.body.balance, right.body.currency], [200, 30, 'USD']);
    assert.equal((await ask(cashier, 'GET', '/transactions')).status, 403);
    const wrong = pin === '0000' ? '0001' : '0000';
    for (let tries = 0; tries < 5; tries++)
      assert.equal((await ask(cashier, 'POST', '/vouchers/check', { code, pin: wrong })).body.code, '55');
    assert.equal((await ask(cashier, 'POST', '/vouchers/check', { code, pin })).body.code, '75');
  });

  test('gives up a redemption for its cashier, and records who did it', async () => {
    const side = await makeSide(['update-redemption']);
    const cashier = { ...side, token: await api.token(['cashier'], side.merchantId) };
    const giveUp = (body: object, by = cashier) => ask(by, 'POST', '/redemptions/give-up', body);
    for (const keyId of [other.keyId, 'key_thatThereIsNo000'])
      assert.equal((await giveUp({ reference: 'sale-1', keyId })).status, 404);
    const { keyId } = side;
    const reversed = await giveUp({ reference: 'sale-1', keyId, reason: 'the till has lost its line' });
    assert.deepEqual(
      [reversed.status, reversed.body.outcome, reversed.body.transactionId, reversed.body.amount],
      [200, 'reversed', side.transactionId, 5],
    );
    assert.equal((await giveUp({ reference: 'sale-1' })).body.outcome, 'already-reversed');
    const { body } = await giveUp({ reference: 'sale-2' });
    assert.deepEqual([body.outcome, body.reference, body.amount], ['given-up', 'sale-2', null]);
    const found = await ask(side, 'POST', '/transactions/find', { reference: 'sale-2' });
    assert.equal(found.status, 404);
    const viewer = { ...side, token: await api.token(['viewer', 'finance'], side.merchantId) };
    assert.equal((await giveUp({ reference: 'sale-3' }, viewer)).body.code, 'forbidden');
    assert.equal((await giveUp({ reference: 'NEW-1' })).body.code, '18');
    const unpermitted = await ask(one, 'POST', '/redemptions/give-up', { reference: 'sale-1' });
    assert.equal(unpermitted.body.code, '03');
    for (const wrong of [
      {},
      { reference: 7 },
      { reference: null },
      { reference: '' },
      { reference: 'a', x: 1 },
    ])
      assert.equal((await giveUp(wrong)).body.code, 'invalid');
    const changes = await ask(side, 'GET', '/audit?limit=100');
    const recorded = changes.body.items.filter(
      ({ action }: { action: string }) => action === 'redemption.give-up',
    );
    assert.deepEqual(
      recorded.map(({ by, reason, after }: Record<string, unknown>) => [by, reason, after]),
      [
        ['merchant', null, { reference: 'sale-2' }],
        ['merchant', null, { reference: 'sale-1' }],
        ['merchant', 'the till has lost its line', { reference: 'sale-1' }],
      ],
    );
  });

  test('stops a merchant that guesses codes', async () => {
    for (let tries = 0; tries < 55; tries++) {
      const { status } = await ask(other, 'POST', '/vouchers/check', { code: '999999999999', pin: '0000' });
      if (status === 429) return;
    }
    assert.fail('the merchant was not stopped');
  });

  test('lets the people of a suspended merchant read, and change nothing', async () => {
    const { service } = api.testService;
    const side = await makeSide();
    await merchants.suspend.run(asOperator(service), { id: String(side.merchantId) });
    const changes = PORTAL_OPERATIONS.filter(({ effect, isForPeople }) => effect !== 'read' && !isForPeople);
    assert.ok(changes.length >= 12);
    for (const operation of changes) {
      const path = operation.path.replace(/:(\w+)/g, (_all, name) =>
        String((operation.input.properties[name] as { examples?: unknown[] }).examples?.[0] ?? 1),
      );
      const { status, body } = await ask(side, operation.method, path, exampleOf(operation));
      assert.deepEqual([status, body.code], [409, '04'], `${operation.name}: ${JSON.stringify(body)}`);
    }
    for (const { name, path } of PORTAL_OPERATIONS.filter(
      ({ method, path }) => method === 'GET' && !path.includes(':') && !/files|export/.test(path),
    )) {
      const { status, body } = await ask(side, 'GET', path);
      assert.ok(status === 200 || body.code === 'invalid', `${name}: ${status} ${JSON.stringify(body)}`);
    }
    const [{ code, pin }] = side.vouchers as [Made];
    const { body: checked } = await ask(side, 'POST', '/vouchers/check', { code, pin });
    assert.equal(checked.code, '04', 'as at the till');
    await merchants.resume.run(asOperator(service), { id: String(side.merchantId) });
    assert.equal((await ask(side, 'POST', '/vouchers/check', { code, pin })).body.balance, 25);
  });

  test('checks no voucher for a merchant without the permission, as at the till', async () => {
    const merchant = await api.testService.createMerchant({ forbid: ['balance'] });
    const authorization = `Bearer ${await api.token(['cashier'], merchant.id)}`;
    const [{ code, pin }] = one.vouchers as [Made];
    const { body } = await api.call('POST', '/portal/v1/vouchers/check', { code, pin }, { authorization });
    assert.equal(body.code, '03');
  });

  test("shows who of its own people changed something, and of the operator's neither name nor reason", async () => {
    const { service } = api.testService;
    const side = await makeSide();
    const actor = {
      kind: 'user',
      id: '77',
      name: 'ann@op.example',
      origin: '192.0.2.1',
      requestId: null,
      reason: 'we suspect fraud',
    } as const;
    await merchants.suspend.run({ ...asOperator(service), actor }, { id: String(side.merchantId) });
    await merchants.resume.run({ ...asOperator(service), actor }, { id: String(side.merchantId) });
    const own = {
      ...actor,
      kind: 'token',
      id: await ownTokenId(side),
      name: 'till 3',
      reason: 'ours',
    } as const;
    await service.db.transaction((tx) =>
      audit(tx, { service, actor: own }, { action: 'float.warn', subject: `merchant ${side.merchantId}` }),
    );
    const { body } = await ask(side, 'GET', '/audit?limit=2');
    assert.deepEqual(
      body.items.map(({ action, by, actor: name, reason }: Record<string, unknown>) => [
        action,
        by,
        name,
        reason,
      ]),
      [
        ['float.warn', 'merchant', 'till 3', 'ours'],
        ['merchant.resume', 'operator', null, null],
      ],
    );
    assert.ok(!/op\.example|fraud|192\.0\.2/.test(JSON.stringify(body)));
  });
});

async function ownTokenId({ merchantId }: Side): Promise<string> {
  const { body } = await api.get(`/tokens?limit=100`);
  const found = body.items.find((each: { merchantId: string }) => each.merchantId === String(merchantId));
  return found.id;
}
