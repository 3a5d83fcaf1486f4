import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { voidBatch } from '../src/batches/cancel.ts';
import { findBatch } from '../src/batches/download.ts';
import type { Context } from '../src/context.ts';
import { openOwner } from '../src/db/pool.ts';
import { type Sql, sql } from '../src/db/sql.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { busyDay } from './busy-day.ts';
import { startTestService, type TestService } from './harness.ts';

let testService: TestService;
let owner: Awaited<ReturnType<typeof openOwner>>;
let context: Context;

const names = async () => {
  const { ok, checks } = await reconcile(testService.service.db);
  const red = checks.filter((check) => !check.ok);
  assert.equal(ok, red.length === 0);
  for (const { differing } of red) assert.ok(differing.length > 0);
  return red.map(({ name }) => name);
};

before(async () => {
  testService = await startTestService();
  owner = await openOwner(testService.url);
  await owner.query(sql`set search_path to scrip`);
  context = await busyDay(testService);
});

after(async () => {
  await owner?.close();
  await testService?.stop();
});

describe('the books of a busy day', () => {
  test('agree, and add up to nothing', async () => {
    const { ok, checks, totals } = await reconcile(testService.service.db);
    assert.deepEqual(
      checks.filter((check) => !check.ok),
      [],
    );
    assert.equal(ok, true);
    assert.ok(checks.every(({ name, checked }) => checked > 0 || assert.fail(`${name} checked nothing`)));
    assert.equal(
      totals.reduce((sum, { balance }) => sum + Math.round(Number(balance) * 100), 0),
      0,
    );
    assert.deepEqual(totals.map(({ kind }) => kind).sort(), ['FLOAT', 'FUNDING', 'RESERVE', 'SETTLEMENT', 'VOUCHER']);
  });

  test('agree at every step of taking a canceled batch back', async () => {
    const batch = await findBatch(context, 'canceled');
    assert.deepEqual(await names(), []);
    await voidBatch(testService.service, batch.id);
    assert.deepEqual(await names(), []);
  });
});

const ONE_VOUCHER = 'select min(serial_number) from vouchers where balance_minor > 100 and closed is null';
const text = (statement: string): Sql => ({ text: statement, values: [] });

