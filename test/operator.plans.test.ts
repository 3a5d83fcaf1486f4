import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { listBreakGlass, listEntries } from '../src/audit/queries.ts';
import { listBankEntries, listBankMovements, listStatements } from '../src/bank/list.queries.ts';
import { listBatchRows } from '../src/batches/queries.ts';
import { listFloatPage, listUse } from '../src/books/days.queries.ts';
import { openOwner } from '../src/db/pool.ts';
import { type Sql, sql } from '../src/db/sql.ts';
import { listJournalRows } from '../src/ledger/queries.ts';
import { listMerchantRowsAfter } from '../src/merchants/queries.ts';
import { listJobRows } from '../src/operator/jobs.queries.ts';
import { listApprovalRows } from '../src/operator/queries.ts';
import { listUserRows } from '../src/people/queries.ts';
import { listAllDisputes, listSettlementRows } from '../src/settlement/queries.ts';
import {
  listByCodeRanges,
  listCurrencies,
  listDeclineRows,
  listVoucherRows,
  sumDeclineCounts,
} from '../src/vouchers/queries.ts';
import { listDeliveryRows } from '../src/webhooks/queries.ts';
import { testDatabase } from './harness.ts';

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

const FIRST = '00000000-0000-7000-8000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const NOW = new Date('2026-01-31T12:00:00Z');
const ids = { from: FIRST, before: LAST };
const anything = { subject: null, actor: null, kind: null, action: null, from: null, until: null };

const LISTS: Readonly<Record<string, Sql>> = {
  merchants: listMerchantRowsAfter(0, 51, null),
  'merchants by name': listMerchantRowsAfter(0, 51, 'corner'),
  floats: listFloatPage({ merchantId: null, isLow: false }, 0, '', 51),
  'floats of a merchant': listFloatPage({ merchantId: 1, isLow: false }, 0, '', 51),
  'low floats': listFloatPage({ merchantId: null, isLow: true }, 0, '', 51),
  'the use of floats': listUse([1, 2], NOW, NOW),
  settlements: listSettlementRows({ merchantId: null, states: ['DRAFT', 'PAID'] }, 9, 51),
  'settlements of a merchant': listSettlementRows({ merchantId: 1, states: ['PAID'] }, 9, 51),
  'settlements to be paid': listSettlementRows({ merchantId: null, states: ['APPROVED'] }, 9, 51),
  disputes: listAllDisputes({ merchantId: null, open: true }, 9, 51),
  statements: listStatements('House', 9, 51),
  entries: listBankEntries({ account: 'House', open: false }, 9, 51),
  'open entries': listBankEntries({ account: null, open: true }, 9, 51),
  'movements of the bank': listBankMovements(false, LAST, 51),
  'open movements of the bank': listBankMovements(true, LAST, 51),
  jobs: listJobRows(9, 51),
  approvals: listApprovalRows(NOW, 9, 51),
  users: listUserRows(1, 9, 51),
  'changes that broke the glass': listBreakGlass(NOW, 51),
  'changes since a time': listEntries({ ...anything, action: 'merchant.suspend', from: NOW }, null, 51),
  batches: listBatchRows({ merchantId: null, status: null }, null, 51),
  'batches of a merchant': listBatchRows({ merchantId: 1, status: null }, 9, 51),
  'batches by status': listBatchRows({ merchantId: null, status: 'PROCESSING' }, 9, 51),
  vouchers: listVoucherRows(null, null, 0n, NOW, 50),
  'vouchers by state': listVoucherRows(null, 'BLOCKED', 0n, NOW, 50),
  'vouchers of a batch': listVoucherRows(1, null, 0n, NOW, 50),
  'vouchers of a batch by state': listVoucherRows(1, 'BLOCKED', 0n, NOW, 50),
  'vouchers by code': listByCodeRanges([{ first: FIRST, last: FIRST }], NOW, 200),
  'vouchers by masked code': listByCodeRanges(
    [{ first: '4829a0f1-0000-0000-0000-000000000000', last: '4829a0f1-ffff-ffff-ffff-ffffffffffff' }],
    NOW,
    200,
  ),
  'failed deliveries': listDeliveryRows(1, 'FAILED', 51, LAST),
  transactions: listJournalRows({ merchantId: null, serialNumber: null, ...ids }, 51),
  'transactions of a merchant': listJournalRows({ merchantId: 1, serialNumber: null, ...ids }, 51),
  'transactions of a voucher': listJournalRows({ merchantId: null, serialNumber: 10000000064n, ...ids }, 51),
  declines: listDeclineRows(null, null, [], LAST, 51),
  'declines of a merchant': listDeclineRows(1, null, [], LAST, 51),
  'declines of a voucher': listDeclineRows(null, 10000000064n, [], LAST, 51),
  'currencies of declines': listCurrencies('{10000000064,10000000072}'),
  'declines by code': sumDeclineCounts('2026-03-02', '2026-03-02'),
  changes: listEntries(anything, null, 51),
  'changes of a subject': listEntries({ ...anything, subject: 'merchant 5' }, 9n, 51),
  'changes by an actor': listEntries({ ...anything, actor: 'anna' }, 9n, 51),
  'changes of an action': listEntries({ ...anything, action: 'merchant.suspend' }, 9n, 51),
  'changes by a kind of actor': listEntries({ ...anything, kind: 'token' }, 9n, 51),
  'changes until a time': listEntries({ ...anything, until: NOW }, null, 51),
};

/** Tables that grow with the business. */
const LARGE =
  /^(vouchers|journal|declines|decline_counts|batches|audit|claims|redemption_updates|merchants|floats|settlements|bank_entries|book_slices|webhook_deliveries)/;

/** The filters that a list may apply to the rows of an index, each with the reason why it drops few rows. */
const LEFT_OUT: Readonly<Record<string, RegExp>> = {
  'low floats': /balance_minor < COALESCE/, // one float for each merchant
  settlements: /state = ANY/,
  'settlements of a merchant': /state = ANY/, // one for each period
  'settlements to be paid': /state = ANY/, // among those that are not paid
  'the use of floats': /./, // four weeks of one merchant
  'movements of the bank': /kind <> 'CASH_OUT'/, // cash that merchants paid out is not the bank's
  'open movements of the bank': /kind <> 'CASH_OUT'/,
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
