import { type Sql, sql } from '../db/sql.ts';
import { ENTRIES, type EntryRow, MOVEMENTS } from './queries.ts';

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

/** Files that were imported, newest first: those before an id, of one account or of all. */
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

/** Entries, newest first, each with the movements that it is matched with. */
export function listBankEntries(
  { account, open }: { readonly account: string | null; readonly open: boolean },
  before: number | null,
  count: number,
): Sql {
  return {
    text: `
select e.*, c.decimals, coalesce((
    select json_agg(json_build_object('transactionId', j.id, 'kind', j.kind, 'reference', j.reference)
      order by j.id)
    from bank_matches m join journal j on j.id = m.movement_id where m.entry_id = e.id
  ), '[]') as movements
from (${ENTRIES}) e join bank_accounts c on c.name = e.account
where ($1::text is null or e.account = $1) and ($2::integer is null or e.id < $2)
  and (not $3::boolean or e.matched_minor <> e.amount_minor)
order by e.id desc limit $4`,
    values: [account, before, open, count],
  };
}

/** Movements of the funding accounts, newest first. */
export function listBankMovements(open: boolean, before: string | null, count: number): Sql {
  return {
    text: `
select * from (${MOVEMENTS} and ($1::uuid is null or j.id < $1)) m
where not $2::boolean or m.matched_minor <> m.amount_minor
order by m.id desc limit $3`,
    values: [before, open, count],
  };
}
