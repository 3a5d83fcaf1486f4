import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { testDatabase } from '../support/harness.ts';
import { LARGE, LISTS } from '../support/lists.ts';

/**
 * Every list of the operator API, with each of its filters, is read along an index: none scans a large table.
 */

let owner: Awaited<ReturnType<typeof openOwner>>;
let drop: () => Promise<void>;

before(async () => {
  const database = await testDatabase();
  drop = database.drop;
  owner = await openOwner(database.url);
  await owner.query(sql`set search_path = scrip, pg_temp`);
  // In an empty table a scan is cheap. A scan in spite of these settings has no index.
  await owner.query(sql`set enable_seqscan = off`);
  await owner.query(sql`set enable_bitmapscan = off`);
});

after(async () => {
  await owner?.close();
  await drop?.();
});

/** The filters that a list may apply to the rows of an index, each with the reason why it drops few rows. */
const LEFT_OUT: Readonly<Record<string, RegExp>> = {
  // One float for each merchant, and four weeks of the use of each.
  'low floats': /balance_minor < COALESCE|kind = ANY/,
  floats: /kind = ANY/,
  'floats of a merchant': /kind = ANY/,
  settlements: /state = ANY/,
  'settlements of a merchant': /state = ANY/, // one for each period
  'settlements to be paid': /state = ANY/, // among those that are not paid
  'movements of the bank': /kind <> 'CASH_OUT'/, // cash that merchants paid out is not the bank's
  'open movements of the bank': /kind <> 'CASH_OUT'/,
  'transactions of a voucher': /bucket = 0/, // its rows are found by keys, and all in its bucket
  // Few batches are in production or canceled.
  'batches whose vouchers are listed': /status <> ALL/,
  'batches of a merchant whose vouchers are listed': /status <> ALL/,
  'batches of a product whose vouchers are listed': /status <> ALL/,
  'changes that broke the glass': /occurred_at >=/, // it is rare
  'changes since a time': /occurred_at >=/, // a hundred around the time
  'changes until a time': /occurred_at </,
};

/** A row that is found by its key is in the bucket of the row that refers to it. */
const IS_BUCKET = /^\(bucket = \w+\.bucket\)$/;

type Plan = {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Filter?: string;
  readonly 'Sort Key'?: readonly string[];
  readonly Plans?: readonly Plan[];
};

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

describe('the plan of a list', () => {
  for (const [name, { text, values }] of Object.entries(LISTS)) {
    test(`of ${name} has no scan of a large table`, async () => {
      const [row] = await owner.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({
        text: `explain (format json) ${text}`,
        values,
      });
      const nodes = nodesOf((row as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'][0].Plan);
      const scans = nodes.filter(
        (node) => node['Node Type'] === 'Seq Scan' && LARGE.test(node['Relation Name'] ?? ''),
      );
      assert.deepEqual(
        scans.map((each) => each['Relation Name']),
        [],
      );
      // A filter makes a list read rows in vain: all of them, if none matches.
      const filters = nodes.flatMap(({ Filter: filter, 'Relation Name': table = '' }) =>
        filter !== undefined && LARGE.test(table) && !IS_BUCKET.test(filter) && !LEFT_OUT[name]?.test(filter)
          ? [`${table}: ${filter}`]
          : [],
      );
      assert.deepEqual(filters, []);
    });
  }
});
