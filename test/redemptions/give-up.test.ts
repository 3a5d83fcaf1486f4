import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { generate } from '../../src/batches/generate.ts';
import { type Context, createService, type Permission } from '../../src/context.ts';
import { findClaim, voidTransaction } from '../../src/ledger/claims.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { findTransaction } from '../../src/ledger/transactions.ts';
import { actFor } from '../../src/merchants/merchants.ts';
import { giveUpRedemption } from '../../src/redemptions/give-up.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { balance } from '../../src/vouchers/balance.ts';
import { atNow, type Sold, sell, soldBy } from '../support/books.ts';
import { asOperator, startTestService, type TestService } from '../support/harness.ts';
import { withWrongPin } from '../support/till.ts';

/** A redemption that its merchant gives up takes no money, whenever the request arrives. */

const UPDATES: readonly Permission[] = ['update-redemption'];

/** A merchant at two processes. */
async function open(t: TestContext, buckets: number, permit = UPDATES) {
  const started = await startTestService(undefined, { buckets });
  const other = await startTestService(started);
  t.after(started.stop);
  const { id } = await started.createMerchant({ permit });
  const at = async ({ service }: TestService) => (await actFor(service, id)) ?? assert.fail('no merchant');
  return { one: await at(started), other: await at(other), started };
}

