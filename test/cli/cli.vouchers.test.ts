import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { Context } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { fileOf, folderOf } from '../support/folder.ts';
import { type Made, makeVouchers, Operator } from '../support/operator.ts';

const operator = Operator.ofTests();

describe('scrip voucher', () => {
  let context: Context;
  let merchantId: string;
  before(async () => {
    const merchant = await operator.json`merchant create --name Vouchers --float 10000`;
    merchantId = merchant.id;
    context = await operator.enter(merchant);
  });

  test('show masks the code and shows no PIN', async () => {
    const [{ serialNumber, code, pin }] = (await makeVouchers(context, 'shown', 1)) as [Made];
    await redeem(context, { code, pin, amount: 12, reference: 'shown-sale' });
    const { status, out } = await operator.run`voucher show ${serialNumber}`;
    assert.equal(status, 0);
    assert.ok(!out.includes(code));
    // By chance the digits of a PIN are also in an ID, a time, the serial number or the masked code.
    const varying = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d [\d:]{8}|\d{4}\*{4}\d{4}/g;
    const told = out.replaceAll(String(serialNumber), '').replaceAll(varying, '');
    assert.ok(told.includes('18.00 USD') && !told.includes(pin), told);
    const shown = await operator.json`voucher show ${serialNumber}`;
    assert.equal(shown.voucherCode, `${code.slice(0, 4)}****${code.slice(8)}`);
    assert.deepEqual(
      [shown.serialNumber, shown.state, shown.balance, shown.value, shown.merchantId, shown.batchReference],
      [String(serialNumber), 'ACTIVE', 18, 30, merchantId, 'shown'],
    );
    assert.deepEqual(
      shown.timeline.map(({ what, amount }: { what: string; amount: number }) => [what, amount]),
      [
        ['REDEMPTION', -12],
        ['ACTIVATION', 30],
      ],
    );
    assert.ok(!JSON.stringify(shown).includes(code));
  });

  test('bulk ends with status 1 if a voucher was not changed', async (t) => {
    const [{ serialNumber }] = (await makeVouchers(context, 'many', 1)) as [Made];
    const file = join(folderOf(t), 'serials');
    const block = ['voucher', 'bulk', 'block', '--serials', file, '--json'];
    await writeFile(file, `${serialNumber}\n`);
    assert.equal((await operator.run(...block)).status, 0);
    await writeFile(file, `${serialNumber}\n999999\n`);
    const { status, out } = await operator.run(...block);
    const { state, total, done, failed } = JSON.parse(out);
    assert.deepEqual([status, state, total, done, failed], [1, 'COMPLETED', 2, 2, 1]);
  });
});

test('a list of vouchers that is refused names the line of the first wrong one', async (t) => {
  const told = async (content: string | Buffer) => {
    const file = await fileOf(t, 'serials', content);
    return (await operator.run('voucher', 'bulk', 'block', '--serials', file)).err;
  };
  const wrong = (line: number) =>
    `scrip: --serials: line ${line} has the wrong form: it is written like 10000000064\n`;
  assert.equal(await told('\ufeff10000000064\r\n\r\nabc\r\n1,2\r\n'), wrong(3));
  assert.equal(await told('serialNumber\n10000000064\n'), wrong(1));
  const noText = 'scrip: --serials is no text in UTF-8: save the file in UTF-8\n';
  assert.equal(await told('10000000064\0\n'), noText);
  assert.equal(await told(Buffer.from('\ufeff10000000064\n', 'utf16le')), noText);
  assert.equal(await told('\n'), 'scrip: --serials must not be empty\n');
  const folder = folderOf(t);
  const { err } = await operator.run('voucher', 'bulk', 'block', '--serials', folder);
  assert.equal(err, `scrip: ${folder} cannot be used: it is a folder: name a file\n`);
});

describe('scrip reconcile', () => {
  test('ends with status 0 if the books agree, and with status 1 if they differ', async () => {
    const good = await operator.json('reconcile');
    assert.equal(good.ok, true);
    assert.ok(good.checks.every((check: { ok: boolean }) => check.ok));
    const owner = await openOwner(operator.testService.url);
    try {
      await owner.query(sql`update scrip.floats set balance_minor = balance_minor + 1`);
      const { status, out, err } = await operator.run`reconcile --json`;
      assert.equal(status, 1);
      assert.equal(err, '');
      const bad = JSON.parse(out);
      assert.equal(bad.ok, false);
      assert.deepEqual(
        bad.checks.filter(({ ok }: { ok: boolean }) => !ok).map(({ name }: { name: string }) => name),
        ['float-balances', 'totals'],
      );
      assert.equal((await operator.run('reconcile')).status, 1);
    } finally {
      await owner.query(sql`update scrip.floats set balance_minor = balance_minor - 1`);
      await owner.close();
    }
  });
});
