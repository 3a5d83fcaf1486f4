import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { authenticate } from '../src/api-keys/authenticate.ts';
import { generate } from '../src/batches/generate.ts';
import type { Context } from '../src/context.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { listFloats } from '../src/merchants/floats.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { updateRedemption } from '../src/redemptions/update.ts';
import { Refusal } from '../src/refusal.ts';
import { activate } from '../src/vouchers/activate.ts';
import { blockVoucher, showVoucher, unblockVoucher } from '../src/vouchers/operate.ts';
import { asOperator, startTestService, type TestService } from './harness.ts';
import { type Made, makeVouchers, vouchersOf } from './operator.ts';

/**
 * Any order of operations, each done or refused, some at the same time: money is neither made nor lost,
 * and every voucher holds what a plain sum of the accepted requests says.
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
/** Vouchers from here on came without a value. */
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

/** What the accepted requests add up to. */
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
  asked: Operation,
): Promise<void> {
  const { service } = context;
  const made = 'voucher' in asked ? (vouchers[asked.voucher] as Made) : undefined;
  const amount = 'minor' in asked ? asked.minor / 100 : 0;
  if (asked.do === 'block') return blockVoucher(asOperator(service), made?.serialNumber as bigint);
  if (asked.do === 'unblock') return unblockVoucher(asOperator(service), made?.serialNumber as bigint);
  if (asked.do === 'redeem' && made) {
    const { code, pin, serialNumber } = made;
    const { replayed } = await redeem(context, { code, pin, amount, reference: asked.reference });
    if (!replayed) model.spend(serialNumber, BigInt(asked.minor));
  } else if (asked.do === 'activate' && made) {
    const given = { serialNumber: Number(made.serialNumber) };
    const { transaction, replayed } = await activate(context, {
      voucher: given,
      value: amount,
      reference: asked.reference,
    });
    if (replayed) return;
    model.valued.set(made.serialNumber, transaction.amount.minor);
    model.float -= transaction.amount.minor;
  } else if (asked.do === 'update') {
    const { original, replacement } = await updateRedemption(context, {
      reference: asked.reference,
      amountUsed: amount,
    });
    model.spend(original.serialNumber, (replacement?.amount.minor ?? 0n) - original.amount.minor);
  } else if (asked.do === 'generate') {
    const { replayed } = await generate(context, { reference: asked.reference, quantity: 1, value: amount });
    if (!replayed) model.float -= BigInt(asked.minor);
  }
}

test('whatever happens in whatever order, the sums are those of what was accepted', async () => {
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
      const { context } = await authenticate(testService.service, `Basic ${btoa(`${keyId}:${secret}`)}`);
      const vouchers = await makeVouchers(context, 'with value', WITHOUT_VALUE, Number(VALUE_MINOR) / 100);
      await generate(context, { reference: 'without', quantity: VOUCHERS - WITHOUT_VALUE });
      vouchers.push(...(await vouchersOf(context, 'without')));
      const model = new Model();
      for (const { serialNumber } of vouchers.slice(0, WITHOUT_VALUE))
        model.valued.set(serialNumber, VALUE_MINOR);
      // What stands in a group is asked for at the same time.
      for (const group of steps) {
        await Promise.all(
          group.map((asked) =>
            apply(context, vouchers, model, asked).catch((error) =>
              assert.ok(error instanceof Refusal, String(error)),
            ),
          ),
        );
      }
      for (const { serialNumber } of vouchers) {
        const { balance, value } = await showVoucher(testService.service, serialNumber);
        const expected = model.valued.get(serialNumber);
        assert.equal(value?.minor, expected);
        assert.equal(balance.minor, (expected ?? 0n) - (model.spent.get(serialNumber) ?? 0n));
      }
      const [float] = await listFloats(testService.service.db, context.merchant.id);
      assert.equal(float?.balance.minor, model.float);
    }),
    { numRuns: 25 },
  );
  const { checks } = await reconcile(testService.service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
});
