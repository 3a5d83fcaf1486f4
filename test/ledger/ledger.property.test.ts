import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { listFloats } from '../../src/merchants/merchants.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { Refusal } from '../../src/refusal.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { blockVoucher, unblockVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { differing } from '../support/differing.ts';
import { asOperator, basic, startTestService, type TestService } from '../support/harness.ts';
import { type Made, makeVouchers, vouchersOf } from '../support/operator.ts';

/**
 * Random operations in any order, some of them concurrent: no money appears or disappears, and the balance of
 * each voucher is the sum of the accepted requests.
 */

let testService: TestService;

before(async () => {
  testService = await startTestService();
});

after(async () => {
  await testService?.stop();
});

const VALUE_MINOR = 25_00n;
const FLOAT_MINOR = 6_000_00n;
const VOUCHERS = 4;
/** The index of the first voucher without a value. */
const WITHOUT_VALUE = 2;
const REFERENCES = 6;

const voucher = fc.nat(VOUCHERS - 1);
const reference = fc.nat(REFERENCES - 1).map((index) => `x${index}`);
const minor = fc.integer({ min: 1, max: 20_00 });

const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('redeem' as const), voucher, reference, minor }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('update' as const),
      reference,
      minor: fc.oneof(minor, fc.constant(0)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('activate' as const), voucher, reference, minor }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('generate' as const), reference, minor }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('block' as const), voucher }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unblock' as const), voucher }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** The sums of the accepted requests. */
class Model {
  readonly spent = new Map<bigint, bigint>();
  readonly valued = new Map<bigint, bigint>();
  float = FLOAT_MINOR - VALUE_MINOR * BigInt(WITHOUT_VALUE);

  spend(serial: bigint, amount: bigint): void {
    this.spent.set(serial, (this.spent.get(serial) ?? 0n) + amount);
  }
}

async function apply(
  context: Context,
  vouchers: readonly Made[],
  model: Model,
  request: Operation,
): Promise<void> {
  const { service } = context;
  const made = 'voucher' in request ? (vouchers[request.voucher] as Made) : undefined;
  const amount = 'minor' in request ? request.minor / 100 : 0;
  if (request.do === 'block') return blockVoucher(asOperator(service), made?.serialNumber as bigint);
  if (request.do === 'unblock') return unblockVoucher(asOperator(service), made?.serialNumber as bigint);
  if (request.do === 'redeem' && made) {
    const { code, pin, serialNumber } = made;
    const { replayed } = await redeem(context, { code, pin, amount, reference: request.reference });
    if (!replayed) model.spend(serialNumber, BigInt(request.minor));
  } else if (request.do === 'activate' && made) {
    const given = { serialNumber: Number(made.serialNumber) };
    const { transaction, replayed } = await activate(context, {
      voucher: given,
      value: amount,
      reference: request.reference,
    });
    if (replayed) return;
    model.valued.set(made.serialNumber, transaction.amount.minor);
    model.float -= transaction.amount.minor;
  } else if (request.do === 'update') {
    const { original, replacement } = await updateRedemption(context, {
      reference: request.reference,
      amountUsed: amount,
    });
    model.spend(original.serialNumber, (replacement?.amount.minor ?? 0n) - original.amount.minor);
  } else if (request.do === 'generate') {
    const { replayed } = await generate(context, {
      reference: request.reference,
      quantity: 1,
      value: amount,
    });
    if (!replayed) model.float -= BigInt(request.minor);
  }
}

test('balances and floats are the sums of the accepted requests', async () => {
  const groups = fc.array(fc.array(operation, { minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(groups, async (steps) => {
      const { keyId, secret } = await testService.createMerchant({
        permit: ['update-redemption'],
        float: FLOAT_MINOR,
      });
      const { context } = await authenticate(testService.service, basic(keyId, secret));
      const vouchers = await makeVouchers(context, 'with value', WITHOUT_VALUE, Number(VALUE_MINOR) / 100);
      await generate(context, { reference: 'without', quantity: VOUCHERS - WITHOUT_VALUE });
      vouchers.push(...(await vouchersOf(context, 'without')));
      const model = new Model();
      for (const { serialNumber } of vouchers.slice(0, WITHOUT_VALUE))
        model.valued.set(serialNumber, VALUE_MINOR);
      // The requests of a group are concurrent.
      for (const group of steps) {
        await Promise.all(
          group.map((request) =>
            apply(context, vouchers, model, request).catch((error) =>
              assert.ok(error instanceof Refusal, String(error)),
            ),
          ),
        );
      }
      for (const { serialNumber } of vouchers) {
        const { balance, value } = await showVoucher(testService.service, serialNumber);
        const expected = model.valued.get(serialNumber);
        assert.equal(value ?? undefined, expected);
        assert.equal(balance, (expected ?? 0n) - (model.spent.get(serialNumber) ?? 0n));
      }
      const [float] = await listFloats(testService.service.db, context.merchant.id);
      assert.equal(float?.balance, model.float);
    }),
    { numRuns: 25 },
  );
  assert.deepEqual(await differing(testService.service), []);
});
