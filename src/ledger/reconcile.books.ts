import { sql } from '../db/sql.ts';
import { COMMISSION, listOf, withReversals } from './kinds.ts';
import { type Checks, EXAMPLES } from './reconcile.scope.ts';

/** Checks the days of the books, and compares the journal with their slices. */
export const BOOKS: Checks = {
  // The days follow each other, each from midnight to midnight of its zone.
  days: () => ({
    checked: sql`select count(*) from book_days`,
    differing: sql`
  select d.day::text, d.starts_at as "startsAt", d.ends_at as "endsAt"
  from (
    select d.*, lag(d.day) over w as day_before, lag(d.ends_at) over w as ended_at
    from book_days d window w as (order by d.day)
  ) d
  where d.ends_at <> (d.day + 1)::timestamp at time zone d.zone
    or d.day_before is not null and (d.day - d.day_before <> 1 or d.starts_at <> d.ended_at)
    or d.day_before is null and d.starts_at <> d.day::timestamp at time zone d.zone`,
  }),

  // The days, the statements and the settlements are sums of slices. A row that is in no slice is in none of
  // them. The slices are found by the time of a row here, whatever its id. The books find the rows of a slice
  // by their ids. So this also finds a row that the books can never find. A booking is at most a minute ahead
  // of the clock of this process.
  slices: ({ since, now }) => ({
    given: sql`
moved as (
  select r.slice_at, r.currency, r.kind, count(*) as rows, sum(r.amount_minor) as amount_minor,
    (array_agg(r.id) filter (
      where not is_id_near(r.id, r.occurred_at)
        or r.occurred_at > ${now}::timestamptz + interval '1 hour'))[1:${EXAMPLES}] as lost
  from book_rows r where r.place >= ${since.id}::uuid
  group by 1, 2, 3
), sliced as (
  select starts_at as slice_at, currency, kind, sum(rows) as rows, sum(amount_minor) as amount_minor
  from book_slices where starts_at >= ${since.at}::timestamptz
  group by 1, 2, 3
)`,
    checked: sql`select coalesce(sum(rows), 0)::bigint from moved`,
    differing: sql`
  select slice_at as "slice", currency, kind, null::uuid as "transactionId",
    coalesce(m.rows, 0) as "journalRows", coalesce(s.rows, 0) as "sliceRows",
    coalesce(m.amount_minor, 0)::text as "journalMinor", coalesce(s.amount_minor, 0)::text as "sliceMinor"
  from (
    select * from moved
    where slice_at >= ${since.at}::timestamptz and slice_at < (select sealed_until from books)
  ) m
  full join sliced s using (slice_at, currency, kind)
  where m.rows is distinct from s.rows or m.amount_minor is distinct from s.amount_minor
  union all
  select m.slice_at, m.currency, m.kind, l.id, null, null, null, null
  from moved m cross join unnest(m.lost) as l (id)
  union all
  select s.slice_at, s.currency, s.kind, null, null, s.rows, null, s.amount_minor::text
  from sliced s
  where not exists (
    select 1 from book_days y where y.starts_at <= s.slice_at and y.ends_at > s.slice_at
  )`,
  }),
};

/** Compares the ages of vouchers, which each seal moves on, with all vouchers. */
export const AGES: Checks = {
  ages: () => ({
    given: sql`
held as (
  select h.currency, h.product_id, h.issuer_id, h.basis, age_of(h.basis, h.at) as at,
    sum(h.vouchers) as vouchers, sum(h.amount_minor) as amount_minor
  from books b cross join lateral held_ages(b.sealed_until) h
  where b.sealed_until is not null group by 1, 2, 3, 4, 5
), known as (
  select * from book_ages where vouchers <> 0 or amount_minor <> 0
)`,
    checked: sql`select count(*) from known`,
    differing: sql`
  select currency, product_id as "productId", issuer_id as "issuerId", basis, at,
    coalesce(k.amount_minor, 0)::text as "ageMinor", coalesce(h.amount_minor, 0)::text as "vouchersMinor"
  from known k full join held h using (currency, product_id, issuer_id, basis, at)
  where k.vouchers is distinct from h.vouchers or k.amount_minor is distinct from h.amount_minor`,
  }),
};

