import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMerchant } from '../../src/api-keys/create-merchant.ts';
import { listKeys } from '../../src/api-keys/keys.ts';
import { createService } from '../../src/context.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { topUp } from '../../src/merchants/floats.ts';
import {
  actFor,
  findMerchant,
  listFloats,
  listMerchants,
  permitAmount,
} from '../../src/merchants/merchants.ts';
import { MINOR_MAX } from '../../src/money.ts';
import {
  DEFAULT_PRODUCT,
  ensureDefaultProduct,
  findProduct,
  listProducts,
} from '../../src/products/products.ts';
import { asOperator, startTestService, type TestService } from '../support/harness.ts';

let testService: TestService;

before(async () => {
  testService = await startTestService();
});

after(async () => {
  await testService?.stop();
});

describe('a merchant', () => {
  test('is created with an API key, a float and all permissions but update-redemption', async () => {
    const { service } = testService;
    const productId = (await findProduct(service.db, DEFAULT_PRODUCT))?.id ?? 0;
    const made = await createMerchant(asOperator(service), {
      name: 'Kiosk',
      permit: [],
      opaque: false,
      productId,
      float: { currency: 'USD', amountMinor: 12_345n },
    });
    const found = await findMerchant(service.db, made.id);
    assert.deepEqual(found?.permissions, ['generate', 'download', 'activate', 'balance', 'redeem']);
    assert.equal(found?.product, DEFAULT_PRODUCT);
    assert.deepEqual(
      (await listKeys(service, made.id)).map(({ keyId }) => keyId),
      [made.keyId],
    );
    assert.deepEqual(await listFloats(service.db, made.id), [{ currency: 'USD', balance: 12_345n }]);
  });

  test('is not created when its float cannot be created', async () => {
    const { service } = testService;
    const productId = (await findProduct(service.db, DEFAULT_PRODUCT))?.id ?? 0;
    const before = await listMerchants(service.db);
    const wanted = {
      name: 'Half',
      permit: [],
      opaque: false,
      productId,
      float: { currency: 'NONE', amountMinor: 1n },
    };
    await assert.rejects(
      createMerchant(asOperator(service), wanted),
      /^Error: NONE is not a currency of ISO 4217$/,
    );
    assert.deepEqual(await listMerchants(service.db), before);
  });
});

describe('a float', () => {
  test('books each of many concurrent top-ups once', async () => {
    const { service } = testService;
    const id = Number((await testService.createMerchant({ float: 0n })).id);
    // On a busy machine, one of them may not get a connection in time. Then it was not booked.
    const add = async (): Promise<unknown> => {
      try {
        return await topUp(asOperator(service), { merchantId: id, currency: 'EUR', amountMinor: 250n });
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'EPOOLEXHAUSTED');
        return add();
      }
    };
    await Promise.all(Array.from({ length: 40 }, add));
    assert.deepEqual(await listFloats(service.db, id), [{ currency: 'EUR', balance: 10_000n }]);
    assert.equal((await reconcile(service)).ok, true);
  });

  test('books a top-up under a reference once, and declines another one with 94', async (t) => {
    const { service } = testService;
    const { id } = await testService.createMerchant({ float: 0n });
    const other = await startTestService(testService);
    t.after(other.stop);
    const wanted = { merchantId: id, currency: 'EUR', amountMinor: 250n, reference: 'transfer 17' };
    const services = [service, other.service];
    const send = (index: number) => topUp(asOperator(services[index % 2] as typeof service), wanted);
    const done = await Promise.all(Array.from({ length: 20 }, (_, index) => send(index)));
    assert.equal(new Set(done.map(({ transactionId }) => transactionId)).size, 1);
    assert.equal(done.filter(({ replayed }) => !replayed).length, 1);
    for (const more of [{ amountMinor: 251n }, { currency: 'USD' }])
      await assert.rejects(topUp(asOperator(service), { ...wanted, ...more }), { code: '94' });
    const float = { currency: 'EUR', balance: 250n };
    assert.deepEqual(
      (await listFloats(service.db, id)).filter(({ currency }) => currency === 'EUR'),
      [float],
    );
    // A reference belongs to its merchant and operation.
    const neighbor = await testService.createMerchant({ float: 0n });
    assert.equal((await topUp(asOperator(service), { ...wanted, merchantId: neighbor.id })).replayed, false);
    const entries = {
      text: `select from audit where action = 'float.top-up' and subject = $1`,
      values: [`merchant ${id}`],
    };
    assert.equal((await service.db.query(entries)).length, 1);
    assert.equal((await reconcile(service)).ok, true);
  });

  test('has the decimals of its currency', async () => {
    const { service } = testService;
    const id = Number((await testService.createMerchant({ float: 0n })).id);
    await topUp(asOperator(service), { merchantId: id, currency: 'JPY', amountMinor: 5_000n });
    await topUp(asOperator(service), { merchantId: id, currency: 'KWD', amountMinor: 5_000n });
    assert.deepEqual(
      await service.db.query({
        text: 'select currency, decimals from floats where merchant_id = $1 order by currency',
        values: [id],
      }),
      [
        { currency: 'JPY', decimals: 0 },
        { currency: 'KWD', decimals: 3 },
      ],
    );
  });

  test('declines a top-up beyond what a JSON number can carry exactly', async () => {
    const { service } = testService;
    const id = Number((await testService.createMerchant({ float: 0n })).id);
    const most = MINOR_MAX;
    const add = (amountMinor: bigint) =>
      topUp(asOperator(service), { merchantId: id, currency: 'USD', amountMinor });
    await add(most);
    await assert.rejects(add(1n), { code: '13' });
    assert.deepEqual(await listFloats(service.db, id), [{ currency: 'USD', balance: most }]);
  });
});

describe('the product DEFAULT', () => {
  test('is created once by concurrent callers', async () => {
    const { db } = testService.service;
    await Promise.all(Array.from({ length: 10 }, () => ensureDefaultProduct(db, 'EUR')));
    const found = (await listProducts(db)).filter(({ code }) => code === DEFAULT_PRODUCT);
    assert.equal(found.length, 1);
    assert.deepEqual(
      [found[0]?.minValue, found[0]?.maxValue, found[0]?.maxQuantity],
      [1n, 10_000_000n, 100_000],
    );
  });
});

test('the first amounts of a process, at one moment, ask once for the decimals in use', async () => {
  const { id } = await testService.createMerchant();
  let asked = 0;
  const { service } = testService;
  const db = {
    ...service.db,
    query: ((statement) => ++asked && service.db.query(statement)) as typeof service.db.query,
  };
  const context = await actFor(service, id);
  assert.ok(context);
  const fresh = { ...context, service: createService({ ...service, db }) };
  // A hundredth, in ten-thousandths.
  await Promise.all(Array.from({ length: 100 }, () => permitAmount(fresh, 'redeem', 100n)));
  assert.equal(asked, 1);
});