/** What somebody with the owner's rights could do, or a defect: each with the checks that see it. */
const TAMPERINGS: readonly (readonly [what: string, statement: string, red: readonly string[]])[] = [
  [
    'a float that holds more',
    `update accounts set balance_minor = balance_minor + 1 where kind = 'FLOAT'`,
    ['float-balances'],
  ],
  [
    'a voucher that holds more',
    `update vouchers set balance_minor = balance_minor + 1 where serial_number = (${ONE_VOUCHER})`,
    ['voucher-balances'],
  ],
  ['a redemption that is gone', `delete from journal where reference = 'sale-3'`, ['voucher-balances']],
  [
    'a redemption of another amount',
    `update journal set amount_minor = amount_minor + 1 where reference = 'sale-3'`,
    ['voucher-balances'],
  ],
  [
    'money on a voucher that does not exist',
    `update journal set credit_account = 999999999999999, serial_number = 999999999999999 where reference = 'activation-1'`,
    ['voucher-balances', 'activations'],
  ],
  [
    'money of another currency',
    `update journal set currency = 'EUR' where reference = 'sale-3'`,
    ['voucher-balances', 'journal-entries'],
  ],
  [
    'a redemption that went to a float',
    `update journal set credit_account = (select id from accounts where kind = 'FLOAT') where reference = 'sale-3'`,
    ['float-balances', 'journal-entries'],
  ],
  [
    'an account that does not exist',
    `update journal set credit_account = 9999999999 where reference = 'sale-3'`,
    ['journal-entries', 'totals'],
  ],
  [
    'a redemption of another voucher than it says',
    `update journal set serial_number = serial_number + 1 where reference = 'sale-3'`,
    ['journal-entries'],
  ],
  [
    'a redemption for another merchant',
    `update journal set merchant_id = merchant_id + 1 where reference = 'sale-3'`,
    ['journal-entries'],
  ],
  [
    'a voucher that was never activated',
    `update vouchers set value_minor = 500, activated_at = now() where activated_at is null and closed is null
      and batch_id = (select id from batches where reference = 'open')`,
    ['activations'],
  ],
  [
    'an active voucher that says it is not',
    `update vouchers set value_minor = null, activated_at = null
      where serial_number = (select serial_number from journal where reference = 'activation-1')`,
    ['activations'],
  ],
  [
    'a voucher activated twice',
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, occurred_at)
      select gen_random_uuid(), kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, occurred_at
      from journal where reference = 'activation-1'`,
    ['float-balances', 'voucher-balances', 'activations'],
  ],
  [
    'another value than was activated',
    `update vouchers set value_minor = value_minor + 1 where serial_number = (${ONE_VOUCHER})`,
    ['activations'],
  ],
  [
    'a replacement with another value',
    `update vouchers set value_minor = value_minor + 1 where serial_number = (select max(replaced_by) from vouchers
      where activated_at is not null)`,
    ['activations'],
  ],
  [
    'an update without its reversal',
    `delete from journal where reference = 'CANCEL-sale-0'`,
    ['voucher-balances', 'redemption-updates'],
  ],
  [
    'an update whose original is gone',
    `delete from journal where reference = 'sale-1'`,
    ['voucher-balances', 'redemption-updates'],
  ],
  [
    'a reversal of another amount',
    `update journal set amount_minor = amount_minor - 1 where reference = 'CANCEL-sale-0'`,
    ['voucher-balances', 'redemption-updates'],
  ],
  [
    'an update under another reference',
    `update journal set reference = 'NEW-other' where reference = 'NEW-sale-0'`,
    ['redemption-updates'],
  ],
  [
    'a reversal of nothing',
    `update journal set original_id = null where reference = 'CANCEL-sale-1'`,
    ['redemption-updates'],
  ],
  [
    'a voucher less than ordered',
    `delete from vouchers where serial_number = (select max(serial_number) from vouchers where activated_at is null
      and closed is null and batch_id = (select id from batches where reference = 'open'))`,
    ['batches'],
  ],
  [
    'a voucher more than ordered',
    `update batches set produced = 2, quantity = 2 where reference = 'open'`,
    ['batches'],
  ],
  ['more said than produced', `update batches set produced = 5 where reference = 'waiting'`, ['batches']],
  [
    'vouchers of no batch',
    `update vouchers set batch_id = 999 where batch_id = (select id from batches where reference = 'open')`,
    ['batches'],
  ],
  [
    'a batch that ended too early',
    `alter table batches drop constraint batches_complete_is_complete;
      update batches set status = 'COMPLETED', ended_at = now() where reference = 'waiting'`,
    ['batches'],
  ],
  [
    'a reservation that is gone',
    `delete from journal where kind = 'RESERVATION' and batch_id = (select id from batches where reference = 'now')`,
    ['float-balances', 'reserves'],
  ],
  [
    'a batch paid back that is in force',
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, batch_id, occurred_at)
      select gen_random_uuid(), 'RELEASE', credit_account, debit_account, amount_minor, currency, merchant_id, batch_id, now()
      from journal where kind = 'RESERVATION' and batch_id = (select id from batches where reference = 'later')`,
    ['float-balances', 'reserves'],
  ],
  [
    'a canceled batch that was not paid back',
    `delete from journal where kind = 'RELEASE'`,
    ['float-balances', 'reserves'],
  ],
  [
    'a batch with the reserve of another one',
    `update batches set reserve_account = (select reserve_account from batches where reference = 'now')
      where reference = 'later'`,
    ['reserves'],
  ],
  [
    'a replaced voucher that is open',
    `update vouchers set closed = null where serial_number = (select min(serial_number) from vouchers where closed = 'REPLACED')`,
    ['batches', 'reserves', 'replacements'],
  ],
  [
    'a voucher replaced by none',
    `update vouchers set replaced_by = null where serial_number = (select min(serial_number) from vouchers where closed = 'REPLACED')`,
    ['activations', 'replacements'],
  ],
];

describe('reconcile sees', () => {
  for (const [what, statement, red] of TAMPERINGS) {
    test(what, async () => {
      await tampered(statement, async (found) => assert.deepEqual(found, red));
    });
  }
});

/** Tampers in a copy of the tables, reconciles, and puts them back as they were. */
async function tampered(statement: string, run: (red: string[]) => Promise<void>): Promise<void> {
  const tables = ['accounts', 'batches', 'vouchers', 'journal'];
  for (const table of tables) await owner.query(text(`create table kept_${table} as table ${table}`));
  try {
    await owner.query(text(statement));
    await run(await names());
  } finally {
    for (const table of tables) {
      await owner.query(
        text(
          `delete from ${table}; insert into ${table} overriding system value table kept_${table}; drop table kept_${table}`,
        ),
      );
    }
  }
  assert.deepEqual(await names(), []);
}

describe("the service's own account", () => {
  for (const statement of [
    'update journal set amount_minor = 1',
    'delete from journal',
    'truncate journal',
    'delete from vouchers',
  ]) {
    test(`may not ${statement}`, async () => {
      await assert.rejects(testService.service.db.query(text(statement)), { code: '42501' });
    });
  }
});