/** The checks of a reconciliation since the last closing alone. */
export const OPENING: Checks = {
  // Only the totals of the closing are compared. `scrip books verify` proves the closing itself.
  opening: ({ since }) => ({
    given: sql`
closed as (
  select b.* from book_closings c
  cross join lateral json_to_recordset(c.totals::json -> 'balances')
    as b (currency text, account_kind text, closing numeric)
  where c.day = ${since.day}::date
), stored as (
  select currency, account_kind, sum(balance_minor) as minor from book_balances
  where day = ${since.day}::date group by 1, 2
)`,
    checked: sql`select count(*) from book_balances where day = ${since.day}::date`,
    differing: sql`
  select currency, account_kind as "accountKind", s.minor::text as "balanceMinor",
    c.closing::text as "closedMinor"
  from stored s full join closed c using (currency, account_kind)
  where coalesce(s.minor, 0) <> coalesce(c.closing, 0)`,
  }),

  // The balances of all vouchers are their opening balances and the movements since.
  'voucher-totals': ({ since }) => ({
    given: sql`
booked as (
  select p.currency, p.issuer_id, p.product_id, sum(p.minor) as minor
  from (
    select currency, issuer_id, product_id, balance_minor as minor from book_balances
    where day = ${since.day}::date and account_kind = 'VOUCHER'
    union all
    select m.currency, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
    from slice_movements(${since.at}::timestamptz, database_time() + interval '1 day') m
    cross join lateral effects(
      m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor
    ) e
    where e.account_kind = 'VOUCHER'
  ) p
  group by 1, 2, 3
), held as (
  select b.currency, b.merchant_id as issuer_id, b.product_id, sum(v.minor) as minor, sum(v.rows) as rows
  from (
    select batch_id, sum(balance_minor) as minor, count(*) as rows from vouchers group by batch_id
  ) v
  join batches b on b.id = v.batch_id
  group by 1, 2, 3
)`,
    checked: sql`select sum(rows)::bigint from held`,
    differing: sql`
  select currency, issuer_id as "merchantId", product_id as "productId",
    coalesce(h.minor, 0)::text as "balanceMinor", coalesce(b.minor, 0)::text as "journalMinor"
  from held h full join booked b using (currency, issuer_id, product_id)
  where coalesce(h.minor, 0) <> coalesce(b.minor, 0)`,
  }),

  // The database itself refuses rows whose id is far from their time: rows with earlier ids are not read.
  'journal-ids': () => ({
    given: sql`
parts as (
  select 'journal'::regclass as id
  union all
  select inhrelid from pg_inherits where inhparent = 'journal'::regclass
)`,
    checked: sql`select count(*) from parts`,
    differing: sql`
  select p.id::regclass::text as "table", 'journal_id_near_time' as "missing"
  from parts p
  where not exists (
    select 1 from pg_constraint k
    where k.conrelid = p.id and k.conname = 'journal_id_near_time' and k.convalidated
  )`,
  }),
};

/**
 * Compares commission with the day's redemptions and corrections and the terms of the day of each redemption,
 * and with its rows in the journal.
 * @param day only this day; null: every closed day
 */
