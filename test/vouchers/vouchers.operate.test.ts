import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { requireBatch } from '../../src/batches/batch.ts';
import { fillBatch } from '../../src/batches/fill.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context, Operator, Service } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { activate } from '../../src/vouchers/activate.ts';
import {
  blockVoucher,
  extendVoucher,
  replaceVoucher,
  unblockVoucher,
  unlockPin,
} from '../../src/vouchers/operate.ts';
import { movementsOf, showVoucher } from '../../src/vouchers/show.ts';
import { asOperator, startTestService, type TestService } from '../support/harness.ts';
import { type Made, makeVouchers, vouchersOf } from '../support/operator.ts';

const FAR = new Date('2099-01-01T00:00:00Z');

/** The operations that change a voucher. */
const CHANGES: readonly (readonly [
  name: string,
  run: (operator: Operator, serial: bigint) => Promise<unknown>,
])[] = [
  ['block', blockVoucher],
  ['unblock', unblockVoucher],
  ['unlock of the PIN', unlockPin],
  ['extension', (operator, serial) => extendVoucher(operator, serial, FAR)],
  ['replacement', replaceVoucher],
];

let testService: TestService;
let service: Service;
let context: Context;
let batches = 0;
let reference: string;

before(async () => {
  testService = await startTestService();
  service = testService.service;
  const { authorization } = await testService.createMerchant();
  context = (await authenticate(service, authorization)).context;
});

after(async () => {
  await testService?.stop();
});

beforeEach(() => {
  reference = `operated-${++batches}`;
});

const makeOne = async () => (await makeVouchers(context, reference, 1))[0] as Made;

/** The row of a voucher, and its position, which changes with every update. */
async function rowOf(serialNumber: bigint): Promise<Record<string, unknown> | undefined> {
  const [row] = await service.db.query<Record<string, unknown>>(
    sql`select *, ctid from vouchers where serial_number = ${serialNumber}`,
  );
  return row;
}

describe('every change of a voucher', () => {
  /** A voucher of a batch that is being produced. */
  let unfinished: bigint;
  before(async () => {
    const { batch } = await generate(context, { reference: 'unfinished', quantity: 20_001, value: 0.01 });
    await fillBatch(service, batch.id, () => true);
    const [made] = await service.db.query<{ serial: bigint }>(
      sql`select max(serial_number) as serial from vouchers where batch_id = ${batch.id}`,
    );
    unfinished = made?.serial ?? assert.fail('no voucher was made');
  });

  for (const [name, run] of CHANGES) {
    test(`by ${name} changes no other voucher`, async () => {
      const [one, other] = await makeVouchers(context, reference, 2);
      const [before, untouched] = [await rowOf(one.serialNumber), await rowOf(other.serialNumber)];
      await run(asOperator(service), one.serialNumber);
      assert.notEqual((await rowOf(one.serialNumber))?.['ctid'], before?.['ctid']);
      assert.deepEqual(await rowOf(other.serialNumber), untouched);
    });

    test(`by ${name} is refused for a replaced voucher, and changes nothing`, async () => {
      const { serialNumber } = await makeOne();
      await replaceVoucher(asOperator(service), serialNumber);
      const before = await rowOf(serialNumber);
      await assert.rejects(run(asOperator(service), serialNumber), { code: '44' });
      assert.deepEqual(await rowOf(serialNumber), before);
    });

    test(`by ${name} is refused for a voucher that does not exist`, async () => {
      await assert.rejects(run(asOperator(service), 999_999_999_999_999n), { code: '14' });
    });

    test(`by ${name} is refused while its batch is being produced`, async () => {
      const before = await rowOf(unfinished);
      await assert.rejects(run(asOperator(service), unfinished), { code: '14' });
      assert.deepEqual(await rowOf(unfinished), before);
    });
  }
});

describe('a replacement', () => {
  test('of an inactive voucher is inactive, and can be activated', async () => {
    await generate(context, { reference, quantity: 1 });
    const [old] = (await vouchersOf(context, reference)) as [Made];
    const serialNumber = await replaceVoucher(asOperator(service), old.serialNumber);
    const { state, value } = await showVoucher(service, serialNumber);
    assert.deepEqual([state, value], ['INACTIVE', null]);
    assert.deepEqual(await movementsOf(service, serialNumber), []);
    const [{ code, pin }] = (await vouchersOf(context, reference)) as [Made];
    await activate(context, { voucher: { code, pin }, value: 12 });
    assert.equal((await showVoucher(service, serialNumber)).balance, 1200n);
    await assert.rejects(activate(context, { voucher: { code: old.code, pin: old.pin } }), { code: '44' });
  });

  test('is made once for eight concurrent calls', async () => {
    const { serialNumber } = await makeOne();
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => replaceVoucher(asOperator(service), serialNumber)),
    );
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const each of results) if (each.status === 'rejected') assert.equal(each.reason.code, '44');
    assert.equal((await vouchersOf(context, reference)).length, 1);
  });

  test('takes over exactly the balance that concurrent redemptions leave', async () => {
    const { serialNumber, code, pin } = await makeOne();
    const sales = Array.from({ length: 20 }, () => redeem(context, { code, pin, amount: 1 }));
    const [replacement, ...done] = await Promise.allSettled([
      replaceVoucher(asOperator(service), serialNumber),
      ...sales,
    ]);
    assert.equal(replacement.status, 'fulfilled');
    const sold = done.filter(({ status }) => status === 'fulfilled').length;
    for (const each of done) if (each.status === 'rejected') assert.equal(each.reason.code, '44');
    const { balance } = await showVoucher(service, replacement.value);
    assert.equal(balance, BigInt(30 - sold) * 100n);
  });

  test('takes the place of the old voucher in the figures of its batch', async () => {
    const [first] = await makeVouchers(context, reference, 3);
    await replaceVoucher(asOperator(service), first.serialNumber);
    const [{ transactionId } = { transactionId: '' }] = await service.db.query<{ transactionId: string }>(
      sql`select transaction_id as "transactionId" from batches where reference = ${reference}`,
    );
    const { open, activated, balance } = await requireBatch(service.db, transactionId);
    assert.deepEqual([open, activated, balance], [3, 3, 9000n]);
  });
});

test('the books agree after all of these operations', async () => {
  assert.equal((await reconcile(service)).ok, true);
});
