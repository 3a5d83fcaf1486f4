import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openOwner } from '../src/db/pool.ts';
import type { HotStatement } from '../src/db/sql.ts';
import { FIND_TRANSACTION, LIST_TRANSACTIONS } from '../src/ledger/transactions.queries.ts';
import { FIND_KEYS } from '../src/merchants/queries.ts';
import { REDEEM } from '../src/redemptions/redeem.queries.ts';
import { FIND_UPDATE, UPDATE_REDEMPTION } from '../src/redemptions/update.queries.ts';
import { ACTIVATE } from '../src/vouchers/activate.queries.ts';
import { BALANCE, READ_BALANCE } from '../src/vouchers/balance.queries.ts';
import { CLAIM_DELIVERIES, RECORD_ATTEMPTS } from '../src/webhooks/deliver.queries.ts';
import { DIALECTS, type Dialect, update } from './dialects.ts';
import { startTestService, type TestService } from './harness.ts';
import { Till } from './till.ts';

/** What the hot statements do must not grow with the tables: every row of these is found by an index. */

const STATEMENTS = [
  REDEEM,
  UPDATE_REDEMPTION,
  FIND_UPDATE,
  ACTIVATE,
  READ_BALANCE,
  BALANCE,
  FIND_TRANSACTION,
  LIST_TRANSACTIONS,
  FIND_KEYS,
  CLAIM_DELIVERIES,
  RECORD_ATTEMPTS,
];
const GROWING = new Set([
  'journal',
  'vouchers',
  'batches',
  'accounts',
  'merchants',
  'api_keys',
  'key_days',
  'webhook_endpoints',
  'webhook_deliveries',
  'webhook_attempts',
]);
const SETTINGS = ['plan_cache_mode', 'enable_seqscan', 'enable_mergejoin', 'jit'];

type Node = {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Join Filter'?: string;
  Plans?: Node[];
};

/** The plan that the service's own connections work by: they keep one for as long as they live. */
async function planOf({ service, url }: TestService, { text }: HotStatement): Promise<Node> {
  const settings = await service.db.hot<{ name: string; setting: string }>(
    { name: 'settings', text: 'select name, setting from pg_settings where name = any ($1)' },
    [SETTINGS],
  );
  const owner = await openOwner(url);
  try {
    const run = <Row>(each: string) => owner.query<Row>({ text: each, values: [] });
    await run('set search_path = scrip');
    for (const { name, setting } of settings) await run(`set ${name} = ${setting}`);
    await run(`prepare hot as ${text}`);
    const [prepared] = await run<{ count: number }>(
      "select cardinality(parameter_types) as count from pg_prepared_statements where name = 'hot'",
    );
    const nothing = Array.from({ length: prepared?.count ?? 0 }, () => 'null').join(', ');
    const [row] = await run<{ 'QUERY PLAN': { Plan: Node }[] }>(
      `explain (format json) execute hot${nothing && `(${nothing})`}`,
    );
    return row?.['QUERY PLAN'][0]?.Plan ?? assert.fail('there is no plan');
  } finally {
    await owner.close();
  }
}

/** What reads a growing table without looking something up. */
function readThrough(node: Node): string[] {
  const own = node['Relation Name'] !== undefined && GROWING.has(node['Relation Name']);
  const scans = /^Seq Scan$|^Sample Scan$/.test(node['Node Type']) && own;
  const unbound =
    /^Index( Only)? Scan$|^Bitmap Index Scan$/.test(node['Node Type']) && node['Index Cond'] === undefined;
  const isGrowing =
    own ||
    (node['Node Type'] === 'Bitmap Index Scan' &&
      /^(journal|vouchers|batches|accounts|webhook_deliveries)/.test(node['Index Name'] ?? ''));
  const found =
    scans || (unbound && isGrowing)
      ? [`${node['Node Type']} on ${node['Relation Name'] ?? node['Index Name']}`]
      : [];
  return [...found, ...(node.Plans ?? []).flatMap(readThrough)];
}

/** The floats of a statement are few: one for each merchant and currency. */
const FEW = /f\.merchant_id/;

/** What compares each row of one list with each of another: work that grows with the square of a statement's calls. */
function eachWithEach(node: Node): string[] {
  const filter = node['Node Type'] === 'Nested Loop' ? node['Join Filter'] : undefined;
  const own = filter === undefined || FEW.test(filter) ? [] : [filter];
  return [...own, ...(node.Plans ?? []).flatMap(eachWithEach)];
}

/** Where the plan reads a table. */
function lookUps(node: Node, table: string): Node[] {
  const own = node['Relation Name'] === table && /Scan/.test(node['Node Type']) ? [node] : [];
  return [...own, ...(node.Plans ?? []).flatMap((each) => lookUps(each, table))];
}

async function looksUp(on: TestService, statement: HotStatement): Promise<void> {
  const plan = await planOf(on, statement);
  // Work in the background asks of every endpoint whether something is due for it.
  const asksAll = (found: string) => statement.background && / on webhook_endpoints/.test(found);
  const found = readThrough(plan).filter((each) => !asksAll(each));
  assert.deepEqual([...found, ...eachWithEach(plan)], [], statement.name);
}

describe('every statement of the hot path looks rows up', () => {
  test('in a database of the first minute', async (t) => {
    const started = await startTestService();
    t.after(started.stop);
    for (const statement of STATEMENTS) {
      await looksUp(started, statement);
    }
  });

  test('in one that has grown, and whose statistics are known', async (t) => {
    const till = await Till.open(t, { float: 1_000_000_000n });
    const [dialect] = DIALECTS as [Dialect];
    for (let batch = 0; batch < 8; batch++) {
      const vouchers = await till.vouchers(10);
      for (const voucher of vouchers)
        await till.done(dialect.redeem(voucher, 5, `sale-${voucher.serialNumber}`));
      await till.done(update(`sale-${vouchers[0]?.serialNumber}`, 2));
    }
    const owner = await openOwner(till.testService.url);
    await owner.query({ text: 'analyze', values: [] }).finally(() => owner.close());
    for (const statement of STATEMENTS) {
      await looksUp(till.testService, statement);
    }
  });

  test('an attempt is recorded by the key of its delivery, not by reading the queue of its endpoint', async (t) => {
    const started = await startTestService();
    t.after(started.stop);
    const queue = async (text: string) => {
      const owner = await openOwner(started.url);
      await owner.query({ text, values: [] }).finally(() => owner.close());
    };
    await queue(`insert into scrip.webhook_deliveries (endpoint_id, event_id, type, occurred_at, due_at)
      select 1, gen_random_uuid(), 'float.low', now(), now() from generate_series(1, 5000)`);
    // Before and after anything is known of the table.
    for (const known of ['select 1', 'analyze scrip.webhook_deliveries']) {
      await queue(known);
      const found = lookUps(await planOf(started, RECORD_ATTEMPTS), 'webhook_deliveries');
      assert.deepEqual(
        found.map((node) => node['Index Name']),
        ['webhook_deliveries_pkey'],
      );
      assert.match(found[0]?.['Index Cond'] ?? '', /endpoint_id = .* AND .*event_id = /);
    }
  });

  test('and this finds one that does not', async (t) => {
    const started = await startTestService();
    t.after(started.stop);
    const whole = { name: 'whole', text: 'select sum(amount_minor) from journal' };
    assert.deepEqual(readThrough(await planOf(started, whole)), ['Seq Scan on journal']);
  });
});