export const differingFees = (day: string | null) => ({
  given: sql`
corrected as (
  select day, original_day, merchant_id, product_id, currency, again_minor - amount_minor as minor
  from book_reversals where ${day}::date is null or day = ${day}::date
), nets as (
  select day, of_day, merchant_id, product_id, currency, sum(minor) as net_minor
  from (
    select day, day as of_day, merchant_id, product_id, currency,
      case kind when 'REDEMPTION' then amount_minor else -amount_minor end as minor
    from book_movements
    where kind in ${listOf(withReversals('REDEMPTION'))} and (${day}::date is null or day = ${day}::date)
    union all
    select day, day, merchant_id, product_id, currency, -minor from corrected
    union all
    select day, original_day, merchant_id, product_id, currency, minor from corrected
  ) m
  group by 1, 2, 3, 4, 5 having sum(minor) <> 0
), due as (
  select n.*, t.commission_ppm, t.vat_ppm
  from nets n
  cross join lateral (
    select r.commission_ppm, r.vat_ppm from settlement_terms r
    where r.merchant_id = n.merchant_id and r.product_id in (0, n.product_id) and r.valid_from <= n.of_day
    order by r.product_id = 0, r.valid_from desc limit 1
  ) t
), noted as (
  select * from settlement_fees where ${day}::date is null or day = ${day}::date
), rows as (
  select id, kind::text as kind, amount_minor, merchant_id, currency, day
  from fee_movements where ${day}::date is null or day = ${day}::date
), bounds as (
  select min(starts_at) as starts_at, max(ends_at) as ends_at from book_days
  where ${day}::date is null or day = ${day}::date
), made as materialized (
  select j.id, j.kind::text as kind, j.amount_minor, j.merchant_id, j.currency, j.booked_at
  from book_rows j
  where j.kind in ${listOf(COMMISSION)}
    and j.place >= (select id_floor(b.starts_at, '-1 hour') from bounds b)
    and j.place < (select id_floor(b.ends_at, '1 hour') from bounds b)
), booked as (
  select m.id, m.kind, m.amount_minor, m.merchant_id, m.currency, d.day
  from made m
  join book_days d on m.booked_at >= d.starts_at and m.booked_at < d.ends_at
  where ${day}::date is null or d.day = ${day}::date
), differing as (
  select day, merchant_id, product_id, currency, f.fee_minor, null::uuid as id
  from due d full join noted f using (day, of_day, merchant_id, product_id, currency)
  where (d.net_minor, d.commission_ppm, d.vat_ppm) is distinct from (f.net_minor, f.commission_ppm, f.vat_ppm)
    or f.fee_minor <> sign(f.net_minor)
      * div(abs(f.net_minor)::numeric * f.commission_ppm + 500000, 1000000)
    or f.vat_minor <> sign(f.fee_minor) * div(abs(f.fee_minor)::numeric * f.vat_ppm + 500000, 1000000)
  union all
  select coalesce(r.day, b.day), coalesce(r.merchant_id, b.merchant_id), null,
    coalesce(r.currency, b.currency), r.amount_minor, coalesce(r.id, b.id)
  from rows r full join booked b on b.id = r.id
  where (r.kind, r.amount_minor, r.merchant_id, r.currency, r.day)
    is distinct from (b.kind, b.amount_minor, b.merchant_id, b.currency, b.day)
)`,
  checked: sql`select count(*) from noted`,
  differing: sql`
  select day::text, merchant_id as "merchantId", product_id as "productId", currency,
    fee_minor::text as "notedMinor", id as "transactionId"
  from differing`,
});

