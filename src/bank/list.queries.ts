import type { Sql } from '../db/sql.ts';
import { type EntryRow, movementsWhere } from './queries.ts';

export type StatementRow = {
  readonly id: number;
  readonly account: string;
  readonly currency: string;
  readonly decimals: number;
  readonly format: string;
  readonly entries: number;
  readonly opening_minor: bigint | null;
  readonly opening_on: string | null;
  /** What the entries lack to the change of the balance; null if a balance is not stated. */
  readonly missing_minor: bigint | null;
  /** The opening balance less the closing balance stated before; null if one is not stated. */
  readonly gap_minor: bigint | null;
  readonly closing_minor: bigint | null;
  readonly closing_on: string | null;
  readonly imported_by: string;
  readonly imported_at: Date;
};

const STATEMENTS = `
select f.id, f.account, a.currency, a.decimals, f.format, f.entries, f.opening_minor, f.opening_on::text,
  f.closing_minor, f.closing_on::text, f.imported_by, f.imported_at,
  (f.closing_minor - f.opening_minor
    - (select coalesce(sum(e.amount_minor), 0) from bank_entries e where e.file_id = f.id))::bigint
    as missing_minor,
  f.opening_minor - (
    select b.closing_minor from bank_files b
    where b.account = f.account and (b.closing_on, b.id) < (f.closing_on, f.id)
    order by b.closing_on desc, b.id desc limit 1
  ) as gap_minor
from bank_files f join bank_accounts a on a.name = f.account`;

/** Lists imported files before an id, newest first, of one account or of all. */
export function listStatements(account: string | null, before: number | null, count: number): Sql {
  return {
    text: `${STATEMENTS}
where ($1::text is null or f.account = $1) and ($2::integer is null or f.id < $2)
order by f.id desc limit $3`,
    values: [account, before, count],
  };
}

/** Lists the imported files whose closing balance is stated for an interval of days. */
export function listStatementsBetween(from: string, to: string): Sql {
  return {
    text: `${STATEMENTS}
where f.closing_on >= $1::date and f.closing_on < $2::date
order by a.currency, f.account, f.closing_on, f.id limit 100000`,
    values: [from, to],
  };
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

/** Lists entries, newest first, each with the movements that it is matched with. */
export function listBankEntries(
  { account, open }: { readonly account: string | null; readonly open: boolean },
  before: number | null,
  count: number,
): Sql {
  const values: unknown[] = [count];
  const conditions = [open ? 'e.matched_minor <> e.amount_minor' : 'true'];
  if (account !== null) conditions.push(`e.account = $${values.push(account)}`);
  if (before !== null) conditions.push(`e.id < $${values.push(before)}`);
  return {
    text: `
select e.id, e.account, a.currency, a.decimals, e.entry_reference, e.booked_on::text, e.amount_minor,
  e.description, e.matched_minor,
  coalesce((
    select json_agg(
      json_build_object('transactionId', m.movement_id, 'kind', m.kind, 'reference', m.reference)
      order by m.movement_id)
    from bank_matches m where m.entry_id = e.id
  ), '[]') as movements
from bank_entries e join bank_accounts a on a.name = e.account
where ${conditions.join(' and ')} order by e.id desc limit $1`,
    values,
  };
}

/** Lists movements of the funding accounts, newest first. */
export function listBankMovements(open: boolean, before: string | null, count: number): Sql {
  const values: unknown[] = [open, count];
  const earlier = before === null ? 'true' : `j.id < $${values.push(before)}::uuid`;
  const read = open ? String(SCAN_MAX) : '$2';
  return {
    text: `
with scanned as materialized (
  ${movementsWhere(earlier, read)}
)
select s.scanned_to, f.* from (
  select
    case when count(*) = ${SCAN_MAX} then (select o.id::text from scanned o order by o.id limit 1) end
      as scanned_to
  from scanned
) s
left join lateral (
  select c.* from scanned c where not $1::boolean or c.matched_minor <> c.amount_minor
  order by c.id desc limit $2
) f on true
order by f.id desc`,
    values,
  };
}
