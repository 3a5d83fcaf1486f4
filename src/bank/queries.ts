import { type Sql, sql } from '../db/sql.ts';
import type { Balance } from './statement.ts';

export function findFile(digest: Buffer): Sql {
  return sql`select id, imported_at from bank_files where digest = ${digest}`;
}

/** Returns the references under which an account already has entries, out of a list. */
export function listKnownReferences(account: string, references: readonly string[]): Sql {
  return sql`
select entry_reference from bank_entries
where account = ${account} and entry_reference = any (${references}::text[])`;
}

/** Returns the last closing balance that statements of an account have stated up to a day. */
export function findClosingBefore(account: string, day: string): Sql {
  return sql`
select closing_minor as minor, closing_on::text as day from bank_files
where account = ${account} and closing_on <= ${day}::date
order by closing_on desc, id desc limit 1`;
}

export function insertFile(file: {
  readonly digest: Buffer;
  readonly account: string;
  readonly format: string;
  readonly entries: number;
  readonly opening: Balance | null;
  readonly closing: Balance | null;
  readonly by: string;
  readonly now: Date;
}): Sql {
  const { digest, account, format, entries, opening, closing, by, now } = file;
  return sql`
insert into bank_files (digest, account, format, entries, opening_minor, opening_on, closing_minor,
  closing_on, imported_by, imported_at)
values (${digest}, ${account}, ${format}, ${entries}, ${opening?.minor}, ${opening?.day}::date,
  ${closing?.minor}, ${closing?.day}::date, ${by}, ${now})
returning id`;
}

/** Inserts entries. The arrays have the same order. */
export function insertEntries(
  fileId: number,
  account: string,
  columns: { references: string[]; days: string[]; amounts: string[]; descriptions: string[] },
): Sql {
  const { references, days, amounts, descriptions } = columns;
  return sql`
insert into bank_entries (file_id, account, entry_reference, booked_on, amount_minor, description)
select ${fileId}, ${account}, u.reference, u.day, u.amount, u.description
from unnest(${references}::text[], ${days}::date[], ${amounts}::bigint[], ${descriptions}::text[])
  as u (reference, day, amount, description)`;
}

export type EntryRow = {
  id: number;
  account: string;
  currency: string;
  entry_reference: string;
  booked_on: string;
  amount_minor: bigint;
  description: string;
  matched_minor: bigint;
};

/** The query of entries with the currency of their account. */
const ENTRIES = `
select e.id, e.account, a.currency, e.entry_reference, e.booked_on::text, e.amount_minor, e.description,
  e.matched_minor
from bank_entries e join bank_accounts a on a.name = e.account`;

/** Lists entries that are not completely matched, oldest first. */
export function listOpenEntries(): Sql {
  return {
    text: `
${ENTRIES} where e.matched_minor <> e.amount_minor order by e.booked_on, e.id limit 20000`,
    values: [],
  };
}

export function listEntries(ids: readonly number[]): Sql {
  return { text: `${ENTRIES} where e.id = any ($1::int[]) order by e.id`, values: [ids] };
}

/** Lists the entries of an interval of days, with the movements that they are matched with. */
export function listEntriesBetween(from: string, to: string): Sql {
  return {
    text: `
select e.*,
  (
    select string_agg(m.kind || ' ' || coalesce(m.reference, m.movement_id::text), ', ' order by m.movement_id)
    from bank_matches m where m.entry_id = e.id
  ) as movements
from (${ENTRIES} where e.booked_on >= $1::date and e.booked_on < $2::date) e
order by e.currency, e.booked_on, e.id limit 100000`,
    values: [from, to],
  };
}

export type MovementRow = {
  id: string;
  kind: string;
  currency: string;
  occurred_at: Date;
  /** The day of `occurred_at` in the zone of the books. */
  occurred_on: string;
  /** Positive for received money. */
  amount_minor: bigint;
  reference: string | null;
  /** The bank's reference and the number of the settlement, for a payout. */
  bank_reference: string | null;
  number: string | null;
  matched_minor: bigint;
};

/**
 * The kinds of movements that should appear on the operator's bank statement. The index journal_of_funding
 * covers them.
 */
const FUNDING_KINDS = `('TOP_UP', 'FLOAT_REFUND', 'FLOAT_CORRECTION', 'PAYOUT', 'PAYOUT_RETURN',
  'CASH_OUT', 'ESCHEAT', 'OWN_TRANSFER', 'OPENING')`;

const FUNDING = `array(select f.id from accounts f where f.merchant_id = 0 and f.kind = 'FUNDING')`;

/**
 * Returns the query of the movements on the funding accounts that should appear on the operator's bank
 * statement. Cash that a merchant paid out is left out, since it does not move these accounts. An import
 * books one movement for each voucher, which are one amount at the bank. With Citus, the journal is on
 * the shards and most other tables are on the coordinator, so it is read first and by itself.
 * @param condition selects rows `j`, of the journal or of imports
 * @param countMax only the newest of them
 */
