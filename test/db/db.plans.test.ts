import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { CHANGED_KEYS } from '../../src/api-keys/cache.ts';
import { flushCalls } from '../../src/api-keys/guesses.ts';
import { openOwner, type Queries } from '../../src/db/pool.ts';
import { plainArray, textArray } from '../../src/db/sql.ts';
import { CLAIM, FIND_VOUCHERS, REASSIGN_CLAIM, VOID_TRANSACTION } from '../../src/ledger/claims.ts';
import { newId } from '../../src/ledger/id.ts';
import { FIND_TRANSACTIONS } from '../../src/ledger/transactions.ts';
import { flushDeclines } from '../../src/vouchers/declines.ts';
import { DIALECTS, update, updateDetails, type Voucher } from '../support/dialects.ts';
import { type Executed, Explained, type PlanNode } from '../support/explained.ts';
import { asOwner } from '../support/owner.ts';
import { UNKNOWN, withWrongPin } from '../support/till.ts';
import { Hooked } from '../support/webhooks.ts';

/** The work of a statement must not grow with the tables: an index finds every row of a growing table. */

const GROWING =
  /^(journal|vouchers|claims|voids|redemption_updates|float_holds|batches|accounts|floats|merchants|api_keys|api_key_days|webhook_\w+)(_\d{4}_\d{2}|_default)?$/;
/** A list shows fifty rows, and looks up what belongs to each. */
const ROWS_MAX = 200;

/** Scans of a growing table that no condition bounds. */
function readThrough(node: PlanNode): string[] {
  const table = node['Relation Name'] ?? '';
  const isGrowing = GROWING.test(table) || GROWING.test((node['Index Name'] ?? '').split('_by_')[0] ?? '');
  const scans = /^(Seq|Sample) Scan$/.test(node['Node Type']);
  const isUnbounded =
    /^(Index( Only)?|Bitmap Index) Scan$/.test(node['Node Type']) && node['Index Cond'] === undefined;
  const found =
    isGrowing && (scans || isUnbounded) ? [`${node['Node Type']} on ${table || node['Index Name']}`] : [];
  return [...found, ...(node.Plans ?? []).flatMap(readThrough)];
}

