import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { openDatabase, openOwner } from '../../src/db/pool.ts';
import { SERVICE_ROLE } from '../../src/db/session.ts';
import { sql } from '../../src/db/sql.ts';
import { testDatabase } from '../support/harness.ts';

/** The role of the service has exactly the rights that are listed here and in docs/how-to/operate.md. */

let url: string;
let drop: () => Promise<void>;
let owner: Awaited<ReturnType<typeof openOwner>>;

before(async () => {
  ({ url, drop } = await testDatabase());
  owner = await openOwner(url);
});

after(async () => {
  await owner?.close();
  await drop?.();
});

/** Every table of the books. A table that is not listed here fails the test. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  accounts: ['INSERT', 'SELECT', 'UPDATE'],
  api_key_days: ['INSERT', 'SELECT', 'UPDATE'],
  api_keys: ['INSERT', 'SELECT', 'UPDATE'],
  approvals: ['INSERT', 'SELECT', 'UPDATE'],
  audit: ['INSERT', 'SELECT'],
  audit_head: ['INSERT', 'SELECT', 'UPDATE'],
  bank_accounts: ['INSERT', 'SELECT', 'UPDATE'],
  bank_entries: ['INSERT', 'SELECT'],
  bank_files: ['INSERT', 'SELECT'],
  bank_mappings: ['INSERT', 'SELECT', 'UPDATE'],
  bank_matches: ['DELETE', 'INSERT', 'SELECT'],
  bank_own: ['INSERT', 'SELECT', 'UPDATE'],
  batch_export_ends: ['INSERT', 'SELECT'],
  batch_exports: ['INSERT', 'SELECT'],
  batch_releases: ['INSERT', 'SELECT'],
  batch_sheets: ['INSERT', 'SELECT'],
  batches: ['INSERT', 'SELECT', 'UPDATE'],
  book_ages: ['SELECT'],
  book_aging: ['INSERT', 'SELECT'],
  book_balances: ['INSERT', 'SELECT'],
  book_breakage_rates: ['INSERT', 'SELECT'],
  book_closings: ['INSERT', 'SELECT'],
  book_cohorts: ['SELECT'],
  book_days: ['SELECT'],
  book_late_rows: ['INSERT', 'SELECT'],
  book_horizon: ['SELECT'],
  book_marks: ['SELECT'],
  book_movements: ['INSERT', 'SELECT'],
  book_reversals: ['SELECT'],
  book_rows: ['SELECT'],
  book_seals: ['SELECT'],
  book_slices: ['SELECT'],
  book_verifications: ['INSERT', 'SELECT', 'UPDATE'],
  books: ['SELECT'],
  bucket_positions: ['SELECT'],
  buckets: ['SELECT'],
  card_designs: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  claims: ['SELECT'],
  daily_limits: ['DELETE', 'INSERT', 'SELECT'],
  decline_counts: ['INSERT', 'SELECT', 'UPDATE'],
  declines: ['INSERT', 'SELECT'],
  dormancy_rules: ['INSERT', 'SELECT', 'UPDATE'],
  escheated_expiries: ['INSERT', 'SELECT'],
  fee_movements: ['SELECT'],
  float_holds: ['SELECT'],
  floats: ['INSERT', 'SELECT', 'UPDATE'],
  gl_accounts: ['INSERT', 'SELECT', 'UPDATE'],
  import_movements: ['SELECT'],
  journal: ['SELECT'],
  keyring_keys: ['INSERT', 'SELECT'],
  keyring_rotations: ['INSERT', 'SELECT', 'UPDATE'],
  manual_movements: ['INSERT', 'SELECT'],
  merchant_names: ['INSERT', 'SELECT'],
  merchants: ['INSERT', 'SELECT', 'UPDATE'],
  migrations: ['SELECT'],
  job_rows: ['INSERT', 'SELECT', 'UPDATE'],
  jobs: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  operator_requests: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  operator_settings: ['INSERT', 'SELECT', 'UPDATE'],
  operator_tokens: ['INSERT', 'SELECT', 'UPDATE'],
  passkeys: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  payout_file_settlements: ['INSERT', 'SELECT'],
  payout_files: ['INSERT', 'SELECT'],
  product_holdings: ['SELECT'],
  products: ['INSERT', 'SELECT', 'UPDATE'],
  recovery_codes: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  redemption_updates: ['SELECT'],
  routing: ['INSERT', 'SELECT'],
  sessions: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  settlement_disputes: ['INSERT', 'SELECT', 'UPDATE'],
  settlement_fees: ['INSERT', 'SELECT'],
  settlement_lines: ['DELETE', 'INSERT', 'SELECT'],
  settlement_numbers: ['INSERT', 'SELECT', 'UPDATE'],
  settlement_payouts: ['INSERT', 'SELECT'],
  settlement_terms: ['INSERT', 'SELECT'],
  settlements: ['INSERT', 'SELECT', 'UPDATE'],
  sign_in_attempts: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  sign_ins: ['DELETE', 'INSERT', 'SELECT', 'UPDATE'],
  till_bookings: ['INSERT', 'SELECT'],
  users: ['INSERT', 'SELECT', 'UPDATE'],
  voids: ['SELECT'],
  voucher_expiries: ['SELECT'],
  voucher_extensions: ['SELECT'],
  voucher_import_chunks: ['INSERT', 'SELECT'],
  voucher_imports: ['INSERT', 'SELECT'],
  voucher_vat: ['INSERT', 'SELECT', 'UPDATE'],
  vouchers: ['SELECT'],
  webhook_attempts: ['INSERT', 'SELECT'],
  webhook_deliveries: ['INSERT', 'SELECT', 'UPDATE'],
  webhook_endpoints: ['INSERT', 'SELECT', 'UPDATE'],
};

/** The views: a view cannot be truncated. */
const VIEWS = ['book_rows', 'fee_movements'];

