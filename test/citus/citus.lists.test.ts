import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { openOwner } from '../../src/db/pool.ts';
import { type Sql, sql } from '../../src/db/sql.ts';
import { listLargeBatchActivations, listSmallBatchActivations } from '../../src/ledger/transactions.ts';
import { makeBodies } from '../../src/webhooks/outbox.ts';
import { A } from '../support/dialects.ts';
import { produceAll, startListening } from '../support/harness.ts';
import { LARGE, LISTS } from '../support/lists.ts';
import { Till } from '../support/till.ts';

/**
 * The lists over shards: each shard returns its part of a page by an index. None scans a large table, and
 * none takes many rows to the coordinator, from where they would be sent to the shards again.
 */

/** More than a page; far less than the vouchers of the test, which stand for millions. */
const SUBPLAN_ROWS_MAX = 200;
const VOUCHERS = 400;

/** Lists that read more, each with its bound. */
const BOUNDED: Readonly<Record<string, RegExp>> = {
  'vouchers by state': /^subplan/, // at most SCAN_MAX vouchers
  'vouchers that expire by a time': /^subplan/,
  'vouchers of several batches': /^subplan/,
  'movements of the bank': /^settlements$/, // one for each merchant and period, on the coordinator
  'open movements of the bank': /^settlements$/,
};

let till: Till;
let owner: Awaited<ReturnType<typeof openOwner>>;

before(async () => {
  till = await Till.another(await startListening());
  const { service, url } = till.testService;
  const { data } = await till.done(A.generate('many', VOUCHERS, 5));
  owner = await openOwner(url);
  await owner.query(sql`set search_path = scrip, public`);
  const batch = sql`select id from batches where transaction_id = ${data.transactionId}::uuid`;
  const [row] = await owner.query<{ id: number }>(batch);
  await produceAll(service, row?.id ?? 0);
  const [first] = await till.vouchers(3);
  await till.done(A.redeem(first ?? assert.fail(), 1, 'sale'));
  // In a small table a scan is cheap. A scan in spite of these settings, on each node, has no index.
  await owner.query(sql`set citus.propagate_set_commands = 'local'`);
  await owner.query(sql`begin`);
  await owner.query(sql`set local enable_seqscan = off`);
  await owner.query(sql`set local enable_bitmapscan = off`);
});

after(async () => {
  await owner?.query(sql`rollback`);
  await owner?.close();
  await till?.testService.stop();
});

type Plan = { readonly [key: string]: unknown };

/** Every object of a plan, with those of the shards and the subplans. */
function* objectsOf(plan: unknown): Generator<Plan> {
  if (typeof plan !== 'object' || plan === null) return;
  if (!Array.isArray(plan)) yield plan as Plan;
  for (const each of Object.values(plan)) yield* objectsOf(each);
}

/** The statement of list_transactions, which runs on the coordinator. */
const BODY = /return query\s+(.*?);/s.exec(
  readFileSync(new URL('../../sql/011-transactions.sql', import.meta.url), 'utf8').split(
    'function list_transactions',
  )[1] ?? '',
);
const ownTransactions = (inForce: boolean) => ({
  text: (BODY?.[1] ?? assert.fail()).replace('p_merchant_id', '$1').replace('p_in_force', '$2'),
  values: [1, inForce],
});

const OWN = {
  'own transactions of a merchant': ownTransactions(false),
  'own transactions in force': ownTransactions(true),
  'activations of small batches': listSmallBatchActivations([2]),
  'activations of a large batch': listLargeBatchActivations(1),
};

describe('the plan over shards', () => {
  for (const [name, { text, values }] of Object.entries({ ...LISTS, ...OWN })) {
    test(`of ${name} scans no large table and takes few rows to the coordinator`, async () => {
      await owner.query(sql`savepoint before`);
      const [row] = await owner.query({ text: `explain (analyze, format json) ${text}`, values });
      await owner.query(sql`release before`);
      const objects = [...objectsOf(row)];
      const scans = objects.flatMap((each) => {
        const table = String(each['Relation Name']);
        return each['Node Type'] === 'Seq Scan' && LARGE.test(table) ? [table] : [];
      });
      const subplans = objects.flatMap((each) => [...objectsOf(each['Subplans'])]);
      const large = subplans.filter((each) => Number(each['Actual Rows'] ?? 0) > SUBPLAN_ROWS_MAX);
      const faults = [...scans, ...large.map((each) => `subplan of ${each['Actual Rows']} rows`)];
      assert.deepEqual(
        faults.filter((fault) => !BOUNDED[name]?.test(fault)),
        [],
      );
    });
  }
});

test('the bodies of deliveries are read on the shard of their bucket alone', async () => {
  const { service } = till.testService;
  const [bucket = assert.fail()] = service.buckets.all;
  const asked: Sql[] = [];
  const query = async (statement: Sql) => {
    asked.push(statement);
    return [];
  };
  const [row] = await owner.query<{ id: string }>(sql`select id from journal limit 1`);
  const event = { bucket, type: 'voucher.redeemed', subjectId: row?.id ?? null, data: null };
  const events = [{ ...event, eventId: '', occurredAt: new Date() }];
  await makeBodies({ ...service, db: { query } } as never, events, async () => undefined);
  assert.equal(asked.length, 1);
  for (const { text, values } of asked) {
    const [plan] = await owner.query({ text: `explain (format json) ${text}`, values });
    const tasks = [...objectsOf(plan)].flatMap((each) => each['Task Count'] ?? []);
    assert.deepEqual(tasks, [1]);
  }
});
