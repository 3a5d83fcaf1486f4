import type { HotStatement } from '../db/sql.ts';
import { openEndpoints } from '../webhooks/queries.ts';

/**
 * Decides and books a list of updates in one statement; built like the statement of redemptions.
 *
 * In:  columns $1 merchant, $2 reference, $3 new amount in ten-thousandths, $4 id of the reversal and $5 of the new
 *      redemption to be; and $6, the time.
 * Out: a row each with the outcome and, where it went through, what there is to show.
 *
 * Only an increase needs a voucher that could be spent: money back goes through on a blocked or an expired one. That a
 * redemption is updated once is a unique index on the journal, whatever runs at the same time.
 */
export const UPDATE_REDEMPTION: HotStatement = {
  name: 'update-redemption',
  text: `
with asked as (
  select a.*, p.id as original_id, p.serial_number, p.amount_minor as original_minor, p.credit_account as settlement,
    p.currency, p.occurred_at as original_at, p.reference as original_reference,
    row_number() over (partition by coalesce(p.serial_number, -a.ord) order by a.ord) as turn
  from unnest($1::int[], $2::text[], $3::bigint[], $4::uuid[], $5::uuid[]) with ordinality
    as a (merchant_id, reference, amount, reversal_id, new_id, ord)
  left join lateral (
    select j.* from journal j
    where j.merchant_id = a.merchant_id and j.operation = 'redeem'
      and (coalesce(j.reference, j.id::text) collate "C") = a.reference
    limit 1
  ) p on true
), locked as materialized (
  select serial_number, batch_id, sealed, balance_minor, expires_at, blocked_at, closed, version
  from vouchers where serial_number = any (array(select serial_number from asked))
  order by serial_number
  for update
), finest as (
  select ('{10000,1000,100,10,1}'::bigint[])[max(decimals) + 1] as unit from products
), decided as materialized (
  select a.*, v.version, v.sealed, b.decimals, a.amount / b.unit as new_minor,
    case
      when a.turn > 1 then 'again'
      when a.amount % f.unit <> 0 or a.amount % b.unit <> 0 then '13'
      when a.original_id is null then '60'
      when v.closed is not null then '44'
      when v.blocked_at is not null and a.amount / b.unit > a.original_minor then '43'
      when v.expires_at <= $6 and a.amount / b.unit > a.original_minor then '54'
      -- A value of one row: what is asked by exists may be worked out for the whole journal at once.
      when (select true from journal r where r.original_id = a.original_id and r.kind = 'REDEMPTION_REVERSAL' limit 1) then '58'
      when a.amount / b.unit > v.balance_minor + a.original_minor then '51'
      else 'ok'
    end as outcome
  from asked a
  cross join finest f
  left join locked v on v.serial_number = a.serial_number
  left join lateral (
    select n.decimals, ('{10000,1000,100,10,1}'::bigint[])[n.decimals + 1] as unit from batches n where n.id = v.batch_id limit 1
  ) b on true
), reversed as (
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
    reference, original_id, occurred_at)
  select reversal_id, 'REDEMPTION_REVERSAL', settlement, serial_number, original_minor, currency, merchant_id,
    serial_number, 'CANCEL-' || original_reference, original_id, $6
  from decided where outcome = 'ok'
  order by original_id
  on conflict do nothing
  returning id, merchant_id, original_id
), announced as (
  insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, occurred_at, due_at)
  select e.id, r.id, 'redemption.updated', r.id, $6, $6
  from reversed r cross join lateral ${openEndpoints('r.merchant_id', "'redemption.updated'")} e
), renewed as (
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
    reference, original_id, occurred_at)
  select d.new_id, 'REDEMPTION', d.serial_number, d.settlement, d.new_minor, d.currency, d.merchant_id,
    d.serial_number, 'NEW-' || d.original_reference, d.original_id, $6
  from decided d join reversed r on r.id = d.reversal_id where d.new_minor > 0
  returning id
), touched as (
  update vouchers v set balance_minor = v.balance_minor + t.returned, version = v.version + 1
  from (
    select d.serial_number, d.original_minor - d.new_minor as returned from decided d join reversed r on r.id = d.reversal_id
  ) t
  where v.serial_number = t.serial_number
)
select d.ord::int as ord,
  case
    when d.outcome = 'ok' and r.id is null then 'again'
    when d.outcome in ('44', '43', '54', '51')
      and d.version <> (select n.version from vouchers n where n.serial_number = d.serial_number) then 'again'
    else d.outcome
  end as outcome,
  d.original_id, d.original_minor, d.original_at, d.original_reference, d.serial_number, d.sealed, d.decimals,
  d.reversal_id, $6::timestamptz as updated_at, case when d.new_minor > 0 then d.new_id end as new_id, d.new_minor
from decided d left join reversed r on r.id = d.reversal_id`,
};

/** Finds updates by the reference of their redemption. In: columns $1 merchant, $2 reference. Out: as for an update. */
export const FIND_UPDATE: HotStatement = {
  name: 'find-update',
  text: `
select a.ord::int as ord, 'ok' as outcome, p.id as original_id, p.amount_minor as original_minor, p.occurred_at as original_at,
  p.reference as original_reference, p.serial_number, v.sealed, b.decimals,
  r.id as reversal_id, r.occurred_at as updated_at, n.id as new_id, coalesce(n.amount_minor, 0) as new_minor
from unnest($1::int[], $2::text[]) with ordinality as a (merchant_id, reference, ord)
cross join lateral (
  select j.* from journal j
  where j.merchant_id = a.merchant_id and j.operation = 'redeem'
    and (coalesce(j.reference, j.id::text) collate "C") = a.reference
  limit 1
) p
cross join lateral (
  select * from journal j where j.original_id = p.id and j.kind = 'REDEMPTION_REVERSAL' limit 1
) r
left join lateral (select * from journal j where j.original_id = p.id and j.kind = 'REDEMPTION' limit 1) n on true
cross join lateral (select c.sealed, c.batch_id from vouchers c where c.serial_number = p.serial_number limit 1) v
cross join lateral (select l.decimals from batches l where l.id = v.batch_id limit 1) b`,
};
