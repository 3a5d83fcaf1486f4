import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { voidBatch } from '../src/batches/cancel.ts';
import { findBatch } from '../src/batches/download.ts';
import type { Context } from '../src/context.ts';
import { type Database, openOwner } from '../src/db/pool.ts';
import { type Sql, sql } from '../src/db/sql.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { busyDay } from './busy-day.ts';
import { startTestService, type TestService } from './harness.ts';
import { TAMPERINGS } from './tamperings.ts';

let testService: TestService;
let owner: Awaited<ReturnType<typeof openOwner>>;
let context: Context;

const names = async (db: Pick<Database, 'transaction'> = testService.service.db) => {
  const { ok, checks } = await reconcile(db);
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
    test(what, async () => assert.deepEqual(await tampered(statement), red));
  }

  test('nothing any more, once all of that is undone', async () => assert.deepEqual(await names(), []));
});

/** Tampers and reconciles in one transaction, which is then undone: the books stay as they were. */
async function tampered(statement: string): Promise<string[]> {
  const within = { query: owner.query, copyIn: () => assert.fail('nothing is copied in') };
  await owner.query(sql`begin isolation level repeatable read`);
  try {
    await owner.query(text(statement));
    return await names({ transaction: (run) => run(within) });
  } finally {
    await owner.query(sql`rollback`);
  }
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
