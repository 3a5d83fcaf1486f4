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
import { TAMPERINGS } from './tamperings.ts';

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

const text = (statement: string): Sql => ({ text: statement, values: [] });

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
