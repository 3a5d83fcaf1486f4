import assert from 'node:assert/strict';
import { userInfo } from 'node:os';
import { describe, test } from 'node:test';
import { listAudit } from '../../src/audit/entries.ts';
import { exportBatch, listExports } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { asOperator } from '../support/harness.ts';
import { Operator, vouchersOf } from '../support/operator.ts';

const operator = Operator.ofTests();
const EXPIRY = new Date('2099-12-31T23:59:59.999Z');

async function merchant(name: string): Promise<Context> {
  return operator.enter(await operator.json`merchant create --name ${name} --float 10000`);
}

async function make(context: Context, reference: string, quantity: number, value: number | undefined = 25) {
  const { batch } = await generate(context, { reference, quantity, value, expiryDate: EXPIRY });
  return { batch, vouchers: batch.status === 'COMPLETED' ? await vouchersOf(context, reference) : [] };
}

describe('the record of exports', () => {
  test('is returned with the batch', async () => {
    const { batch } = await make(await merchant('Told'), 'told', 3);
    const shown = () => operator.json`batch show ${batch.transactionId}`;
    assert.deepEqual([(await shown()).exports, (await shown()).lastExport], [0, null]);
    await operator.run`batch export ${batch.transactionId} --format csv`;
    await operator.run`batch export ${batch.transactionId} --format csv --by Ann --reason again`;
    const exports = await operator.json`batch exports ${batch.transactionId}`;
    const facts = exports.map(({ format, by, reason, vouchers, state }: Record<string, unknown>) => [
      format,
      by,
      reason,
      vouchers,
      state,
    ]);
    assert.deepEqual(facts, [
      ['csv', 'Ann', 'again', 3, 'complete'],
      ['csv', userInfo().username, null, 3, 'complete'],
    ]);
    assert.deepEqual([(await shown()).exports, (await shown()).lastExport], [2, exports[0].begunAt]);
    assert.match((await operator.run`batch exports ${batch.transactionId}`).out, /again/);
    const audited = await listAudit(operator.testService.service.db, `batch ${batch.transactionId}`, 10);
    assert.deepEqual(
      audited.map(({ action, actor, reason, after }) => [action, actor, reason, after]),
      exports.map(({ id, by, reason }: Record<string, unknown>) => [
        'batch.export',
        by,
        reason,
        { export: Number(id), format: 'csv', vouchers: 3 },
      ]),
    );
  });

  test('is written before the first voucher is read, and shows that an export was aborted', async () => {
    const { service } = operator.testService;
    const { batch } = await make(await merchant('Cut off'), 'cut off', 4);
    const ann = asOperator(service, 'Ann');
    const cut = exportBatch(ann, batch, 'csv', async (vouchers) => {
      const [begun] = await listExports(service.db, batch.id);
      assert.deepEqual([begun?.state, begun?.vouchers, begun?.endedAt], ['begun', 4, null]);
      for await (const page of vouchers) assert.equal(page.length, 4);
      throw new Error('the disk is full');
    });
    await assert.rejects(cut, /the disk is full/);
    const [aborted] = await listExports(service.db, batch.id);
    assert.deepEqual([aborted?.state, aborted?.vouchers, aborted?.by], ['aborted', 4, 'Ann']);
  });

  test('cannot be changed or deleted by the service', async () => {
    const { db } = operator.testService.service;
    for (const statement of [
      sql`update batch_exports set exported_by = 'nobody'`,
      sql`delete from batch_exports`,
      sql`update batch_export_ends set complete = true`,
      sql`delete from batch_export_ends`,
      sql`truncate batch_export_ends, batch_exports`,
    ])
      await assert.rejects(db.query(statement), { code: '42501' });
  });
});