/** Nodes that read more than ROWS_MAX rows of a growing table, over all their loops. */
function readMany(node: PlanNode): string[] {
  const loops = node['Actual Loops'] ?? 0;
  const rows = Math.round(((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * loops);
  const own = GROWING.test(node['Relation Name'] ?? '') && rows > ROWS_MAX;
  const found = own ? [`${rows} rows of ${node['Relation Name']}`] : [];
  return [...found, ...(node.Plans ?? []).flatMap(readMany)];
}

/** Joins that compare each row of one list with each of another: work that is quadratic in the calls. */
function eachWithEach(node: PlanNode): string[] {
  const isRepeated = node['Node Type'] === 'CTE Scan' && (node['Actual Loops'] ?? 0) > 1;
  const filter = node['Node Type'] === 'Nested Loop' ? node['Join Filter'] : isRepeated && node.Filter;
  return [...(filter ? [filter] : []), ...(node.Plans ?? []).flatMap(eachWithEach)];
}

function faultsOf(executed: readonly Executed[]): { statement: string; faults: string[] }[] {
  return executed.flatMap(({ statement, plan }) => {
    const faults = [...readThrough(plan), ...readMany(plan), ...eachWithEach(plan)];
    return faults.length > 0 ? [{ statement: statement.replaceAll(/\s+/g, ' ').trim(), faults }] : [];
  });
}

/** Makes every call of the API with its common declines, and waits for the delivery of an event. */
async function day(t: TestContext, hooked: Hooked, name: string): Promise<void> {
  const { till } = hooked;
  for (const dialect of DIALECTS) {
    const reference = (text: string) => `${name} ${dialect.prefix} ${text}`;
    const [voucher, other] = (await till.vouchers(2)) as [Voucher, Voucher];
    const fresh = await till.voucher(null);
    await till.done(dialect.activate(fresh, reference('activation')));
    await till.done(dialect.activate(fresh, reference('activation')));
    await till.done(dialect.redeem(voucher, 5, reference('sale')));
    await till.done(dialect.redeem(voucher, 5, reference('sale')));
    await till.refused(dialect, '94', dialect.redeem(other, 5, reference('sale')));
    await till.refused(dialect, '55', dialect.redeem(withWrongPin(voucher), 5, reference('guess')));
    await till.refused(dialect, '55', dialect.balance(withWrongPin(voucher)));
    await till.refused(dialect, '14', dialect.balance(UNKNOWN));
    await till.done(dialect.balance(voucher));
    await till.done(dialect.balance(voucher));
    await till.done(dialect.lookup(reference('sale')));
    await till.done(update(reference('sale'), 2));
    await till.done(updateDetails(reference('sale')));
    await till.done(dialect.list());
  }
  await flushCalls(hooked.service);
  const { id } = await hooked.add(t, ['voucher.redeemed']);
  const dialect = DIALECTS[0] ?? assert.fail();
  await till.done(dialect.redeem(await till.voucher(), 1, `${name} announced`));
  await hooked.until(id, ([delivery]) => delivery?.state === 'DELIVERED');
}

/** Runs the statements that only a database of several shards needs: sql/008-claims.sql. */
async function claims({ till, service }: Hooked): Promise<void> {
  const { db } = service;
  const [voucher] = await till.vouchers(1);
  const serial = BigInt(voucher?.serialNumber ?? 0);
  const [id, next, nobody] = [newId(service.clock()), newId(service.clock()), newId(service.clock())];
  const { id: merchant } = till.merchant;
  const claim = [
    plainArray([merchant]),
    textArray(['redeem']),
    textArray(['claimed']),
    plainArray([id]),
    plainArray([serial]),
    textArray(['x']),
  ];
  await db.hot(FIND_VOUCHERS, [0, plainArray([null]), plainArray([serial])]);
  await db.hot(CLAIM, [0, ...claim]);
  assert.equal((await db.hot(CLAIM, [0, ...claim])).length, 1);
  assert.deepEqual(await db.hot(VOID_TRANSACTION, [0, serial, id]), [{ done: true }]);
  const reassigned = await db.hot(REASSIGN_CLAIM, [0, 'redeem', merchant, 'claimed', id, next, serial, 'y']);
  assert.deepEqual(reassigned, [{ done: true }]);
  await db.hot(FIND_TRANSACTIONS, [0, plainArray([merchant]), textArray(['x']), plainArray([nobody])]);
}

/** Ids begin with their time. */
const OLD_ID =
  "(left(id_floor(now() - interval '50 minutes')::text, 15) || right(gen_random_uuid()::text, 21))::uuid";

/** Adds thousands of rows to every growing table. */
async function grow({ till }: Hooked): Promise<void> {
  const owner = await openOwner(till.testService.url);
  const run = (text: string) => owner.query({ text, values: [] });
  const { id: neighbor } = await till.testService.createMerchant();
  try {
    await run('set search_path = scrip');
    await run(`
      with batch as (
        insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced,
          value_minor, expires_at, currency, decimals, activation, scope, status, accepted_at, progressed_at,
          ended_at)
        select gen_random_uuid(), ${neighbor}, 'grown', product_id, 10000, 10000, 100, expires_at, currency,
          decimals, activation, scope, status, accepted_at, progressed_at, ended_at
        from batches order by id limit 1 returning id
      ), made as (
        insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, expires_at, value_minor,
          balance_minor, activated_at, payer_id)
        select nextval('voucher_numbers') * 64, batch.id, gen_random_uuid(), gen_random_uuid(), '',
          '2040-01-01', 100, 100, now(), ${neighbor}
        from batch, generate_series(1, 10000)
        returning serial_number
      ), sales as (
        insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
          serial_number, reference, occurred_at)
        select ${OLD_ID}, 'REDEMPTION', serial_number, 1, 1, 'USD', ${neighbor}, serial_number,
          'old ' || serial_number, now()
        from made returning id, serial_number, reference
      ), references_used as (
        insert into claims (id, serial_number, merchant_id, operation, reference, fingerprint)
        select id, serial_number, ${neighbor}, 'redeem', reference, '1' from sales
      )
      insert into redemption_updates (original_id, reversal_id, new_minor, updated_at)
      select id, gen_random_uuid(), 0, now() from sales`);
    await run(`
      with made as (
        insert into webhook_endpoints (merchant_id, url, secret, created_at)
        select ${till.merchant.id}, 'https://shop.example', '', now() from generate_series(1, 3) returning id
      )
      insert into webhook_deliveries (endpoint_id, event_id, type, occurred_at, due_at)
      select id, ${OLD_ID}, 'float.low', now(), now() + interval '1 day' from made,
        generate_series(1, 3000)`);
    await run(`
      with made as (
        insert into merchants (name, default_product_id, changed_by, created_at)
        select 'Neighbor', 1, '3', now() from generate_series(1, 3000) returning id
      ), keys as (
        insert into api_keys (id, merchant_id, secret_hash, changed_by, created_at)
        select 'key-' || id, id, '', '3', now() from made returning id
      )
      insert into api_key_days (key_id, day, calls) select id, current_date, 1 from keys`);
  } finally {
    await owner.close();
  }
}

async function analyze({ till }: Hooked): Promise<void> {
  await asOwner(till.testService.url, 'analyze');
}

/**
 * Whether the plan of a statement is kept. A statement that is planned at each execution may scan a table
 * while it is small; list.rows.test.ts bounds what lists read.
 */
const isKept = (executed: Executed) => executed.isKept;
/** CHANGED_KEYS is planned again when statistics change; with few or unknown keys it may read all of them. */
const isLasting = (executed: Executed) => executed.isKept && executed.statement !== CHANGED_KEYS.text;

describe('the plan of a statement that a merchant waits for', () => {
  test('finds rows by an index in a new database and in a large one, before and after ANALYZE', async (t) => {
    const hooked = await Hooked.open(t, { float: 1_000_000_000n });
    const explained = await Explained.open(hooked.till.testService);
    t.after(() => explained.close());
    explained.replace(hooked.service.db);
    await day(t, hooked, 'young');
    await claims(hooked);
    const statements = explained.executed.splice(0);
    assert.deepEqual(faultsOf(statements.filter(isLasting)), []);
    // The number includes statements inside functions. A smaller one would mean that these are missing.
    assert.ok(new Set(statements.map(({ statement }) => statement)).size > 60);
    await grow(hooked);
    await day(t, hooked, 'grown');
    assert.deepEqual(faultsOf(explained.executed.splice(0).filter(isLasting)), []);
    await analyze(hooked);
    await day(t, hooked, 'known');
    assert.deepEqual(faultsOf(explained.executed.splice(0).filter(isKept)), []);
  });

  test('does not compare each of the declines that are written together with each other one', async (t) => {
    const hooked = await Hooked.open(t);
    const explained = await Explained.open(hooked.till.testService);
    t.after(() => explained.close());
    const vouchers = await hooked.till.vouchers(10);
    const dialect = DIALECTS[0] ?? assert.fail();
    for (const voucher of vouchers)
      await hooked.till.refused(dialect, '55', dialect.balance(withWrongPin(voucher)));
    const { db } = hooked.service;
    explained.replace(db);
    Object.assign(db, { transaction: (run: (tx: Queries) => Promise<void>) => run(db) });
    await flushDeclines(hooked.service);
    const [written] = explained.executed.filter(({ statement }) => statement.includes('into declines '));
    assert.deepEqual(eachWithEach((written ?? assert.fail()).plan), []);
  });

  test('is reported by this test when it scans a table', async (t) => {
    const hooked = await Hooked.open(t);
    const explained = await Explained.open(hooked.till.testService);
    t.after(() => explained.close());
    await hooked.till.vouchers(2);
    const found = async (text: string) => (await explained.plansOf(text)).flatMap(readThrough);
    assert.deepEqual(await found('select sum(balance_minor) from vouchers'), ['Seq Scan on vouchers']);
    assert.match(
      String(await found('select sum(amount_minor) from journal')),
      /^Seq Scan on journal_\d{4}_\d{2},/,
    );
    await explained.plansOf('set enable_seqscan = off');
    const inside = `do $$ begin perform from vouchers order by serial_number; end $$`;
    assert.deepEqual(await found(inside), ['Index Only Scan on vouchers']);
  });
});
