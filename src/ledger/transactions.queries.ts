import type { HotStatement } from '../db/sql.ts';

/** The longest list of transactions that the interface gives. */
const LIST_ENTRIES = 50;

/**
 * Finds active transactions by reference. In: columns $1 merchant, $2 reference. Out: a row for each that is found.
 *
 * The redemption comes first, then the activation; one index holds both, and a transaction id stands in for a reference
 * that was not given. Rows that an update made have no operation, so `NEW-x` and `CANCEL-x` find nothing by themselves.
 */
export const FIND_TRANSACTION: HotStatement = {
  name: 'find-transaction',
  text: `
select a.ord::int as ord, t.id, t.kind, t.amount_minor, b.decimals, t.occurred_at, t.reference, t.serial_number, v.sealed,
  t.original_id, false as canceled
from unnest($1::int[], $2::text[]) with ordinality as a (merchant_id, reference, ord)
cross join lateral (
  select j.id from journal j
  where j.merchant_id = a.merchant_id and j.operation in ('redeem', 'activate')
    and (coalesce(j.reference, j.id::text) collate "C") = a.reference
  order by j.operation desc
  limit 1
) asked
cross join lateral (
  select coalesce(
    (select n.id from journal n where n.original_id = asked.id and n.kind = 'REDEMPTION'),
    case when not exists (select from journal r where r.original_id = asked.id and r.kind = 'REDEMPTION_REVERSAL')
      then asked.id end
  ) as id
  offset 0
) active
cross join lateral (select j.* from journal j where j.id = active.id limit 1) t
cross join lateral (select c.sealed, c.batch_id from vouchers c where c.serial_number = t.serial_number limit 1) v
cross join lateral (select l.decimals from batches l where l.id = v.batch_id limit 1) b`,
};

/**
 * Whether an update has reversed the redemption `j`. A value of one row, since `exists` may be worked out for all rows of
 * the journal at once, by reading through it.
 */
const IS_REVERSED = `coalesce(
  (select true from journal r where r.original_id = j.id and r.kind = 'REDEMPTION_REVERSAL' limit 1), false)`;

/**
 * The newest transactions of a merchant, from two sources: what it did, by an index of its own, and what its batches
 * activated, from the newest completed ones backwards. A batch of millions is so never read through to find fifty rows.
 * In: $1 merchant, $2 whether only what is in force is wanted.
 */
export const LIST_TRANSACTIONS: HotStatement = {
  name: 'list-transactions',
  text: `
with done as (
  select j.id, j.kind, j.amount_minor, j.occurred_at, j.reference, j.serial_number, j.original_id,
    ${IS_REVERSED} as canceled
  from journal j
  where j.merchant_id = $1::int and j.batch_id is null
    and j.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL')
    and (not $2::boolean or j.kind = 'ACTIVATION' or (j.kind = 'REDEMPTION'
      and not ${IS_REVERSED}))
  order by j.id desc
  limit ${LIST_ENTRIES}
), completed as (
  select id, reference from batches
  where merchant_id = $1::int and status = 'COMPLETED'
    and value_minor is not null and activation = 'immediate'
  order by ended_at desc
  limit ${LIST_ENTRIES}
), generated as (
  select j.id, j.kind, j.amount_minor, j.occurred_at, c.reference, j.serial_number, j.original_id, false as canceled
  from completed c
  cross join lateral (
    select serial_number from vouchers where batch_id = c.id order by serial_number desc limit ${LIST_ENTRIES}
  ) v
  cross join lateral (
    select * from journal a
    where a.serial_number = v.serial_number and a.kind = 'ACTIVATION' and a.batch_id = c.id
    limit 1
  ) j
)
select t.*, b.decimals, v.sealed
from (select * from done union all select * from generated order by id desc limit ${LIST_ENTRIES}) t
cross join lateral (select c.sealed, c.batch_id from vouchers c where c.serial_number = t.serial_number limit 1) v
cross join lateral (select l.decimals from batches l where l.id = v.batch_id limit 1) b
order by t.id desc`,
};
