import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { exportReplacement, findBatch } from '../../src/batches/export.ts';
import type { Context } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { lockVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { enrolled } from '../support/browser.ts';
import { folderOf } from '../support/folder.ts';
import { asOperator, testService } from '../support/harness.ts';
import { makeVouchers, Operator, vouchersOf } from '../support/operator.ts';
import { ofFile } from '../support/scope.ts';

const operator = Operator.ofTests();
const folder = folderOf(ofFile());
let context: Context;

before(async () => {
  context = await operator.enter(await operator.json`merchant create --name Kiosk --float 10000`);
});

const person = () => asOperator(operator.testService.service, 'Ann');

const exporting = (serial: bigint, name: string, ...more: string[]) => [
  ...['voucher', 'export', String(serial), '--format', 'csv', '--out', join(folder, name)],
  ...more,
];

describe('the export of one replacement', () => {
  test('writes only its code and PIN, once, and shows them nowhere else', async () => {
    const [lost, other] = await makeVouchers(context, 'lost', 2);
    await operator.fails(/was not replaced: name the one/, ...exporting(lost.serialNumber, 'a.csv'));
    const replaced = await operator.run`voucher replace ${lost.serialNumber}`;
    const made = (await vouchersOf(context, 'lost')).find(
      ({ serialNumber }) => serialNumber > other.serialNumber,
    );
    assert.ok(made);

    const first = await operator.run(...exporting(lost.serialNumber, 'a.csv', '--by', 'Ann'));
    assert.equal(first.status, 0, first.err);
    const text = await readFile(join(folder, 'a.csv'), 'utf8');
    assert.ok(text.includes(made.code) && text.includes(made.pin));
    assert.ok(!text.includes(lost.code) && !text.includes(other.code));
    assert.equal((await stat(join(folder, 'a.csv'))).mode & 0o777, 0o600);

    const again = exporting(lost.serialNumber, 'b.csv');
    await operator.fails(/was exported before: --again and --reason/, ...again);
    await operator.fails(/--again needs --reason/, ...again, '--again');
    await operator.fails(/was not replaced/, ...exporting(made.serialNumber, 'b.csv'));
    await operator.fails(/was not replaced/, ...exporting(other.serialNumber, 'b.csv'));
    await operator.fails(/--out needs a file/, ...again.slice(0, -1), '-');
    await assert.rejects(stat(join(folder, 'b.csv')), { code: 'ENOENT' });
    const second = await operator.run`${again} --again --reason ${'printer jammed'} --by Bob`;
    assert.equal(second.status, 0, second.err);
    assert.equal(await readFile(join(folder, 'b.csv'), 'utf8'), text);

    const audited = await operator.testService.service.db.query<{ after: string; all: string }>(
      sql`
        select after, a::text as all from audit a
        where action = 'voucher.export' and subject = ${`voucher ${made.serialNumber}`} order by sequence`,
    );
    const facts = { format: 'csv', replaced: String(lost.serialNumber) };
    assert.deepEqual(
      audited.map((entry) => JSON.parse(entry.after)),
      [
        { ...facts, export: 1, again: false },
        { ...facts, export: 2, again: true },
      ],
    );
    const { transactionId: batch } = await findBatch(context, 'lost');
    const listed = await operator.run`batch exports ${batch} --json`;
    const records = JSON.parse(listed.out) as Record<string, unknown>[];
    assert.deepEqual(
      records.map(({ by, reason, serialNumber, vouchers, state }) => [
        by,
        reason,
        serialNumber,
        vouchers,
        state,
      ]),
      [
        ['Bob', 'printer jammed', String(made.serialNumber), 1, 'complete'],
        ['Ann', null, String(made.serialNumber), 1, 'complete'],
      ],
    );
    assert.equal((await operator.json`batch show ${batch}`).exports, 0);
    const line = (name: string) => `voucher ${made.serialNumber} written to ${join(folder, name)}; recorded`;
    assert.deepEqual(
      [first, second].map(({ out, err }) => [out, err]),
      [
        [`${line('a.csv')} as export 1 by Ann\n`, ''],
        [`${line('b.csv')} as export 2 by Bob\n`, ''],
      ],
    );
    const texts = [replaced.out, replaced.err, listed.out, listed.err, ...audited.map(({ all }) => all)];
    for (const each of texts) assert.ok(!each.includes(made.code), each);
  });

  test('succeeds for one of two concurrent calls, and counts even if its file fails', async () => {
    const [lost] = await makeVouchers(context, 'race', 1);
    const batch = await findBatch(context, 'race');
    const wanted = {
      replaced: lost.serialNumber,
      serialNumber: await replaceVoucher(person(), lost.serialNumber),
      format: 'csv' as const,
      exportsBefore: 0,
    };
    let written = 0;
    const exportNow = () =>
      exportReplacement(person(), batch, wanted, async (pages) => {
        for await (const page of pages) written += page.length;
        throw new Error('the disk is full');
      });
    const { db, buckets } = operator.testService.service;
    let ended = 0;
    const both = await db.transaction(async (tx) => {
      await lockVoucher(tx, buckets.ofSerial(wanted.serialNumber), wanted.serialNumber);
      const exports = [exportNow(), exportNow()].map((each) => each.finally(() => ended++));
      const settled = Promise.allSettled(exports);
      const locking = sql`
        select distinct l.pid from pg_locks l join pg_database d on d.oid = l.database
        where d.datname = current_database() and l.relation = 'vouchers'::regclass and l.mode = 'RowShareLock'`;
      // Both wait for the voucher, which this transaction has locked.
      while ((await db.query(locking)).length < 2) assert.equal(ended, 0);
      return { settled };
    });
    const results = await both.settled;
    assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    assert.equal(written, 1);
    const [record] = await operator.json`batch exports ${batch.transactionId}`;
    assert.deepEqual([record.state, record.vouchers], ['aborted', 1]);
    await operator.fails(/was exported before/, ...exporting(lost.serialNumber, 'race.csv'));

    const later = await replaceVoucher(person(), wanted.serialNumber);
    await operator.fails(/was replaced too/, ...exporting(lost.serialNumber, 'race.csv'));
    await assert.rejects(
      exportReplacement(person(), batch, { ...wanted, exportsBefore: null }, async () => {}),
      {
        code: '44',
      },
    );
    const pdf = join(folder, 'card.pdf');
    const card = await operator.json(
      ...['voucher', 'export', String(wanted.serialNumber), '--format', 'pdf', '--out', pdf],
    );
    assert.deepEqual([card.serialNumber, card.file], [String(later), pdf]);
    assert.match((await readFile(pdf)).toString('latin1'), /^%PDF-/);
  });

  test('needs the approval of another person, or --break-glass', async (t) => {
    const listening = await testService(t);
    const alone = Operator.at(listening, {});
    const made = await alone.json('merchant', 'create', '--name', 'Four eyes', '--float', '100');
    const [lost] = await makeVouchers(await alone.enter(made), 'eyes', 1);
    await enrolled(listening);
    await enrolled(listening, { email: 'bob@example.com' });
    assert.equal((await alone.run('voucher', 'replace', String(lost.serialNumber))).status, 0);
    const wanted = exporting(lost.serialNumber, 'eyes.csv');
    assert.match((await alone.run(...wanted)).err, /approved by another person.*--break-glass/);
    await assert.rejects(stat(join(folder, 'eyes.csv')), { code: 'ENOENT' });
    const { status, err } = await alone.run(...wanted, '--break-glass', '--reason', 'Bob is ill');
    assert.equal(status, 0, err);
    const [entry] = await alone.json('audit', 'break-glass');
    assert.deepEqual([entry.action, entry.reason], ['voucher.export', 'Bob is ill']);
  });
});