/** The code of the outcome of a redemption: `ok`, `replay`, or that of the refusal. */
async function take(context: Context, { code, pin }: Sold, amount: number, reference: string) {
  try {
    const outcome = await redeem(atNow(context), { code, pin, amount, reference });
    if (typeof outcome === 'string') return outcome;
    return outcome.replayed ? 'replay' : 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const giveUp = (context: Context, reference: string) =>
  giveUpRedemption(asOperator(context.service), atNow(context), reference);

const leftOn = async (context: Context, { code, pin }: Sold) =>
  (await balance(atNow(context), { code, pin })).balance.minor;

async function expectSound({ service }: Context): Promise<void> {
  const { checks } = await reconcile(service);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
}

const NOTHING_TAKEN = { transactionId: null, reversalId: null, amount: null, voucherCode: null };

for (const buckets of [1, 4]) {
  describe(`a redemption that is given up, in ${buckets} bucket(s)`, () => {
    test('cannot be booked later, with whatever voucher and amount', async (t) => {
      const { one, other } = await open(t, buckets);
      const [card, second] = (await sell(one, 2, 25)) as [Sold, Sold];
      for (const reference of ['order-1', 'Bestellung 7/ä€🎁', '00000000-0000-7000-8000-000000000000']) {
        for (const at of [one, other])
          assert.deepEqual(await giveUp(at, reference), {
            outcome: 'given-up',
            reference,
            ...NOTHING_TAKEN,
          });
        assert.equal(await take(other, card, 5, reference), '94');
        assert.equal(await take(one, second, 1, reference), '94');
        assert.equal(await take(one, withWrongPin(card), 5, reference), '94');
        assert.equal(await take(one, { serial: 0n, code: '099999999999', pin: '0000' }, 5, reference), '94');
        assert.equal(await findTransaction(atNow(one), reference), undefined);
      }
      assert.deepEqual([await leftOn(one, card), await leftOn(one, second)], [2500n, 2500n]);
      await expectSound(one);
    });

    test('is reversed once if it was booked, and its late copy takes nothing', async (t) => {
      const { one, other } = await open(t, buckets);
      const [card] = (await sell(one, 1, 25)) as [Sold];
      assert.equal(await take(one, card, 7.5, 'order-1'), 'ok');
      const { outcome, ...reversed } = await giveUp(other, 'order-1');
      assert.equal(outcome, 'reversed');
      assert.deepEqual(
        [reversed.amount, reversed.voucherCode],
        [7.5, `${card.code.slice(0, 4)}****${card.code.slice(8)}`],
      );
      assert.deepEqual(await giveUp(one, 'order-1'), { outcome: 'already-reversed', ...reversed });
      assert.equal(await take(one, card, 7.5, 'order-1'), 'replay');
      assert.equal(await leftOn(one, card), 2500n);
      await expectSound(one);
    });

    test('is found by its transaction id if it has no reference', async (t) => {
      const { one } = await open(t, buckets);
      const [{ code, pin }] = (await sell(one, 1, 25)) as [Sold];
      const outcome = await redeem(atNow(one), { code, pin, amount: 5 });
      assert.ok(typeof outcome !== 'string');
      const { transactionId } = outcome.transaction;
      assert.equal((await giveUp(one, transactionId)).outcome, 'reversed');
      assert.equal((await giveUp(one, transactionId)).outcome, 'already-reversed');
      assert.equal(await leftOn(one, { serial: 0n, code, pin }), 2500n);
      await expectSound(one);
    });

    test('takes no money in 250 races with its request, copies and other undoings of it', async (t) => {
      const { one, other } = await open(t, buckets);
      const cards = await sell(one, 10, 500);
      const cardOf = (index: number) => cards[index % cards.length] as Sold;
      const race = async (index: number) => {
        const reference = `order-${index}`;
        // The requests start before the undoing, or while it runs its first, second or third statement.
        const started = Promise.withResolvers<void>();
        if (index % 4 === 0) started.resolve();
        const watched = onStatements(other, (count) => count >= index % 4 && started.resolve());
        const undone = [giveUp(watched, reference), giveUp(one, reference)];
        void undone[0]?.finally(started.resolve);
        await started.promise;
        const taken = [one, other].map((at) => take(at, cardOf(index), 1, reference));
        return [...(await Promise.all(taken)), ...(await Promise.all(undone)).map(({ outcome }) => outcome)];
      };
      // Not all at once: the audit of each undoing waits for its turn, and may not wait for long.
      const outcomes: string[][] = [];
      while (outcomes.length < 250)
        outcomes.push(
          ...(await Promise.all(Array.from({ length: 10 }, (_, at) => race(outcomes.length + at)))),
        );
      for (const [index, made] of outcomes.entries()) {
        const isBooked = made.includes('ok');
        assert.equal(made.includes('reversed'), isBooked, `${index}: ${made}`);
        assert.equal(made.filter((each) => each === 'ok' || each === 'reversed').length, isBooked ? 2 : 0);
        assert.equal(made.includes('given-up'), !isBooked, `${index}: ${made}`);
      }
      const kinds = new Set(outcomes.flat());
      for (const kind of ['ok', '94', 'reversed', 'given-up', 'already-reversed'])
        assert.ok(kinds.has(kind), `the race never came to ${kind}`);
      for (const card of cards) assert.equal(await leftOn(one, card), 50_000n);
      await expectSound(one);
    });

    test('leaves an activation and an order under the same reference as they are', async (t) => {
      const { one } = await open(t, buckets);
      await generate(atNow(one), { quantity: 1, value: undefined, reference: 'same' });
      const [card] = (await soldBy(atNow(one), 'same')) as [Sold];
      const wanted = { voucher: { serialNumber: Number(card.serial) }, value: 25, reference: 'same' };
      await activate(atNow(one), wanted as never);
      assert.equal((await giveUp(one, 'same')).outcome, 'given-up');
      assert.equal((await findTransaction(atNow(one), 'same'))?.type, 'ACTIVATION');
      assert.equal(await take(one, card, 5, 'same'), '94');
      await expectSound(one);
    });

    test('is refused if it was changed to another amount, and for what is no reference', async (t) => {
      const { one } = await open(t, buckets);
      const [card] = (await sell(one, 1, 25)) as [Sold];
      assert.equal(await take(one, card, 10, 'order-1'), 'ok');
      await updateRedemption(atNow(one), { reference: 'order-1', amountUsed: 4 });
      await assert.rejects(giveUp(one, 'order-1'), { code: '58' });
      assert.equal(await leftOn(one, card), 2100n);
      for (const reference of ['', 'NEW-order-1', 'CANCEL-order-1', 'a\nb', '\ud800', 'x'.repeat(101)])
        await assert.rejects(giveUp(one, reference), { code: '18' });
      await expectSound(one);
    });

    test('is refused without the permission to update redemptions, and nothing changes', async (t) => {
      const { one } = await open(t, buckets, []);
      const [card] = (await sell(one, 1, 25)) as [Sold];
      assert.equal(await take(one, card, 10, 'booked'), 'ok');
      for (const reference of ['booked', 'open'])
        await assert.rejects(giveUp(one, reference), { code: '03' });
      assert.equal(await take(one, card, 10, 'open'), 'ok');
      assert.equal(await leftOn(one, card), 500n);
    });

    test("leaves another merchant's redemption under the same reference as it is", async (t) => {
      const { one, started } = await open(t, buckets);
      const { id } = await started.createMerchant({ permit: UPDATES });
      const stranger = (await actFor(started.service, id)) as Context;
      const [card] = (await sell(one, 1, 25)) as [Sold];
      assert.equal(await take(one, card, 10, 'order-1'), 'ok');
      assert.equal((await giveUp(stranger, 'order-1')).outcome, 'given-up');
      assert.equal(await leftOn(one, card), 1500n);
      assert.equal(await take(one, card, 10, 'order-1'), 'replay');
    });

    test('is finished by a repetition if the process was stopped at any statement', async (t) => {
      const { one, started } = await open(t, buckets);
      const [card] = (await sell(one, 1, 25)) as [Sold];
      for (const [index, isBooked] of [true, false].entries()) {
        const reference = `order-${index}`;
        for (let statements = 0; ; statements++) {
          const again = `${reference}-${statements}`;
          if (isBooked) assert.equal(await take(one, card, 1, again), 'ok');
          else assert.equal(await take(one, withWrongPin(card), 1, again), '55');
          const isWhole = await giveUp(stoppedAfter(one, statements), again).then(
            () => true,
            (error: Error) => {
              assert.equal(error.message, 'the process is gone');
              return false;
            },
          );
          const { outcome } = await giveUp(one, again);
          assert.ok(outcome === (isBooked ? 'already-reversed' : 'given-up') || outcome === 'reversed');
          assert.equal(await take(one, card, 1, again), isBooked ? 'replay' : '94');
          assert.equal(await leftOn(one, card), 2500n);
          if (isWhole) break;
        }
      }
      await expectSound({ ...one, service: started.service });
    });
  });
}

/** The same merchant at a process that reports the statements of its hot path before it sends them. */
function onStatements(context: Context, report: (count: number) => unknown): Context {
  const { service } = context;
  let count = 0;
  const db = Object.create(service.db, {
    hot: {
      value: (...call: Parameters<typeof service.db.hot>) => {
        report(++count);
        return service.db.hot(...call);
      },
    },
  });
  return { ...context, service: createService({ ...service, db }) };
}

/** The same merchant at a process that ends after some statements. */
const stoppedAfter = (context: Context, statements: number) =>
  onStatements(context, (count) => {
    if (count > statements) throw new Error('the process is gone');
  });

test('a reference is taken over from a claim that was voided, and not yet given up', async (t) => {
  const { one } = await open(t, 4);
  const [card] = (await sell(one, 1, 25)) as [Sold];
  assert.equal(await take(one, withWrongPin(card), 5, 'order-1'), '55');
  const claimed = { merchantId: one.merchant.id, operation: 'redeem', reference: 'order-1' } as const;
  const claim = await findClaim(one.service, claimed);
  assert.ok(claim && (await voidTransaction(one.service, claim.id, claim.serial_number as bigint)));
  assert.equal((await giveUp(one, 'order-1')).outcome, 'given-up');
  assert.equal(await take(one, card, 5, 'order-1'), '94');
});