/** The checks of settlements with merchants. */
export const SETTLEMENTS: Checks = {
  commissions: () => differingFees(null),

  // Every movement on a settlement account up to the last approved settlement is in exactly one settlement.
  // Settlements follow each other without a gap from the first day of the merchant on. Each is the sum of the
  // movements of its days, and begins with the balance at the end of the one before. Numbers have no gap.
  // The documents, the root of the rows, the amount to pay and the day are those that the audit recorded at
  // the approval.
  settlements: () => ({
    given: sql`
approved as (
  select s.*, lag(last_day) over (partition by merchant_id, currency order by first_day) as before_day,
    row_number() over (partition by merchant_id, year order by number) as place
  from settlements s where state <> 'DRAFT'
), lines as (
  select settlement_id, kind, sum(amount_minor) as minor from settlement_lines group by 1, 2
), moved as (
  select a.id as settlement_id, m.kind,
    sum(case when m.credit_kind = 'SETTLEMENT' then m.amount_minor else -m.amount_minor end) as minor
  from approved a
  join book_movements m on m.merchant_id = a.merchant_id and m.currency = a.currency
    and m.day between a.first_day and a.last_day and 'SETTLEMENT' in (m.debit_kind, m.credit_kind)
  group by 1, 2
), held as (
  select a.id as settlement_id,
    coalesce(sum(b.balance_minor) filter (where b.day = a.first_day - 1), 0) as carried_minor,
    coalesce(sum(b.balance_minor) filter (where b.day = a.last_day), 0) as closing_minor
  from approved a
  left join book_balances b on b.account_kind = 'SETTLEMENT' and b.merchant_id = a.merchant_id
    and b.currency = a.currency and b.day in (a.first_day - 1, a.last_day)
  group by 1
), differing as (
  select id, 'days' as what from approved a
  where first_day is distinct from coalesce(before_day + 1, (
      select min(c.day) from book_closings c join merchants m on m.id = a.merchant_id
      where c.ends_at > m.created_at))
    or before_day is null and exists (
      select from book_movements m
      where m.merchant_id = a.merchant_id and m.currency = a.currency and m.day < a.first_day
        and 'SETTLEMENT' in (m.debit_kind, m.credit_kind))
  union all
  select id, 'number' from approved where number <> place
  union all
  select a.id, 'number'
  from (
    select merchant_id, year, max(number) as number, max(id) as id from approved group by 1, 2
  ) a
  full join settlement_numbers n on n.merchant_id = a.merchant_id and n.year = a.year
  where a.number is distinct from n.last_number
  union all
  select a.id, 'content' from approved a
  left join audit e on e.subject = 'settlement ' || a.id and e.action = 'settlement.approve'
  where a.content_hash <> sha256(convert_to(a.csv, 'UTF8'))
    or (e.after::json ->> 'contentHash', e.after::json ->> 'pdfHash', e.after::json ->> 'root',
        e.after::json ->> 'dueOn',
        split_part(e.after::json ->> 'payable', ' ', 2)::numeric * power(10::numeric, a.decimals))
      is distinct from (encode(a.content_hash, 'hex'), encode(sha256(a.pdf), 'hex'),
        encode(a.root, 'hex'), a.due_on::text,
        a.payable_minor::numeric)
  union all
  select coalesce(l.settlement_id, m.settlement_id), 'lines'
  from (select l.* from lines l join approved a on a.id = l.settlement_id) l
  full join moved m on m.settlement_id = l.settlement_id and m.kind = l.kind
  where l.minor is distinct from m.minor
  union all
  select a.id, 'balances' from approved a join held h on h.settlement_id = a.id
  where (a.carried_minor, a.closing_minor) is distinct from (h.carried_minor, h.closing_minor)
)`,
    checked: sql`select count(*) from approved`,
    differing: sql`
  select distinct id as "settlementId", what from differing`,
  }),

  // A payout moves the amount of its settlement. A settlement is paid as long as its last payout was not
  // returned.
  payouts: () => ({
    given: sql`
noted as (
  select p.*, s.merchant_id, s.currency, s.payable_minor, s.state,
    row_number() over (partition by p.settlement_id order by p.id desc) = 1 as is_last
  from settlement_payouts p join settlements s on s.id = p.settlement_id
), booked as (
  select * from journal where kind in ('PAYOUT', 'PAYOUT_RETURN')
)`,
    checked: sql`select count(*) from noted`,
    differing: sql`
  select coalesce(n.id, b.id) as "transactionId", n.settlement_id as "settlementId",
    n.amount_minor::text as "notedMinor", b.amount_minor::text as "journalMinor"
  from noted n full join booked b on b.id = n.id
  where (n.kind, n.amount_minor, n.merchant_id, n.currency)
      is distinct from (b.kind, b.amount_minor, b.merchant_id, b.currency)
    or n.amount_minor <> n.payable_minor
    or n.is_last and n.state::text <> case n.kind when 'PAYOUT' then 'PAID' else 'RETURNED' end
  union all
  select null, s.id, null, null from settlements s
  where s.state in ('PAID', 'RETURNED')
    and not exists (select from settlement_payouts p where p.settlement_id = s.id)`,
  }),
};
