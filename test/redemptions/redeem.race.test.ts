import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { A, type ApiRequest, DIALECTS, type Dialect, update, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';
import { countCodes, Till } from '../support/till.ts';

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
const either = <T>(all: readonly T[], index: number): T => all[index % all.length] as T;

/** Opens a till at two processes. */
async function open(t: TestContext, wanted?: Parameters<typeof Till.open>[1]) {
  const one = await Till.open(t, wanted);
  const tills = [one, await one.elsewhere(t)] as const;
  /** Sends requests at the same time, to both processes and by both variants in turn. */
  const ask = (count: number, make: (dialect: Dialect, index: number) => ApiRequest) =>
    Promise.all(
      times(count, (index) => {
        const dialect = either(DIALECTS, Math.floor(index / 2));
        return patiently(either(tills, index), make(dialect, index));
      }),
    );
  return { one, tills, ask };
}

/** Repeats a request while the service is overloaded, as a client does. */
async function patiently(till: Till, request: ApiRequest) {
  for (;;) {
    const answer = await till.ask(request);
    if (answer.statusCode !== '91') return answer;
  }
}

/** Expects that copies of a request were booked once, and got the same answer. */
function bookedOnce(answers: Awaited<ReturnType<typeof patiently>>[]): void {
  assert.deepEqual(countCodes(answers), { '00': answers.length });
  assert.equal(new Set(answers.map(({ data }) => data.transactionId)).size, 1);
  assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
}

describe('two processes at the same time', () => {
  test('book sixty copies of a redemption once, and give all of them the same answer', async (t) => {
    const { one, ask } = await open(t);
    const voucher = await one.voucher(25);
    bookedOnce(await ask(60, (dialect) => dialect.redeem(voucher, 25, 'sale')));
    assert.equal(await one.balanceOf(voucher), 0);
    await one.reconciles();
  });

  test('never spend more than a voucher holds', async (t) => {
    const { one, ask } = await open(t);
    const voucher = await one.voucher(25);
    const answers = await ask(60, (dialect, index) => dialect.redeem(voucher, 1, `sale-${index}`));
    assert.deepEqual(countCodes(answers), { '00': 25, '42': 35 });
    assert.equal(await one.balanceOf(voucher), 0);
    await one.reconciles();
  });

  test('accept one of two different requests under the same reference', async (t) => {
    const { one, ask } = await open(t);
    const [voucher, other] = await one.vouchers(2);
    const answers = await ask(40, (dialect, index) =>
      dialect.redeem(either([voucher, other], Math.floor(index / 4)), 5, 'x'),
    );
    assert.deepEqual(countCodes(answers), { '00': 20, '94': 20 });
    assert.equal((await one.balanceOf(voucher)) + (await one.balanceOf(other)), 45);
    await one.reconciles();
  });

  test('update a redemption once, and return the first update to all other requests', async (t) => {
    const { one, ask } = await open(t);
    const voucher = await one.voucher(25);
    await one.done(A.redeem(voucher, 10, 'sale'));
    const answers = await ask(40, (_, index) => update('sale', index % 3));
    const first = answers.filter(({ statusCode }) => statusCode === '00');
    assert.equal(first.length, 1);
    for (const { statusCode, status, data } of answers) {
      if (statusCode !== '00') assert.deepEqual([statusCode, status], ['58', 400]);
      assert.deepEqual(data, first[0]?.data);
    }
    assert.equal(await one.balanceOf(voucher), 25 - first[0]?.data.summary.newAmount);
    await one.reconciles();
  });

  test('activate a voucher once, and debit the float once', async (t) => {
    const { one, ask } = await open(t, { float: 6_000_00n });
    const [voucher, other] = await one.vouchers(2, null);
    bookedOnce(await ask(40, (dialect) => dialect.activate(voucher, 'activation')));
    await one.refused(A, '50', A.activate(other, 'too much'));
    await one.reconciles();
  });

  test('report a used reference before a float that its first use has emptied', async (t) => {
    const { one, tills } = await open(t, { float: 6_000_00n });
    const vouchers = await one.vouchers(2, null);
    const owner = await ownerOf(t, one.testService.url);
    // Both look the reference up before either of them gets the lock of the float.
    await owner.query(sql`begin`);
    await owner.query(sql`select from scrip.floats for update`);
    const pending = tills.map((till, at) => till.ask(A.activate(vouchers[at] as Voucher, 'x')));
    let answered = 0;
    for (const answer of pending) void answer.finally(() => answered++);
    await waitForLocks(one.testService.url, 2, () => answered > 0);
    await owner.query(sql`commit`);
    const codes = (await Promise.all(pending)).map(({ statusCode }) => statusCode);
    assert.deepEqual(codes.sort(), ['00', '94']);
    await one.reconciles();
  });

  test('see a concurrent update or top-up either completely or not at all', async (t) => {
    const { one, tills } = await open(t, { float: 10_000n });
    const [, other] = tills;
    const { service } = one.testService;
    for (let round = 0; round < 20; round++) {
      const voucher = await one.voucher(5);
      const inactive = await one.voucher(null);
      await one.done(A.redeem(voucher, 5, `all-${round}`));
      const [redeemed, activated] = await Promise.all([
        other.ask(A.redeem(voucher, 5, `again-${round}`)),
        other.ask(A.activate(inactive, `activation-${round}`)),
        one.done(update(`all-${round}`, 0)),
        topUp(asOperator(service), { merchantId: one.merchant.id, currency: 'USD', amountMinor: 500_000n }),
      ]);
      assert.ok(['00', '42'].includes(redeemed.statusCode), redeemed.statusCode);
      assert.ok(['00', '50'].includes(activated.statusCode), activated.statusCode);
    }
    await one.reconciles();
  });

  test('generate one batch for twenty copies of a request, and none beyond the float', async (t) => {
    const { one, ask } = await open(t, { float: 100_00n });
    const copies = await ask(20, (dialect) => dialect.generate('batch', 2, 10));
    bookedOnce(copies);
    for (const { data } of copies) assert.deepEqual(data, copies[0]?.data);
    const others = await ask(20, (dialect, index) => dialect.generate(`batch-${index}`, 2, 10));
    assert.deepEqual(countCodes(others), { '00': 4, '50': 16 });
    await one.reconciles();
  });
});
