import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancelBatch, voidBatch } from '../../src/batches/cancel.ts';
import { listVouchers } from '../../src/batches/export.ts';
import { BATCH_JOBS, fillBatch } from '../../src/batches/fill.ts';
import { sql } from '../../src/db/sql.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { A, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';
import { Till } from '../support/till.ts';

const B = '/api/v2';

/** Runs statements as the owner of the schema, beyond the rights of the service. */
async function tamper(url: string, text: string): Promise<void> {
  await asOwner(url, text);
}

const fill = (till: Till, id: number) => fillBatch(till.testService.service, id, () => false);

async function vouchersOf(till: Till, reference: string): Promise<Voucher[]> {
  const { data } = await till.done(A.download(reference));
  assert.equal(data.status, 'COMPLETED');
  return data.vouchers;
}

describe('a batch produced in the background', () => {
  test('can be without a value, which is given at activation', async (t) => {
    const till = await Till.open(t);
    const body = { reference: 'batch', quantity: 700, value: null };
    await till.done({ method: 'POST', path: `${B}/vouchers`, body });
    await fill(till, 1);
    const [first] = (await vouchersOf(till, 'batch')) as [Voucher];
    const activation = { serialNumber: first.serialNumber, reference: 'activation', value: 40 };
    await till.done({ method: 'POST', path: `${B}/activate`, body: activation });
    assert.equal(await till.balanceOf(first), 40);
    await till.reconciles();
  });

  test('is read by an index and never sorted, even before its table is analyzed', async (t) => {
    const till = await Till.open(t);
    await till.done(A.generate('batch', 5_000, 1));
    await fill(till, 1);
    const { service } = till.testService;
    const { text, values } = listVouchers(1, 0n, 250);
    const plan = await service.db.query<{ 'QUERY PLAN': string }>({ text: `explain ${text}`, values });
    const lines = plan.map((row) => row['QUERY PLAN']);
    assert.match(lines.join('\n'), /Index Scan using vouchers_(by_batch|pkey)/);
    assert.deepEqual(
      lines.filter((line) => /Sort|Bitmap|Seq Scan/.test(line)),
      [],
    );
  });

  test('draws another code if a code exists already', async (t) => {
    const till = await Till.open(t);
    await till.vouchers(1);
    // Codes are random: the database replaces the first code of two calls by that of an earlier voucher.
    await tamper(
      till.testService.url,
      `set search_path to scrip;
      create sequence calls; grant usage, select on sequence calls to scrip_service;
      alter function create_vouchers rename to create_free_vouchers;
      create function create_vouchers(p_batch integer, p_buckets integer[], p_serials bigint[],
        p_code_keys uuid[], p_pin_keys uuid[], p_sealed bytea[], p_entry_ids uuid[], p_now timestamptz)
      returns integer language plpgsql security definer set search_path = scrip as $$ begin
        if nextval('calls') <= 2 then
          p_code_keys[1] := (select code_key from vouchers order by serial_number limit 1);
        end if;
        return create_free_vouchers(p_batch, p_buckets, p_serials, p_code_keys, p_pin_keys, p_sealed,
          p_entry_ids, p_now);
      end $$`,
    );
    await till.done(A.generate('batch', 700, 1));
    await fill(till, 2);
    const vouchers = await vouchersOf(till, 'batch');
    assert.equal(new Set(vouchers.map(({ code }) => code)).size, 700);
    for (const voucher of vouchers.slice(250, 350)) assert.equal(await till.balanceOf(voucher), 1);
    // All but one of the chunk; none; the last one.
    const calls = await till.testService.service.db.query(sql`select last_value as calls from calls`);
    assert.deepEqual(calls, [{ calls: 3n }]);
    await till.reconciles();
  });
});

describe('several batches at a time', () => {
  test('share the worker: a small batch is complete while a large one is in process', async (t) => {
    const till = await Till.open(t, { float: 1_000_000_00n });
    const { service } = till.testService;
    await tamper(till.testService.url, 'update scrip.products set max_quantity = 5000000');
    await till.done(A.generate('large', 1_000_000, 0.01));
    const worker = startJobs(service, [BATCH_JOBS]);
    try {
      const begun = sql`select from batches where produced > 0`;
      while ((await service.db.query(begun)).length === 0) await sleep(20);
      await till.done(A.generate('small', 50, 0.01));
      let small = (await till.done(A.download('small'))).data;
      for (; small.status === 'PROCESSING'; small = (await till.done(A.download('small'))).data)
        await sleep(20);
      assert.deepEqual([small.status, small.vouchers.length], ['COMPLETED', 50]);
      const large = (await till.done(A.download('large'))).data;
      assert.equal(large.status, 'PROCESSING');
      assert.equal((await cancelBatch(asOperator(service), large.transactionId))?.status, 'CANCELED');
    } finally {
      await worker.stop();
    }
    await till.reconciles();
  });
});

/** Batches of one chunk, which is the last one: a small one, and one large enough for the thread. */
const QUANTITIES = [12, 300];
const RACES = 40;

describe('a cancellation that races with the last chunk', () => {
  for (const quantity of QUANTITIES) {
    test(`leaves a batch of ${quantity} either complete, or canceled with its cost returned`, async (t) => {
      const till = await Till.open(t, { float: 1_000_00n });
      const { service } = till.testService;
      const seen = { COMPLETED: 0, CANCELED: 0, PROCESSING: 0 };
      let spentMinor = 0;
      for (let race = 1; race <= RACES; race++) {
        const { data } = await till.done(A.generate(`race ${race}`, quantity, 0.01));
        const chunk = fill(till, race);
        // In both orders, and at moments between.
        if (race > 2) await sleep((race % 20) * (quantity > 100 ? 2 : 0.5));
        else if (race === 2) await chunk;
        const canceled = await cancelBatch(asOperator(service), data.transactionId);
        await chunk;
        const now = (await till.done(A.download(`race ${race}`))).data;
        assert.equal(now.status, canceled?.status);
        assert.equal(now.vouchers?.length, now.status === 'COMPLETED' ? quantity : undefined);
        seen[now.status as keyof typeof seen]++;
        if (now.status === 'COMPLETED') spentMinor += quantity;
        else await voidBatch(service, race);
      }
      assert.equal(seen.PROCESSING, 0);
      assert.ok(seen.COMPLETED > 0 && seen.CANCELED > 0, JSON.stringify(seen));
      const floats = await service.db.query(sql`select balance_minor from floats`);
      assert.deepEqual(floats, [{ balance_minor: 1_000_00n - BigInt(spentMinor) }]);
      await till.reconciles();
    });
  }
});
