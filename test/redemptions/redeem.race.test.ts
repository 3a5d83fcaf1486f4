import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { type ApiRequest, DIALECTS, type Dialect, update, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';
import { Till } from '../support/till.ts';

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at));
const either = <T>(all: readonly T[], index: number): T => all[index % all.length] as T;
/** Repeats a request while the service is overloaded, as a client does. */
async function patiently(till: Till, request: ApiRequest) {
  for (;;) {
    const answer = await till.ask(request);
    if (answer.statusCode !== '91') return answer;
  }
}

describe('two processes at the same time', () => {
  test('book sixty copies of a redemption once, and give all of them the same answer', async (t) => {
    const one = await Till.open(t);
    const tills = [one, await one.elsewhere(t)];
    const voucher = await one.voucher(25);
    const answers = await Promise.all(
      times(60, (index) => {
        const dialect = either(DIALECTS, Math.floor(index / 2)) as Dialect;
        return either(tills, index).done(dialect.redeem(voucher, 25, 'sale'));
      }),
    );
    assert.equal(new Set(answers.map(({ data }) => data.transactionId)).size, 1);
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    assert.equal(await one.balanceOf(voucher), 0);
    await one.reconciles();
  });

  test('never spend more than a voucher holds', async (t) => {
    const one = await Till.open(t);
    const tills = [one, await one.elsewhere(t)];
    const voucher = await one.voucher(25);
    const answers = await Promise.all(
      times(60, (index) =>
        either(tills, index).ask(either(DIALECTS, Math.floor(index / 2)).redeem(voucher, 1, `sale-${index}`)),
      ),
    );
    const codes = answers.map(({ statusCode }) => statusCode);
    assert.equal(codes.filter((code) => code === '00').length, 25);
    assert.equal(codes.filter((code) => code === '42').length, 35);
    assert.equal(await one.balanceOf(voucher), 0);
    await one.reconciles();
  });

  test('accept one of two different requests under the same reference', async (t) => {
    const one = await Till.open(t);
    const tills = [one, await one.elsewhere(t)];
    const [voucher, other] = await one.vouchers(2);
    const answers = await Promise.all(
      times(40, (index) =>
        either(tills, index).ask(
          either(DIALECTS, index).redeem(either([voucher, voucher, other, other], index), 5, 'x'),
        ),
      ),
    );
    const codes = answers.map(({ statusCode }) => statusCode);
    assert.equal(codes.filter((code) => code === '00').length, 20);
    assert.equal(codes.filter((code) => code === '94').length, 20);
    assert.equal((await one.balanceOf(voucher)) + (await one.balanceOf(other)), 45);
    await one.reconciles();
  });

  test('update a redemption once, and return the first update to all other requests', async (t) => {
    const one = await Till.open(t);
    const tills = [one, await one.elsewhere(t)];
    const voucher = await one.voucher(25);
    await one.done((DIALECTS[0] as Dialect).redeem(voucher, 10, 'sale'));
    const answers = await Promise.all(
      times(40, (index) => either(tills, index).ask(update('sale', index % 3))),
    );
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
    const one = await Till.open(t, { float: 6_000_00n });
    const tills = [one, await one.elsewhere(t)];
    const [voucher, other] = await one.vouchers(2, null);
    const answers = await Promise.all(
      times(40, (index) =>
        either(tills, index).done(either(DIALECTS, Math.floor(index / 2)).activate(voucher, 'activation')),
      ),
    );
    assert.equal(new Set(answers.map(({ data }) => data.transactionId)).size, 1);
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    await one.refused(DIALECTS[0] as Dialect, '50', (DIALECTS[0] as Dialect).activate(other, 'too much'));
    await one.reconciles();
  });

  test('report a used reference before a float that its first use has emptied', async (t) => {
    const one = await Till.open(t, { float: 6_000_00n });
    const tills = [one, await one.elsewhere(t)] as const;
    const [dialect] = DIALECTS as [Dialect];
    const vouchers = await one.vouchers(2, null);
    const owner = await ownerOf(t, one.testService.url);
    // Both look the reference up before either of them gets the lock of the float.
    await owner.query(sql`begin`);
    await owner.query(sql`select from scrip.floats for update`);
    const pending = tills.map((till, at) => till.ask(dialect.activate(vouchers[at] as Voucher, 'x')));
    let answered = 0;
    for (const answer of pending) void answer.finally(() => answered++);
    await waitForLocks(one.testService.url, 2, () => answered > 0);
    await owner.query(sql`commit`);
    const codes = (await Promise.all(pending)).map(({ statusCode }) => statusCode);
    assert.deepEqual(codes.sort(), ['00', '94']);
    await one.reconciles();
  });

  test('see a concurrent update or top-up either completely or not at all', async (t) => {
    const one = await Till.open(t, { float: 10_000n });
    const other = await one.elsewhere(t);
    const { service } = one.testService;
    const [dialect] = DIALECTS as [Dialect];
    for (let round = 0; round < 20; round++) {
      const voucher = await one.voucher(5);
      const inactive = await one.voucher(null);
      await one.done(dialect.redeem(voucher, 5, `all-${round}`));
      const [redeemed, activated] = await Promise.all([
        other.ask(dialect.redeem(voucher, 5, `again-${round}`)),
        other.ask(dialect.activate(inactive, `activation-${round}`)),
        one.done(update(`all-${round}`, 0)),
        topUp(asOperator(service), { merchantId: one.merchant.id, currency: 'USD', amountMinor: 500_000n }),
      ]);
      assert.ok(['00', '42'].includes(redeemed.statusCode), redeemed.statusCode);
      assert.ok(['00', '50'].includes(activated.statusCode), activated.statusCode);
    }
    await one.reconciles();
  });

  test('generate one batch for twenty copies of a request, and none beyond the float', async (t) => {
    const one = await Till.open(t, { float: 100_00n });
    const tills = [one, await one.elsewhere(t)];
    const copies = await Promise.all(
      times(20, (index) => either(tills, index).done((DIALECTS[0] as Dialect).generate('batch', 2, 10))),
    );
    assert.equal(new Set(copies.map(({ data }) => data.transactionId)).size, 1);
    for (const { data } of copies) assert.deepEqual(data, copies[0]?.data);
    const others = await Promise.all(
      times(20, (index) =>
        patiently(either(tills, index), either(DIALECTS, index).generate(`batch-${index}`, 2, 10)),
      ),
    );
    const codes = others.map(({ statusCode }) => statusCode);
    assert.equal(codes.filter((code) => code === '00').length, 4);
    assert.equal(codes.filter((code) => code === '50').length, 16);
    await one.reconciles();
  });
});
