import { sql } from '../db/sql.ts';
import { type Checks, EXAMPLES } from './reconcile.check.ts';

/** Batches that have not ended, or ended since. */
const RECENT = "coalesce(ended_at, 'infinity') >= $2::timestamptz";

/** Batches against their vouchers and their reserve, and vouchers against those that replaced them. */
export const BATCHES: Checks = {
  // A voucher that was replaced does not count: the one in its place does. Vouchers are canceled with their
  // batch, or each by a movement of its own.
  batches: ({ quietBefore, since }) => ({
    text: `
with made as (
  select batch_id, count(*) filter (where closed is distinct from 'REPLACED') as vouchers,
    count(*) filter (where closed = 'CANCELED' and not exists (
      select from journal j
      where j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'CANCELLATION'
    )) as canceled
  from vouchers v
  ${since.day === null ? '' : `where batch_id in (select id from batches where ${RECENT})`}
  group by batch_id
)
select (select count(*) from batches where ${RECENT}) as checked, json_agg(d) as differing from (
  select coalesce(b.id, m.batch_id) as "batchId", b.transaction_id as "transactionId", b.status, b.quantity,
    b.produced,
    coalesce(m.vouchers, 0) as vouchers
  from (select * from batches where ${RECENT}) b
  full join made m on m.batch_id = b.id
  where (b.id is null or coalesce(m.vouchers, 0) <> b.produced or b.produced > b.quantity
      or (b.status = 'COMPLETED' and b.produced <> b.quantity) or (b.status <> 'CANCELED' and m.canceled > 0))
    and ($1::timestamptz is null or coalesce(b.ended_at < $1, false))
  limit ${EXAMPLES}
) d`,
    values: [quietBefore, since.at],
  }),

  // A batch reserves its whole price once, and gives it back once where it is canceled.
  reserves: ({ quietBefore, since }) => sql`
with moved as (
  select batch_id, sum(amount_minor) filter (where kind = 'RESERVATION') as reserved,
    coalesce(sum(amount_minor) filter (where kind = 'RELEASE'), 0) as released
  from journal where kind in ('RESERVATION', 'RELEASE') and id >= ${since.id}::uuid group by batch_id
), counted as (
  select *, accepted_at >= ${since.at}::timestamptz as is_new,
    coalesce(ended_at, 'infinity') >= ${since.at}::timestamptz
    as is_over
  from batches
  where value_minor is not null and coalesce(ended_at, accepted_at) >= ${since.at}::timestamptz
)
select (select count(*) from counted) as checked, json_agg(d) as differing from (
  select b.transaction_id as "transactionId", b.status, (b.quantity * b.value_minor)::text as "expectedMinor",
    m.reserved::text as "reservedMinor", m.released::text as "releasedMinor"
  from counted b
  full join moved m on m.batch_id = b.id
  where (b.id is null and not exists (
        select from batches a where a.id = m.batch_id and a.accepted_at < ${since.at}::timestamptz)
      or b.is_new and m.reserved is distinct from b.quantity * b.value_minor
      or b.is_over and coalesce(m.released, 0) <>
        case b.status when 'CANCELED' then b.quantity * b.value_minor else 0 end)
    and (${quietBefore}::timestamptz is null or coalesce(b.ended_at, b.accepted_at) < ${quietBefore})
  limit ${EXAMPLES}
) d`,

  replacements: () => ({
    text: `
select (select count(*) from vouchers where closed = 'REPLACED' or replaced_by is not null) as checked,
  json_agg(d) as differing from (
  select o.serial_number as "serialNumber", o.replaced_by as "replacedBy",
    o.balance_minor::text as "balanceMinor"
  from vouchers o
  left join vouchers n on n.bucket = o.bucket and n.serial_number = o.replaced_by
  left join (
    select bucket, replaced_by, count(*) as times from vouchers where replaced_by is not null
      group by bucket, replaced_by
  ) t on t.bucket = o.bucket and t.replaced_by = o.replaced_by
  where (o.closed = 'REPLACED' or o.replaced_by is not null)
    and (o.closed is distinct from 'REPLACED' or n.serial_number is null or n.batch_id <> o.batch_id
      or o.balance_minor <> 0 or t.times > 1)
  limit ${EXAMPLES}
) d`,
    values: [],
  }),

  // Money goes from a replaced voucher to its successor, or on to the last of the chain by an update.
  'replacement-entries': ({ since }) => sql`
select (select count(*) from journal where kind = 'REPLACEMENT' and id >= ${since.id}::uuid) as checked,
  json_agg(d) as differing from (
  select j.id as "transactionId", j.debit_account as "serialNumber", j.credit_account as "replacedBy"
  from journal j
  left join vouchers o on o.bucket = j.bucket and o.serial_number = j.debit_account and o.closed = 'REPLACED'
  left join vouchers n on n.bucket = j.bucket and n.serial_number = j.credit_account
  where j.kind = 'REPLACEMENT' and j.id >= ${since.id}::uuid and (o.serial_number is null
    or n.serial_number is null
    or n.batch_id <> o.batch_id
    or j.original_id is null and o.replaced_by <> j.credit_account)
  limit ${EXAMPLES}
) d`,
};
