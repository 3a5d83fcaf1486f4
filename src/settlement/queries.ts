import { type Sql, sql } from '../db/sql.ts';

export type SettlementRow = {
  id: number;
  merchant_id: number;
  merchant: string;
  currency: string;
  decimals: number;
  first_day: string;
  last_day: string;
  starts_at: Date;
  ends_at: Date;
  zone: string;
  state: 'DRAFT' | 'APPROVED' | 'PAID' | 'RETURNED';
  carried_minor: bigint;
  closing_minor: bigint;
  outstanding_minor: bigint;
  payable_minor: bigint;
  due_on: string;
  closing_hash: Buffer;
  made_by: string;
  made_at: Date;
  year: number | null;
  number: number | null;
  approved_by: string | null;
  approved_at: Date | null;
  content_hash: Buffer | null;
  file_id: number | null;
  open_disputes: number;
};

const COLUMNS = `
  s.id, s.merchant_id, m.name as merchant, s.currency, s.decimals, s.first_day::text, s.last_day::text,
  s.starts_at, s.ends_at, s.zone, s.state, s.carried_minor, s.closing_minor, s.outstanding_minor,
  s.payable_minor, s.due_on::text, s.closing_hash, s.made_by, s.made_at, s.year, s.number, s.approved_by,
  s.approved_at, s.content_hash, s.file_id,
  (select count(*) from settlement_disputes d where d.settlement_id = s.id and d.answer is null)::integer
    as open_disputes`;

export function findSettlement(id: number): Sql {
  return {
    text: `select ${COLUMNS} from settlements s join merchants m on m.id = s.merchant_id where s.id = $1`,
    values: [id],
  };
}

/** Locks a settlement until the transaction ends. */
export function lockSettlement(id: number): Sql {
  return sql`select id from settlements where id = ${id} for update`;
}

/** Locks settlements until the transaction ends, in the order of their ids. */
export function lockSettlements(ids: readonly number[]): Sql {
  return sql`select id from settlements where id = any (${ids}::int[]) order by id for update`;
}

export type SettlementFilter = {
  readonly merchantId: number | null;
  readonly states: readonly string[];
};

/** Lists settlements before an id, newest first. */
export function listSettlementRows(
  { merchantId, states }: SettlementFilter,
  before: number | null,
  count: number,
): Sql {
  // Unpaid settlements have an index of their own, which is small.
  const unpaid = states.includes('PAID') ? '' : `and s.state <> 'PAID'`;
  return {
    text: `
select ${COLUMNS} from settlements s join merchants m on m.id = s.merchant_id
where ($1::integer is null or s.merchant_id = $1) and s.state = any ($2::settlement_state[]) ${unpaid}
  and ($3::integer is null or s.id < $3)
order by s.id desc limit $4`,
    values: [merchantId, states, before, count],
  };
}

/** Lists the ids of the settlements that are due by a day and that no file pays yet, oldest first. */
export function listDue(by: string): Sql {
  return {
    text: `
select s.id from settlements s
where s.state in ('APPROVED', 'RETURNED') and s.payable_minor > 0 and s.due_on <= $1::date
  and s.file_id is null
order by s.id limit 10000`,
    values: [by],
  };
}

/**
 * Returns the first closed day of a merchant and the last closed day, and the last day that an approved
 * settlement of the merchant and currency covers. The days before the merchant was made are not its own.
 */
export function findReach(merchantId: number, currency: string): Sql {
  return sql`
select min(c.day) filter (where c.ends_at > m.created_at)::text as first, max(c.day)::text as last,
  (
    select max(last_day)::text from settlements
    where merchant_id = ${merchantId} and currency = ${currency} and state <> 'DRAFT'
  ) as settled
from merchants m left join book_closings c on true where m.id = ${merchantId}`;
}

