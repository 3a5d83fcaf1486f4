import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { listAudit } from '../../src/audit/entries.ts';
import { cancelBatch } from '../../src/batches/cancel.ts';
import { generate } from '../../src/batches/generate.ts';
import type { Context } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { asOperator } from '../support/harness.ts';
import { makeVouchers, Operator, vouchersOf } from '../support/operator.ts';

const operator = Operator.ofTests();

/** Polls before a wait is given up, a minute in all. */
const LOOKS_MAX = 1_200;

/**
 * Interrupts a command once it reads the progress of a batch. The row of the batch is locked until then, so
 * that it is not produced meanwhile.
 */
async function interrupt(child: ChildProcess, batchId: number): Promise<void> {
  const owner = await openOwner(operator.testService.url);
  try {
    await owner.query(sql`begin`);
    await owner.query(sql`select from scrip.batches where id = ${batchId} for update`);
    const look = sql`
select from pg_stat_activity where datname = current_database() and application_name = 'scrip-command'
  and query like '%where transaction_id = %'`;
    for (let looks = 0; (await owner.query(look)).length === 0; looks++) {
      assert.ok(looks < LOOKS_MAX, 'no command waits');
      await owner.query(sql`select pg_stat_clear_snapshot()`);
      await sleep(50);
    }
    child.kill('SIGINT');
  } finally {
    await owner.close();
  }
}

describe('scrip batch', () => {
  test('shows the percentage of a batch that is produced', async () => {
    const merchant = await operator.json`merchant create --name Percent --float 1000`;
    const { batch } = await generate(await operator.enter(merchant), {
      reference: 'third',
      quantity: 30,
      value: 1,
    });
    const owner = await openOwner(operator.testService.url);
    await owner.query(sql`update scrip.batches set produced = 29 where id = ${batch.id}`);
    assert.equal((await operator.json`batch show ${batch.transactionId}`).percent, 96);
    assert.match((await operator.run`batch show ${batch.transactionId}`).out, /^percent +96$/m);
    // Restored, since the books would differ.
    await owner.query(sql`update scrip.batches set produced = 0 where id = ${batch.id}`);
    await owner.close();
  });
});

describe('scrip batch generate', () => {
  let merchantId: string;
  let context: Context;
  const order = (...args: string[]) => ['batch', 'generate', '--merchant', merchantId, ...args];

  before(async () => {
    const merchant = await operator.json`merchant create --name Orders --float 1000`;
    merchantId = merchant.id;
    context = await operator.enter(merchant);
  });

  test('orders a batch like the merchant itself, and prints no codes', async () => {
    const args = order(
      '--quantity',
      '3',
      '--value',
      '2.50',
      '--expiry',
      '2099-12-31',
      '--reference',
      'three',
    );
    const made = await operator.json(...args);
    const { transactionId, acceptedAt, ...rest } = made;
    assert.ok(Date.parse(acceptedAt) <= Date.now());
    assert.deepEqual(rest, {
      merchantId,
      reference: 'three',
      status: 'COMPLETED',
      quantity: 3,
      produced: 3,
      percent: 100,
      value: 2.5,
      currency: 'USD',
      expiryDate: '2099-12-31T23:59:59.999Z',
      replayed: false,
    });
    assert.deepEqual(await operator.json(...args), { ...made, replayed: true });
    assert.equal((await operator.json`batch show ${transactionId}`).balance, 7.5);
    assert.equal((await vouchersOf(context, 'three')).length, 3);
    // The replay changed nothing, and has no entry in the audit.
    const audited = await listAudit(operator.testService.service.db, `batch ${transactionId}`, 10);
    assert.deepEqual(
      audited.map(({ action, after }) => [action, after?.['quantity'], after?.['value']]),
      [['batch.generate', 3, 'USD 2.50']],
    );
  });

  test('makes a reference if none is given, and prints it', async () => {
    const { status, out } = await operator.run(...order('--quantity', '1', '--value', '1'));
    assert.equal(status, 0);
    const [, reference = ''] = /^reference +(order-\S+)$/m.exec(out) ?? [];
    assert.equal((await vouchersOf(context, reference)).length, 1);
  });

  test('waits for a large batch, and produces it itself if no worker does', async () => {
    const made = await operator.json(...order('--quantity', '2500', '--value', '0.01', '--wait'));
    assert.deepEqual([made.status, made.produced, made.percent], ['COMPLETED', 2_500, 100]);
    assert.equal((await vouchersOf(context, made.reference)).length, 2_500);
  });

  test('fails with the cause if the batch is canceled meanwhile', async () => {
    const { service } = operator.testService;
    for (const [reference, failure, expected] of [
      ['called off', null, /was canceled: by its merchant or an operator$/],
      ['failed', 'no space left', /was canceled: no space left$/],
    ] as const) {
      const { batch } = await generate(context, { reference, quantity: 40, value: 1 });
      await cancelBatch(asOperator(service), batch.transactionId, failure);
      const args = order('--quantity', '40', '--value', '1', '--reference', reference, '--wait', '--json');
      await operator.fails(expected, ...args);
    }
  });

  test('leaves the batch in process when it is interrupted, and reports its progress', async () => {
    const { batch } = await generate(context, { reference: 'interrupted', quantity: 20, value: 1 });
    const args = order('--quantity', '20', '--value', '1', '--reference', 'interrupted', '--wait');
    const { child, ended } = operator.start(...args);
    await interrupt(child, batch.id);
    const { status, out, err } = await ended;
    assert.deepEqual([status, out], [130, '']);
    assert.match(
      err,
      /^scrip: interrupted: batch \S+ \(reference interrupted\) is accepted and at 0 %; [^\n]+\n$/,
    );
    const again = await operator.json(...args);
    assert.deepEqual(
      [again.transactionId, again.status, again.replayed],
      [batch.transactionId, 'COMPLETED', true],
    );
  });

  test('is refused in one line for the same reasons as the merchant', async () => {
    const other = await operator.json`merchant create --name Other`;
    await operator.run`merchant forbid ${other.id} generate`;
    const suspended = await operator.json`merchant create --name Suspended`;
    await operator.run`merchant suspend ${suspended.id}`;
    const one = ['--quantity', '1', '--value', '1'];
    await makeVouchers(context, 'taken', 1);
    const cases: [RegExp, string[]][] = [
      [/Insufficient merchant balance \(50\)/, order('--quantity', '1', '--value', '5000')],
      [
        /Access denied \(03\): .*give it the permission/,
        ['batch', 'generate', '--merchant', other.id, ...one],
      ],
      [/Merchant suspended \(04\)/, ['batch', 'generate', '--merchant', suspended.id, ...one]],
      [/Invalid quantity \(16\): a batch of DEFAULT has up to/, order('--quantity', '100001')],
      [/Reference already used \(94\)/, order(...one, '--reference', 'taken')],
    ];
    for (const [expected, args] of cases) await operator.fails(expected, ...args);
  });
});
