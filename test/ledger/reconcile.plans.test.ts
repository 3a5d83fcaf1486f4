import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openOwner } from '../../src/db/pool.ts';
import { type Sql, sql } from '../../src/db/sql.ts';
import { idFloor } from '../../src/ledger/id.ts';
import { sumByKind } from '../../src/ledger/reconcile.balances.ts';
import { type Since, statementOf } from '../../src/ledger/reconcile.scope.ts';
import { checksOf } from '../../src/ledger/reconcile.ts';
import { HOUR_MS } from '../../src/time.ts';
import { testDatabase } from '../support/harness.ts';

/**
 * A reconciliation since the last closing finds what it reads along an index: its cost is that of the day,
 * whatever the number of vouchers and of days before it.
 */

let owner: Awaited<ReturnType<typeof openOwner>>;
let drop: () => Promise<void>;

before(async () => {
  const database = await testDatabase();
  drop = database.drop;
  owner = await openOwner(database.url);
  await owner.query(sql`set search_path = scrip, pg_temp`);
  await owner.query({ text: STOCK, values: [] });
  await owner.query(sql`analyze`);
  // A small table is scanned, even if it has an index. A scan in spite of this setting has none.
  await owner.query(sql`set enable_seqscan = off`);
});

after(async () => {
  await owner?.close();
  await drop?.();
});

/** Sales of the last weeks, a few of them since the closing. */
const STOCK = `
set session_replication_role = replica;
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, produced, expires_at,
  currency, decimals, activation, scope, status, accepted_at, progressed_at, ended_at)
select gen_random_uuid(), 1, n, 1, 100, 100, now(), 'EUR', 2, 'on-activation', 'issuer', 'COMPLETED', y, y, y
from generate_series(1, 100) n cross join (values (now() - interval '1 day')) t (y);
create temp table sold as
select 20000000000 + n as serial, 1 + n / 100 as batch, id_floor(at) as id, at, n
from generate_series(1, 9900) n cross join lateral (values (now() - n * interval '2 minutes')) t (at);
insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, value_minor, balance_minor,
  activated_at, expires_at, payer_id)
select serial, batch, gen_random_uuid(), gen_random_uuid(), '', 100, 100, at, now() + interval '1 year', 1
from sold;
insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
  serial_number, reference, occurred_at)
select id, 'ACTIVATION', 7, serial, 100, 'EUR', 1, serial, 'a' || n, at from sold;
insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
  serial_number, original_id, reference, occurred_at)
select id_floor(at + interval '30 seconds'), 'REFUND', 8, serial, 1, 'EUR', 1, serial, id, 'r' || n, at from sold;
insert into claims (id, serial_number, merchant_id, operation, reference, fingerprint)
select id, serial, 1, 'activate', 'a' || n, '100' from sold order by id;
insert into redemption_updates (original_id, reversal_id, new_minor, updated_at)
select id, id, 0, at from sold order by at;
insert into escheated_expiries (expiry_id, escheat_id, serial_number, amount_minor, expired_at, escheated_at)
select id, id, serial, 100, at, at from sold order by at;
insert into book_late_rows (id, occurred_at, slice_at, found_in)
select id, at, date_bin('15 minutes', at, 'epoch'), now() from sold where n <= 100;
insert into voids (id) select id from sold;
insert into float_holds (id, account_id, merchant_id, amount_minor, bucket, serial_number, held_at, entry_id,
  ended_at)
select id, 7, 1, 100, 0, serial, at, id, at from sold order by at`;

const at = new Date(Date.now() - HOUR_MS);
const SINCE: Since = { day: '2026-01-30', at: at.toISOString(), id: idFloor(at), readsVouchers: false };
const SCOPE = { quietBefore: null, buckets: [0], since: SINCE, now: new Date() };

/** Tables with a row for each voucher, booking or delivery. All others grow with days, or with changes. */
const LARGE = [
  ...['vouchers', 'voucher_expiries', 'voucher_extensions', 'claims', 'journal', 'redemption_updates'],
  ...['webhook_deliveries', 'webhook_attempts', 'escheated_expiries', 'float_holds', 'voids'],
];
/** Indexes of few rows: what is in work, and refunds, which a partition has only a few of. */
const SHORT = /^(float_holds_open|journal_\w+_original_id_idx)$/;

type Node = {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: Node[];
};

/** Partitions and indexes begin with the name of their table. */
const isLarge = (name: string | undefined) => LARGE.some((table) => name?.startsWith(table));

/** Lists the nodes of a plan that read all rows of a large table. */
function wholeReads(node: Node): string[] {
  const below = (node.Plans ?? []).flatMap(wholeReads);
  const name = node['Relation Name'];
  const type = node['Node Type'];
  const index = node['Index Name'] ?? '';
  const hasLimit = node['Index Cond'] !== undefined || SHORT.test(index);
  if (type === 'Bitmap Index Scan')
    return hasLimit || !isLarge(index) ? below : [`all of ${index}`, ...below];
  if (!isLarge(name) || type === 'Bitmap Heap Scan' || hasLimit) return below;
  return [`${type} of ${name}`, ...below];
}

async function readsOf(statement: Sql): Promise<string[]> {
  const explain = { text: `explain (format json) ${statement.text}`, values: statement.values };
  const [row] = await owner.query<{ 'QUERY PLAN': [{ Plan: Node }] }>(explain);
  return wholeReads((row ?? assert.fail('there is no plan'))['QUERY PLAN'][0].Plan);
}

for (const [name, queriesOf] of Object.entries(checksOf(SINCE)))
  test(`the check ${name} reads no large table completely`, async () =>
    assert.deepEqual(await readsOf(statementOf(queriesOf(SCOPE))), []));

test('the totals read no large table completely', async () =>
  assert.deepEqual(await readsOf(sumByKind(SINCE)), []));

test('a statement that reads all vouchers or claims is found', async () => {
  const few = checksOf({ ...SINCE, readsVouchers: true })['voucher-totals'];
  assert.notDeepEqual(await readsOf(statementOf(few?.(SCOPE) ?? assert.fail('there is no such check'))), []);
  assert.notDeepEqual(await readsOf(sql`select count(*) from claims`), []);
});