/** Lists the currencies in which a merchant's settlement account has movements up to a day. */
export function listCurrencies(merchantId: number, day: string): Sql {
  return sql`
select a.currency, a.decimals from accounts a
where a.merchant_id = ${merchantId} and a.kind = 'SETTLEMENT' and exists (
  select from book_movements b
  where b.day <= ${day}::date and b.merchant_id = a.merchant_id and b.currency = a.currency
    and 'SETTLEMENT' in (b.debit_kind, b.credit_kind))
order by a.currency`;
}

/** Lists the merchants that have a settlement account. */
export const listSettled = sql`
  select distinct merchant_id from accounts where kind = 'SETTLEMENT' order by merchant_id`;

/** Locks the settlements of a merchant, so that they are drafted and approved one at a time. */
export function lockMerchantSettlements(merchantId: number): Sql {
  return sql`select id from merchants where id = ${merchantId} for no key update`;
}

/** Returns the start and end times of an interval of closed days, and the hash of the last closing. */
export function findInterval(from: string, to: string): Sql {
  return sql`
select f.starts_at, t.ends_at, t.zone, t.hash
from book_closings f, book_closings t
where f.day = ${from}::date and t.day = ${to}::date`;
}

/**
 * Returns the balance of a settlement account at the end of a day, credit minus debit; 0 if it has no
 * balance.
 */
export function findBalance(merchantId: number, currency: string, day: string): Sql {
  return sql`
select coalesce(sum(balance_minor), 0)::bigint as minor from book_balances
where day = ${day}::date and account_kind = 'SETTLEMENT' and merchant_id = ${merchantId}
  and currency = ${currency}`;
}

/** Returns the amount of earlier settlements that was unpaid at an instant. */
export function findOutstanding(merchantId: number, currency: string, before: string, endsAt: Date): Sql {
  return sql`
select coalesce(sum(s.payable_minor - coalesce(p.paid_minor, 0)), 0)::bigint as minor
from settlements s
left join lateral (
  select sum(case kind when 'PAYOUT' then amount_minor else -amount_minor end) as paid_minor
  from settlement_payouts where settlement_id = s.id and occurred_at < ${endsAt}
) p on true
where s.merchant_id = ${merchantId} and s.currency = ${currency} and s.state <> 'DRAFT'
  and s.first_day < ${before}::date`;
}

export type NewSettlement = {
  readonly merchantId: number;
  readonly currency: string;
  readonly decimals: number;
  readonly firstDay: string;
  readonly lastDay: string;
  readonly startsAt: Date;
  readonly endsAt: Date;
  readonly zone: string;
  readonly carriedMinor: bigint;
  readonly closingMinor: bigint;
  readonly outstandingMinor: bigint;
  readonly payableMinor: bigint;
  readonly dueOn: string;
  readonly closingHash: Buffer;
  readonly by: string;
  readonly now: Date;
};

/** Makes a draft, or makes an existing draft again. Returns no row if the settlement is no longer a draft. */
export function upsertDraft(s: NewSettlement): Sql {
  return sql`
insert into settlements as s (merchant_id, currency, decimals, first_day, last_day, starts_at, ends_at, zone,
  carried_minor, closing_minor, outstanding_minor, payable_minor, due_on, closing_hash, made_by, made_at)
values (${s.merchantId}, ${s.currency}, ${s.decimals}, ${s.firstDay}::date, ${s.lastDay}::date, ${s.startsAt},
  ${s.endsAt}, ${s.zone}, ${s.carriedMinor}, ${s.closingMinor}, ${s.outstandingMinor}, ${s.payableMinor},
  ${s.dueOn}::date, ${s.closingHash}, ${s.by}, ${s.now})
on conflict (merchant_id, currency, first_day) do update set
  last_day = excluded.last_day, ends_at = excluded.ends_at, zone = excluded.zone,
  carried_minor = excluded.carried_minor, closing_minor = excluded.closing_minor,
  outstanding_minor = excluded.outstanding_minor, payable_minor = excluded.payable_minor,
  due_on = excluded.due_on, closing_hash = excluded.closing_hash, made_by = excluded.made_by,
  made_at = excluded.made_at
where s.state = 'DRAFT'
returning s.id`;
}

