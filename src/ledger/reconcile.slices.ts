import { sql } from '../db/sql.ts';
import { type Checks, EXAMPLES } from './reconcile.scope.ts';

/** How far a row may be ahead of the clock of this process. A booking is at most a minute ahead. */
const AHEAD_MAX = '1 hour';

/** Compares the journal with the slices of the books. */
export const SLICES: Checks = {
  // The days, the statements and the settlements are sums of slices. A row that is in no slice is in none of
  // them. The slices are found by the time of a row here, whatever its id. The books find the rows of a slice
  // by their ids. So this also finds a row that the books can never find.
  slices: ({ since, now }) => sql`
with moved as (
  select r.slice_at, r.currency, r.kind, count(*) as rows, sum(r.amount_minor) as amount_minor,
    (array_agg(r.id) filter (
      where not is_id_near(r.id, r.occurred_at)
        or r.occurred_at > ${now}::timestamptz + ${AHEAD_MAX}::interval))[1:${EXAMPLES}] as lost
  from book_rows r where r.place >= ${since.id}::uuid
  group by 1, 2, 3
), sliced as (
  select starts_at as slice_at, currency, kind, sum(rows) as rows, sum(amount_minor) as amount_minor
  from book_slices where starts_at >= ${since.at}::timestamptz
  group by 1, 2, 3
)
select (select coalesce(sum(rows), 0) from moved)::bigint as checked, json_agg(d) as differing from (
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
  )
  limit ${EXAMPLES}
) d`,
};

/**
 * Checks that the database itself refuses rows whose id is far from their time. A reconciliation since the
 * last closing does not read rows with earlier ids.
 */
export const IDS: Checks = {
  'journal-ids': () => sql`
with parts as (
  select 'journal'::regclass as id
  union all
  select inhrelid from pg_inherits where inhparent = 'journal'::regclass
)
select (select count(*) from parts) as checked, json_agg(d) as differing from (
  select p.id::regclass::text as "table", 'journal_id_near_time' as "missing"
  from parts p
  where not exists (
    select 1 from pg_constraint k
    where k.conrelid = p.id and k.conname = 'journal_id_near_time' and k.convalidated
  )
  limit ${EXAMPLES}
) d`,
};

/** Checks that the days of the books follow each other, each from midnight to midnight of its zone. */
export const DAYS: Checks = {
  days: () => sql`
select (select count(*) from book_days) as checked, json_agg(e) as differing from (
  select d.day::text, d.starts_at as "startsAt", d.ends_at as "endsAt"
  from (
    select d.*, lag(d.day) over w as day_before, lag(d.ends_at) over w as ended_at
    from book_days d window w as (order by d.day)
  ) d
  where d.ends_at <> (d.day + 1)::timestamp at time zone d.zone
    or d.day_before is not null and (d.day - d.day_before <> 1 or d.starts_at <> d.ended_at)
    or d.day_before is null and d.starts_at <> d.day::timestamp at time zone d.zone
  limit ${EXAMPLES}
) e`,
};

/** Compares the ages of vouchers, which each seal moves on, with all vouchers. */
export const AGES: Checks = {
  ages: () => sql`
with held as (
  select h.currency, h.product_id, h.issuer_id, h.basis, age_of(h.basis, h.at) as at,
    sum(h.vouchers) as vouchers, sum(h.amount_minor) as amount_minor
  from books b cross join lateral held_ages(b.sealed_until) h
  where b.sealed_until is not null group by 1, 2, 3, 4, 5
), known as (
  select * from book_ages where vouchers <> 0 or amount_minor <> 0
)
select (select count(*) from known) as checked, json_agg(d) as differing from (
  select currency, product_id as "productId", issuer_id as "issuerId", basis, at,
    coalesce(k.amount_minor, 0)::text as "ageMinor", coalesce(h.amount_minor, 0)::text as "vouchersMinor"
  from known k full join held h using (currency, product_id, issuer_id, basis, at)
  where k.vouchers is distinct from h.vouchers or k.amount_minor is distinct from h.amount_minor
  limit ${EXAMPLES}
) d`,
};
