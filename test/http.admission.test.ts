import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIALECTS } from './dialects.ts';
import { Till } from './till.ts';

for (const dialect of DIALECTS) {
  test(`a thousand copies of a redemption at once have one effect and all get its answer, by ${dialect.name}`, async (t) => {
    const till = await Till.open(t);
    const voucher = await till.voucher();
    const copies = Array.from({ length: 1_000 }, () => till.ask(dialect.redeem(voucher, 1, 'sale')));
    const answers = await Promise.all(copies);
    assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))], ['00']);
    assert.equal(new Set(answers.map(({ data }) => data.transactionId)).size, 1);
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    assert.equal(await till.balanceOf(voucher), 24);
  });
}

test('more requests than can be worked on are refused at once, and those accepted are answered', async (t) => {
  const till = await Till.open(t);
  const [dialect] = DIALECTS;
  assert.ok(dialect);
  const vouchers = await till.vouchers(10, 1_000);
  const asked = Array.from({ length: 4_000 }, (_, index) => {
    const voucher = vouchers[index % vouchers.length];
    assert.ok(voucher);
    return till.ask(dialect.redeem(voucher, 1, `sale-${index}`));
  });
  const answers = await Promise.all(asked);
  const accepted = answers.filter(({ statusCode }) => statusCode === '00');
  const refused = answers.filter(({ statusCode }) => statusCode === '91');
  assert.equal(accepted.length + refused.length, answers.length);
  assert.ok(accepted.length > 0);
  for (const { status, headers, body } of refused) {
    assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
    assert.deepEqual(body, { statusCode: '91', message: 'Service unavailable', data: null });
  }
  assert.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, answers.length);
  let left = 0;
  for (const voucher of vouchers) left += await till.balanceOf(voucher);
  assert.equal(left, 10_000 - accepted.length);
  // It is over: nothing holds a place any more.
  await till.done(dialect.redeem(vouchers[0] ?? assert.fail(), 1, 'afterwards'));
});