/** Takes the next settlement number of a merchant in a year. The row is locked, so no number is skipped. */
export function takeNumber(merchantId: number, year: number): Sql {
  return sql`
insert into settlement_numbers as n (merchant_id, year, last_number) values (${merchantId}, ${year}, 1)
on conflict (merchant_id, year) do update set last_number = n.last_number + 1
returning last_number as number`;
}

export function approveSettlement(
  id: number,
  approved: {
    year: number;
    number: number;
    by: string;
    now: Date;
    contentHash: Buffer;
    csv: string;
    pdf: Buffer;
  },
): Sql {
  const { year, number, by, now, contentHash, csv, pdf } = approved;
  return sql`
update settlements set
  state = 'APPROVED', year = ${year}, number = ${number}, approved_by = ${by}, approved_at = ${now},
  content_hash = ${contentHash}, csv = ${csv}, pdf = ${pdf}
where id = ${id} and state = 'DRAFT'`;
}

export function findDocuments(id: number): Sql {
  return sql`select csv, pdf, content_hash from settlements where id = ${id} and csv is not null`;
}

/** Sets the state of a settlement. One whose payment was returned can be paid by another file. */
export function setState(id: number, state: 'PAID' | 'RETURNED'): Sql {
  return sql`
update settlements set state = ${state}::settlement_state,
  file_id = case when ${state} = 'RETURNED' then null else file_id end
where id = ${id}`;
}

export type NewPayout = {
  readonly id: string;
  readonly settlementId: number;
  readonly kind: 'PAYOUT' | 'PAYOUT_RETURN';
  readonly amountMinor: bigint;
  readonly bankReference: string;
  readonly valueDate: string;
  readonly now: Date;
};

export function insertPayout(payout: NewPayout): Sql {
  const { id, settlementId, kind, amountMinor, bankReference, valueDate, now } = payout;
  return sql`
insert into settlement_payouts (id, settlement_id, kind, amount_minor, bank_reference, value_date,
  occurred_at)
values (${id}, ${settlementId}, ${kind}::entry_kind, ${amountMinor}, ${bankReference}, ${valueDate}::date,
  ${now})`;
}

export function listPayouts(settlementId: number): Sql {
  return sql`
select id, kind::text, amount_minor, bank_reference, value_date::text, occurred_at from settlement_payouts
where settlement_id = ${settlementId} order by id`;
}

export function insertDispute(
  settlementId: number,
  line: string | null,
  comment: string,
  by: string,
  now: Date,
): Sql {
  return sql`
insert into settlement_disputes (settlement_id, line, comment, made_by, made_at)
values (${settlementId}, ${line}, ${comment}, ${by}, ${now}) returning id`;
}

/** Returns no row if the dispute does not exist or has already been answered. */
export function answerDispute(id: number, answer: string, by: string, now: Date): Sql {
  return sql`
update settlement_disputes set answer = ${answer}, answered_by = ${by}, answered_at = ${now}
where id = ${id} and answer is null returning settlement_id`;
}

export function listDisputes(settlementId: number): Sql {
  return sql`
select id, line, comment, made_by, made_at, answer, answered_by, answered_at from settlement_disputes
where settlement_id = ${settlementId} order by id limit 1000`;
}

/** Lists disputes before an id, newest first. */
export function listAllDisputes(
  { merchantId, open }: { readonly merchantId: number | null; readonly open: boolean },
  before: number | null,
  count: number,
): Sql {
  return sql`
select d.id, d.line, d.comment, d.made_by, d.made_at, d.answer, d.answered_by, d.answered_at,
  d.settlement_id, s.merchant_id
from settlement_disputes d join settlements s on s.id = d.settlement_id
where (${merchantId}::integer is null or s.merchant_id = ${merchantId})
  and (${before}::integer is null or d.id < ${before}) and (not ${open}::boolean or d.answer is null)
order by d.id desc limit ${count}`;
}
