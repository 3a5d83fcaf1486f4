import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancelBatch, voidBatch } from '../../src/batches/cancel.ts';
import { BATCH_JOBS, fillBatch } from '../../src/batches/fill.ts';
import { sql } from '../../src/db/sql.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { listFloats } from '../../src/merchants/merchants.ts';
import { A, B, DIALECTS, type Dialect, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { ownerOf } from '../support/owner.ts';
import { Till } from '../support/till.ts';

/** Polls a batch until it ends: usually for a second, and for a minute if it never ends. */
const LOOKS_MAX = 3_000;

async function ended(till: Till, dialect: Dialect, reference: string) {
  for (let look = 0; look < LOOKS_MAX; look++) {
    const { data } = await till.done(dialect.download(reference));
    if (data.status !== 'PROCESSING') return data;
    assert.equal('vouchers' in data, false);
    await sleep(20);
  }
  return assert.fail(`the batch ${reference} does not end`);
}

/** Runs a worker at each till while `run` runs. */
async function working(tills: readonly Till[], run: () => Promise<void>): Promise<void> {
  const workers = tills.map(({ testService }) => startJobs(testService.service, [BATCH_JOBS]));
  try {
    await run();
  } finally {
    // Before the test drops the database: a worker would wait for it to come back.
    await Promise.all(workers.map((worker) => worker.stop()));
  }
}

for (const dialect of DIALECTS) {
  describe(`a batch of more than ten by ${dialect.name}`, () => {
    test('is accepted, paid for, and produced in the background by two workers', async (t) => {
      const till = await Till.open(t, { float: 50_11n });
      const second = await till.elsewhere(t);
      const accepted = await till.done(dialect.generate('eleven', 11, 0.01));
      assert.deepEqual([accepted.data.status, 'vouchers' in accepted.data], ['PROCESSING', false]);
      const large = await till.done(dialect.generate('large', 5_000, 0.01));
      await till.refused(dialect, '50', dialect.generate('more', 1, 0.01));
      await working([till, second], async () => {
        for (const [reference, quantity, { transactionId }] of [
          ['eleven', 11, accepted.data],
          ['large', 5_000, large.data],
        ] as const) {
          const data = await ended(till, dialect, reference);
          assert.deepEqual([data.status, data.transactionId], ['COMPLETED', transactionId]);
          const vouchers = data.vouchers as Voucher[];
          assert.equal(vouchers.length, quantity);
          for (const { code, pin } of vouchers) assert.match(code + pin, /^[1-9]\d{15}$/);
          assert.equal(new Set(vouchers.map(({ code }) => code)).size, quantity);
          assert.equal(new Set(vouchers.map(({ serialNumber }) => serialNumber)).size, quantity);
          await till.done(dialect.redeem(vouchers[quantity - 1] as Voucher, 0.01, `sale of ${reference}`));
        }
      });
      const again = await till.done(dialect.generate('eleven', 11, 0.01));
      assert.deepEqual(
        [again.replayed, again.data.status, again.data.vouchers.length],
        [true, 'COMPLETED', 11],
      );
      await till.reconciles();
    });
  });
}

describe('canceling a batch', () => {
  test('returns its cost to the float, and hides its vouchers', async (t) => {
    const till = await Till.open(t, { float: 50_00n });
    const { service } = till.testService;
    const { data } = await till.done(A.generate('batch', 5_000, 0.01));
    await fillBatch(service, 1, () => true);
    assert.equal((await cancelBatch(asOperator(service), data.transactionId))?.status, 'CANCELED');
    for (const dialect of DIALECTS) {
      const now = (await till.done(dialect.download('batch'))).data;
      assert.deepEqual([now.status, 'vouchers' in now], ['CANCELED', false]);
      assert.equal(now.transactionId, data.transactionId);
    }
    await till.reconciles();
    // The cost can be spent again while the vouchers are still being voided.
    await till.done(A.generate('next', 1, 50));
    await working([till], () => voidBatch(service, 1));
    await till.reconciles();
    assert.equal((await till.done(A.download('batch'))).data.status, 'CANCELED');
  });

  test('returns the cost of vouchers that were not active yet', async (t) => {
    const issuer = await Till.open(t);
    const { service } = issuer.testService;
    await issuer.product('LATER', { activation: 'on-activation' });
    const till = await Till.another(issuer.testService, { product: 'LATER', float: 61_00n });
    const { merchant } = till;
    const euros = { merchantId: merchant.id, currency: 'EUR', amountMinor: 7_00n, reference: 'euros' };
    await topUp(asOperator(service), euros);
    const { data } = await till.done(B.generate('batch', 5_000, 0.01));
    // Neither what another batch in production has paid, nor another float, has to do with it.
    await till.done(B.generate('other', 11, 1));
    await fillBatch(service, 1, () => true);
    assert.equal((await cancelBatch(asOperator(service), data.transactionId))?.status, 'CANCELED');
    await voidBatch(service, 1);
    const [row] = await service.db.query<{ open: bigint; closed: bigint }>(
      sql`select count(*) filter (where closed is null) as open, count(closed) as closed from vouchers`,
    );
    assert.ok(row && row.open === 0n && row.closed > 0n);
    await till.done(B.generate('next', 1, 50));
    assert.deepEqual(
      (await listFloats(service.db, merchant.id)).map(({ currency, balance }) => [currency, balance]),
      [
        ['EUR', 7_00n],
        ['USD', 0n],
      ],
    );
    await till.reconciles();
  });

  test('is completed by another worker after the first one died', async (t) => {
    const till = await Till.open(t, { float: 50_00n });
    const { service, url } = till.testService;
    const { data } = await till.done(A.generate('batch', 5_000, 0.01));
    await fillBatch(service, 1, () => true);
    await cancelBatch(asOperator(service), data.transactionId);
    const owner = await ownerOf(t, url);
    const run = <Row>(text: string) => owner.query<Row>({ text, values: [] });
    // The dead worker took its job, and its lease ends soon.
    await run(
      `update scrip.jobs set state = 'RUNNING', leased_until = now() + interval '0.3 s' where task = 'void-batch'`,
    );
    const open = 'select count(*)::int as open from scrip.vouchers where closed is null';
    const [before] = await run<{ open: number }>(open);
    assert.ok(before && before.open > 0);
    await working([till], async () => {
      for (
        let look = 0;
        (await run('select from scrip.batches where voided_at is null')).length > 0;
        look++
      ) {
        assert.ok(look < LOOKS_MAX, 'no worker voids the batch');
        await sleep(20);
      }
    });
    assert.deepEqual(await run<{ open: number }>(open), [{ open: 0 }]);
    await till.reconciles();
  });

  test('has no effect once the batch is complete', async (t) => {
    const till = await Till.open(t);
    const { data } = await till.done(A.generate('batch', 2, 25));
    assert.equal(
      (await cancelBatch(asOperator(till.testService.service), data.transactionId))?.status,
      'COMPLETED',
    );
    assert.equal((await till.done(A.download('batch'))).data.vouchers.length, 2);
  });
});
