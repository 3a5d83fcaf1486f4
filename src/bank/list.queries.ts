import { type Sql, sql } from '../db/sql.ts';
import { type EntryRow, entriesOf, movementsWhere } from './queries.ts';

export type StatementRow = {
  readonly id: number;
  readonly account: string;
  readonly currency: string;
  readonly decimals: number;
  readonly format: string;
  readonly entries: number;
  readonly closing_minor: bigint | null;
  readonly closing_on: string | null;
  readonly imported_by: string;
  readonly imported_at: Date;
};

/** Lists imported files before an id, newest first, of one account or of all. */
export function listStatements(account: string | null, before: number | null, count: number): Sql {
  return sql`
select f.id, f.account, a.currency, a.decimals, f.format, f.entries, f.closing_minor, f.closing_on::text,
  f.imported_by, f.imported_at
from bank_files f join bank_accounts a on a.name = f.account
where (${account}::text is null or f.account = ${account})
  and (${before}::integer is null or f.id < ${before})
order by f.id desc limit ${count}`;
}

export type ListedEntry = EntryRow & {
  readonly decimals: number;
  readonly movements: readonly { transactionId: string; kind: string; reference: string | null }[];
};

/** The most rows that are read for a page of open rows. Such a page may contain fewer rows than its limit. */
const SCAN_MAX = 5_000;

/** A row of a page. If no item was found, the only row has an id of null. */
export type Scanned<Row extends { readonly id: unknown }> = (Row | { readonly id: null }) & {
  /** The last id that was read; null if all rows were read. */
  readonly scanned_to: string | null;
};

/** Returns the items of a page, and the position after the rows that were read. */
export function itemsOf<Row extends { readonly id: unknown }>(rows: readonly Scanned<Row>[]) {
  const scannedTo = rows[0]?.scanned_to;
  return {
    found: rows.filter((row): row is Row & Scanned<Row> => row.id !== null),
    scannedTo: scannedTo == null ? undefined : [scannedTo],
  };
}

/** A page of `scanned`. Parameters: $1 whether only open rows are returned, $2 the limit. */
const PAGE = `
select s.scanned_to, f.* from (
  select
    case when count(*) = ${SCAN_MAX} then (select o.id::text from scanned o order by o.id limit 1) end
      as scanned_to
  from scanned
) s
left join lateral (
  select c.* from scanned c where not $1::boolean or c.matched_minor <> c.amount_minor
  order by c.id desc limit $2
) f on true`;

/** Returns the number of rows to read: one page, or SCAN_MAX if only open rows are returned. */
const scanned = (open: boolean) => (open ? String(SCAN_MAX) : '$2');

/** Lists entries, newest first, each with the movements that it is matched with. */
export function listBankEntries(
  { account, open }: { readonly account: string | null; readonly open: boolean },
  before: number | null,
  count: number,
): Sql {
  const values: unknown[] = [open, count];
  const conditions = ['true'];
  if (account !== null) conditions.push(`r.account = $${values.push(account)}`);
  if (before !== null) conditions.push(`r.id < $${values.push(before)}`);
  return {
    text: `
with picked as materialized (
  select r.* from bank_entries r where ${conditions.join(' and ')} order by r.id desc limit ${scanned(open)}
), scanned as materialized (
  ${entriesOf('picked')}
)
select p.*, c.decimals,
  coalesce((
    select json_agg(
      json_build_object('transactionId', m.movement_id, 'kind', m.kind, 'reference', m.reference)
      order by m.movement_id)
    from bank_matches m where m.entry_id = p.id
  ), '[]') as movements
from (${PAGE}) p left join bank_accounts c on c.name = p.account
order by p.id desc`,
    values,
  };
}

/** Lists movements of the funding accounts, newest first. */
export function listBankMovements(open: boolean, before: string | null, count: number): Sql {
  const values: unknown[] = [open, count];
  const earlier = before === null ? 'true' : `j.id < $${values.push(before)}::uuid`;
  return {
    text: `
with scanned as materialized (
  ${movementsWhere(earlier, scanned(open))}
)
${PAGE} order by f.id desc`,
    values,
  };
}
