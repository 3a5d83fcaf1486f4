import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { openDatabase, openOwner } from '../../src/db/pool.ts';
import { SERVICE_ROLE } from '../../src/db/session.ts';
import { sql } from '../../src/db/sql.ts';
import { testDatabase } from '../support/harness.ts';

/** The role of the service has exactly the rights that docs/how-to/operate.md lists. */

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

const WORDS: Readonly<Record<string, string>> = {
  read: 'SELECT',
  add: 'INSERT',
  change: 'UPDATE',
  delete: 'DELETE',
};

/** The rights on every table, as the page lists them. A table that is not listed there fails the test. */
const TABLES: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  [
    ...readFileSync(new URL('../../docs/how-to/operate.md', import.meta.url), 'utf8').matchAll(
      /^\| `([a-z_`, ]+)` +\| ((?:read|add|change|delete|, )+) *\|/gm,
    ),
  ].flatMap(([, names = '', rights = '']) => {
    const listed = rights.trim().split(', ');
    return names.split('`, `').map((name) => [name, listed.map((right) => WORDS[right] ?? right).sort()]);
  }),
);

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
});