export function movementsWhere(condition: string, countMax?: string): string {
  const newest = countMax === undefined ? '' : ` order by id desc limit ${countMax}`;
  return `
with picked as materialized (
  select j.id, j.kind, j.debit_account, j.credit_account, j.amount_minor, j.currency, j.reference,
    j.occurred_at
  from journal j
  where j.kind in ${FUNDING_KINDS} and (j.kind <> 'CASH_OUT' or j.credit_account = any (${FUNDING}))
    and ${condition}${newest}
), moved as materialized (
  select * from picked
  union all
  (
    select j.id, 'IMPORT'::entry_kind, j.account_id, 0, j.amount_minor, j.currency, j.reference, j.occurred_at
    from import_movements j where ${condition}${newest}
  )${newest}
)
select j.id, j.kind::text as kind, j.currency, j.occurred_at,
  (j.occurred_at at time zone (select k.zone from books k))::date::text as occurred_on,
  case when j.debit_account = f.id then j.amount_minor else -j.amount_minor end as amount_minor, j.reference,
  p.bank_reference,
  settlement_number(s.merchant_id, s.year, s.number) as number,
  coalesce((select sum(m.amount_minor) from bank_matches m where m.movement_id = j.id), 0)::bigint
    as matched_minor
from moved j
join accounts f on f.merchant_id = 0 and f.kind = 'FUNDING' and f.id in (j.debit_account, j.credit_account)
left join settlement_payouts p on p.id = j.id
left join settlements s on s.id = p.settlement_id`;
}

/** Lists movements since a time that are not completely matched. */
export function listOpenMovements(since: Date): Sql {
  return {
    text: `
select * from (${movementsWhere('j.id >= id_floor($1::timestamptz)')}) m
where m.matched_minor <> m.amount_minor order by m.occurred_at, m.id limit 100000`,
    values: [since],
  };
}

export function listMovements(ids: readonly string[]): Sql {
  return { text: `${movementsWhere('j.id = any ($1::uuid[])')} order by j.id`, values: [ids] };
}

export function insertMatch(match: {
  readonly entry: EntryRow;
  readonly movement: MovementRow;
  readonly amountMinor: bigint;
  readonly how: 'exact' | 'suggested' | 'manual';
  readonly by: string;
  readonly now: Date;
}): Sql {
  const { entry, movement, amountMinor, how, by, now } = match;
  return sql`
with matched as (
  update bank_entries set matched_minor = matched_minor + ${amountMinor} where id = ${entry.id}
)
insert into bank_matches (entry_id, movement_id, kind, reference, occurred_at, amount_minor, how, matched_by,
  matched_at)
values (${entry.id}, ${movement.id}, ${movement.kind}, ${movement.reference}, ${movement.occurred_at},
  ${amountMinor}, ${how}, ${by}, ${now})`;
}

export function deleteMatches(entryId: number): Sql {
  return sql`
with undone as (
  update bank_entries set matched_minor = 0 where id = ${entryId}
)
delete from bank_matches where entry_id = ${entryId} returning movement_id`;
}

export type PayableRow = {
  id: string;
  number: string;
  merchant: string;
  currency: string;
  payable_minor: bigint;
};

/** Lists the settlements whose payout is not booked. */
export const listPayable = sql`
select s.id::text, settlement_number(s.merchant_id, s.year, s.number) as number, m.name as merchant,
  s.currency, s.payable_minor
from settlements s join merchants m on m.id = s.merchant_id
where s.state in ('APPROVED', 'RETURNED') and s.payable_minor > 0 order by s.id limit 100000`;

/** Allows one matching at a time. */
export const lockMatching = sql`select pg_advisory_xact_lock(7311990017)`;

/**
 * Returns, by currency, the balance at the bank, the balance of the books, and the unmatched items: entries
 * before a day whose movement is not booked by its end, and movements whose entry is not there by then.
 */
export function summarizeBank(before: string, endsAt: Date): Sql {
  return sql`
with stated as (
  select a.name, a.currency, coalesce(o.own_minor, 0) as own_minor, f.closing_minor, f.closing_on
  from bank_accounts a
  left join lateral (
    select own_minor from bank_own where account = a.name and valid_from < ${before}::date
    order by valid_from desc limit 1
  ) o on true
  left join lateral (
    select closing_minor, closing_on from bank_files where account = a.name and closing_on < ${before}::date
    order by closing_on desc, id desc limit 1
  ) f on true
), bank as (
  select s.currency, sum(s.own_minor)::bigint as own_minor, bool_and(s.closing_on is not null) as is_stated,
    sum(case when s.closing_on is null then s.own_minor else s.closing_minor end
      + coalesce((
        select sum(e.amount_minor) from bank_entries e
        where e.account = s.name and e.booked_on < ${before}::date
          and (s.closing_on is null or e.booked_on > s.closing_on)), 0))::bigint as closing_minor
  from stated s group by s.currency
), entries as (
  select a.currency,
    sum(e.amount_minor - coalesce((
      select sum(m.amount_minor) from bank_matches m
      where m.entry_id = e.id and m.occurred_at < ${endsAt}), 0))::bigint as open_minor
  from bank_entries e join bank_accounts a on a.name = e.account
  where e.booked_on < ${before}::date group by a.currency
), booked as (
  select currency, -sum(balance_minor) as minor from balances_at(${endsAt})
  where account_kind = 'FUNDING' group by currency
), matched as (
  select a.currency, sum(m.amount_minor) as minor
  from bank_matches m join bank_entries e on e.id = m.entry_id join bank_accounts a on a.name = e.account
  where e.booked_on < ${before}::date and m.occurred_at < ${endsAt} group by a.currency
)
select b.currency, b.own_minor, b.closing_minor, b.is_stated, coalesce(o.minor, 0)::bigint as booked_minor,
  coalesce(e.open_minor, 0)::bigint as entries_minor,
  (coalesce(o.minor, 0) - coalesce(m.minor, 0))::bigint as movements_minor
from bank b
left join entries e on e.currency = b.currency
left join booked o on o.currency = b.currency
left join matched m on m.currency = b.currency
order by b.currency`;
}
