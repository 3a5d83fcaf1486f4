import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { A, B, DIALECTS, type Dialect, update } from '../support/dialects.ts';
import { pick, type Till, tillsOfOneService } from '../support/till.ts';

const openTill = tillsOfOneService();

type Listed = Record<string, unknown>;

/** Makes an activation, a redemption, one that is updated, and one that is reversed. */
async function makeHistory(till: Till, dialect: Dialect): Promise<void> {
  const voucher = await till.voucher(null);
  await till.done(dialect.activate(voucher, 'activation'));
  for (const [index, reference] of ['kept', 'changed', 'reversed'].entries())
    await till.done(dialect.redeem(voucher, 10 + index, reference));
  await till.done(update('changed', 5));
  await till.done(update('reversed', 0));
}

for (const dialect of DIALECTS) {
  describe(`the list of ${dialect.name}`, () => {
    test('shows an update of a redemption completely or not at all', async () => {
      const till = await openTill();
      const voucher = await till.voucher(100);
      const references = Array.from({ length: 16 }, (_, index) => `sale-${index}`);
      for (const reference of references) await till.done(dialect.redeem(voucher, 2, reference));
      let isDone = false;
      const updates = (async () => {
        for (const reference of references) await till.done(update(reference, 1));
      })().finally(() => {
        isDone = true;
      });
      const lists = Array.from({ length: 4 }, async () => {
        while (!isDone) {
          const { data } = await till.done(dialect.list());
          const shown = new Map(
            data.map((each: Listed) => [each['reference'], each['refundStatus'] ?? null]),
          );
          for (const reference of references) {
            const all = [reference, `CANCEL-${reference}`, `NEW-${reference}`];
            const found = all.filter((each) => shown.has(each));
            const before = found.join() === reference && shown.get(reference) === null;
            const after = dialect === A ? found.length === 3 : found.join() === `NEW-${reference}`;
            assert.ok(before || (after && shown.get(reference) !== null), `${reference}: ${found}`);
          }
        }
      });
      await Promise.all([updates, ...lists]);
    });

    test('masks every code', async () => {
      const till = await openTill();
      await makeHistory(till, dialect);
      for (const { voucherCode } of (await till.done(dialect.list())).data)
        assert.match(voucherCode, /^\d{4}\*{4}\d{4}$/);
    });
  });
}

test('variant A lists transactions of every kind, with refundStatus and note', async () => {
  const till = await openTill();
  await makeHistory(till, A);
  const { data } = await till.done(A.list());
  assert.deepEqual(pick(data, 'transactionType', 'amount', 'reference', 'refundStatus').sort(), [
    ['ACTIVATION', 5000, 'activation', null],
    ['REDEMPTION', 10, 'kept', null],
    ['REDEMPTION', 11, 'changed', 'CANCELLED'],
    ['REDEMPTION', 12, 'reversed', 'CANCELLED'],
    ['REDEMPTION', 5, 'NEW-changed', 'NEW'],
    ['REDEMPTION_REVERSAL', -11, 'CANCEL-changed', null],
    ['REDEMPTION_REVERSAL', -12, 'CANCEL-reversed', null],
  ]);
  assert.equal(data[0].reference, 'CANCEL-reversed');
  for (const { note, reference } of data)
    assert.equal(note === null, ['activation', 'kept'].includes(reference));
});

test('variant B lists activations and the redemptions in force', async () => {
  const till = await openTill();
  await makeHistory(till, B);
  const { data } = await till.done(B.list());
  assert.deepEqual(pick(data, 'transactionType', 'amount', 'reference'), [
    ['REDEMPTION', 5, 'NEW-changed'],
    ['REDEMPTION', 10, 'kept'],
    ['ACTIVATION', 5000, 'activation'],
  ]);
  for (const each of data) assert.ok(!('refundStatus' in each) && !('note' in each));
});