/** The tables of which only some columns may be updated. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  bank_entries: ['matched_minor'],
  batch_releases: ['used_at'],
  books: ['grace_minutes', 'zone'],
  daily_limits: ['amount_minor'],
  keyring_keys: ['dropped_at', 'retired_at', 'superseded_at'],
  voucher_imports: ['finished_at'],
};

const RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'];
const APPEND_ONLY = ['journal', 'audit', 'batch_exports', 'batch_export_ends'];

describe('the role of the service', () => {
  test('has exactly the listed rights on each table', async () => {
    const rows = await owner.query<{ name: string; rights: string[] }>(sql`
      select c.relname as name, array(
        select r from unnest(${RIGHTS}::text[]) r where has_table_privilege(${SERVICE_ROLE}, c.oid, r)
          order by r
      ) as rights
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = 'scrip' and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
        order by c.relname`);
    assert.deepEqual(Object.fromEntries(rows.map(({ name, rights }) => [name, rights])), TABLES);
  });

  test('may update single columns only of the listed tables', async () => {
    const rows = await owner.query<{ name: string; columns: string[] }>(sql`
      select c.relname as name, array_agg(a.attname::text order by a.attname) as columns
      from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
      where n.nspname = 'scrip' and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
        and has_column_privilege(${SERVICE_ROLE}, c.oid, a.attnum, 'UPDATE')
        and not has_table_privilege(${SERVICE_ROLE}, c.oid, 'UPDATE')
      group by c.relname`);
    assert.deepEqual(Object.fromEntries(rows.map(({ name, columns }) => [name, columns])), COLUMNS);
  });

  test('owns nothing, may create nothing, and is a member of no other role', async () => {
    const [row] = await owner.query<Record<string, unknown>>(sql`
      select r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolbypassrls, r.rolreplication,
        has_schema_privilege(r.oid, 'scrip', 'CREATE') as creates,
        has_database_privilege(r.oid, current_database(), 'CREATE') as creates_schemas,
        (select count(*) from pg_shdepend d where d.refobjid = r.oid and d.deptype = 'o')::int as owns,
        (select array_agg(m.roleid::regrole::text) from pg_auth_members m where m.member = r.oid)
          as is_member_of
      from pg_roles r where r.rolname = ${SERVICE_ROLE}`);
    assert.deepEqual(row, {
      rolsuper: false,
      rolcreaterole: false,
      rolcreatedb: false,
      rolbypassrls: false,
      rolreplication: false,
      creates: false,
      creates_schemas: false,
      owns: 0,
      is_member_of: null,
    });
  });

  test('runs functions of the owner only if granted, and with a fixed search path', async () => {
    const rows = await owner.query<{ name: string; path: string | null; is_public: boolean }>(sql`
      select p.proname as name, has_function_privilege('public', p.oid, 'execute') as is_public,
        (select c from unnest(p.proconfig) c where c like 'search_path=%') as path
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where n.nspname = 'scrip' and p.prosecdef`);
    assert.ok(rows.length > 20);
    const wrong = rows.filter(({ path, is_public }) => is_public || path !== 'search_path=scrip, pg_temp');
    assert.deepEqual(wrong, []);
  });

  test('is refused every other statement, table by table', async () => {
    const db = openDatabase(url, 'scrip-test');
    const refused = (text: string) => assert.rejects(db.query({ text, values: [] }), { code: '42501' }, text);
    try {
      for (const table of Object.keys(TABLES).filter((each) => !VIEWS.includes(each))) {
        await refused(`truncate scrip.${table}`);
        await refused(`alter table scrip.${table} add column more text`);
        await refused(`drop table scrip.${table}`);
        await refused(
          `create trigger t before insert on scrip.${table} execute function suppress_redundant_updates_trigger()`,
        );
        if (!TABLES[table]?.includes('DELETE')) await refused(`delete from scrip.${table}`);
      }
      for (const table of APPEND_ONLY) {
        const [column] = await owner.query<{ name: string }>(
          sql`
            select attname as name from pg_attribute where attrelid = ${`scrip.${table}`}::regclass
            and attnum = 1`,
        );
        await refused(`update scrip.${table} set ${column?.name} = ${column?.name}`);
      }
      await refused('create table scrip.more (id integer)');
      await refused('create schema more');
    } finally {
      await db.close();
    }
  });

  test('cannot hide a table behind a temporary one', async () => {
    const db = openDatabase(url, 'scrip-test');
    try {
      const tables = await db.transaction(async (tx) => {
        for (const table of APPEND_ONLY) {
          await tx.query({
            text: `create temp table ${table} (like scrip.${table}) on commit drop`,
            values: [],
          });
        }
        return tx.query<{ name: string }>(
          sql`
            select n.nspname as name from unnest(${APPEND_ONLY}::text[]) t join pg_class c
              on c.oid = t::regclass
            join pg_namespace n on n.oid = c.relnamespace`,
        );
      });
      assert.deepEqual(
        tables.map(({ name }) => name),
        APPEND_ONLY.map(() => 'scrip'),
      );
    } finally {
      await db.close();
    }
  });

  test('is documented with the same rights', async () => {
    const page = await readFile(new URL('../../docs/how-to/operate.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `([a-z_`, ]+)` +\| ((?:read|add|change|delete|, )+) *\|/gm)];
    const words: Readonly<Record<string, string>> = {
      SELECT: 'read',
      INSERT: 'add',
      UPDATE: 'change',
      DELETE: 'delete',
    };
    const documented = rows.flatMap(([, names = '', rights = '']) =>
      names.split('`, `').map((name) => [name, rights.trim().split(', ').sort()]),
    );
    const expected = Object.entries(TABLES).map(([name, rights]) => [
      name,
      rights.map((right) => words[right]).sort(),
    ]);
    assert.deepEqual(Object.fromEntries(documented), Object.fromEntries(expected));
  });
});
