import type { HotStatement } from '../db/sql.ts';
import { openEndpoints } from '../webhooks/queries.ts';

/**
 * The heart of the program: decides and books a list of redemptions in one statement and one transaction.
 *
 * In:  columns of equal length: $1 merchant, $2 code key, $3 PIN key, $4 amount in ten-thousandths of a major unit,
 *      $5 reference or null, $6 id of the transaction to be; and $7, the time.
 * Out: a row each, in no order: its position, the outcome (a status code, `ok`, `replay`, `again` or `account`), and the
 *      transaction that was booked, now (`ok`) or before (`replay`).
 *
 * How it stays right with other statements at the same time, here or in another process:
 * - `locked` takes every voucher's row lock in the order of serial numbers, before anything is written (the sort in
 *   `posted` reads all of `decided` first). A row read under its lock is the newest one, whatever the snapshot.
 * - The journal is read in the statement's snapshot, so a redemption that was committed since is not seen. If it has the
 *   same reference, the insert meets the unique index and does nothing: `again`. If it has drained the voucher, a refusal
 *   could be told to the second copy of an accepted request: so a refusal of a row whose version is newer than the
 *   snapshot's is not told: `again`. The next statement sees the journal as it is.
 * - A voucher stands once in a statement, `turn` makes sure of it: its row can only be updated once.
 *
 * The CASE follows the order of precedence. A used reference comes before the voucher: another voucher or amount is 94
 * without a look at the PIN. The same request is a replay, but only after the PIN was looked at like any other, or a used
 * reference would be a way to try PINs without being counted.
 *
 * An unknown code writes into the log as well, what nobody reads: so it waits for the disk as a wrong PIN does, and the time
 * does not tell the two apart.
 */
export const REDEEM: HotStatement = {
  name: 'redeem',
  text: `
with asked as (
  select *, row_number() over (partition by code_key order by ord) as turn
  from unnest($1::int[], $2::uuid[], $3::uuid[], $4::bigint[], $5::text[], $6::uuid[]) with ordinality
    as a (merchant_id, code_key, pin_key, amount, reference, id, ord)
), locked as materialized (
  select serial_number, batch_id, code_key, pin_key, balance_minor, activated_at, expires_at, blocked_at, closed,
    wrong_pins, pin_locked_until, version
  from vouchers where code_key = any ($2::uuid[])
  order by serial_number
  for update
), finest as (
  -- The finest currency in use: an amount with more decimals is wrong whatever the voucher.
  select ('{10000,1000,100,10,1}'::bigint[])[max(decimals) + 1] as unit from products
), decided as materialized (
  select a.ord, a.id, a.merchant_id, a.reference, v.serial_number, v.version, v.wrong_pins, v.pin_ok,
    a.amount % f.unit <> 0 as too_fine,
    v.currency, s.id as settlement,
    p.id as prior_id, p.occurred_at as prior_at, a.amount / v.unit as amount_minor,
    case
      when a.turn > 1 then 'again'
      when a.amount % f.unit <> 0 then '13'
      when p.id is not null and (p.serial_number is distinct from v.serial_number
        or p.amount_minor <> a.amount / v.unit or a.amount % v.unit <> 0) then '94'
      when v.serial_number is null and pg_logical_emit_message(true, 'scrip', '') is not null then '14'
      when v.pin_locked_until > $7 then '75'
      when not v.pin_ok then '55'
      when p.id is not null then 'replay'
      when a.amount % v.unit <> 0 then '13'
      when v.closed is not null then '44'
      when v.blocked_at is not null then '43'
      when v.expires_at <= $7 then '54'
      when v.activated_at is null then '40'
      when v.scope = 'issuer' and v.issuer <> a.merchant_id then '47'
      when v.balance_minor = 0 then '42'
      when v.balance_minor < a.amount / v.unit then '51'
      when s.id is null then 'account'
      else 'ok'
    end as outcome
  from asked a
  cross join finest f
  left join lateral (
    -- A limit of 1 keeps the look-up a look-up: joined freely, all batches are read for each statement.
    select c.*, c.pin_key = a.pin_key as pin_ok, b.issuer, b.currency, b.scope, b.unit
    from locked c
    cross join lateral (
      select n.merchant_id as issuer, n.currency, n.scope, ('{10000,1000,100,10,1}'::bigint[])[n.decimals + 1] as unit
      from batches n where n.id = c.batch_id and n.status = 'COMPLETED' limit 1
    ) b
    where c.code_key = a.code_key
  ) v on true
  left join lateral (
    select j.id, j.serial_number, j.amount_minor, j.occurred_at from journal j
    where j.merchant_id = a.merchant_id and j.operation = 'redeem'
      and (coalesce(j.reference, j.id::text) collate "C") = a.reference
    limit 1
  ) p on true
  left join lateral (
    select c.id from accounts c
    where coalesce(c.merchant_id, 0) = a.merchant_id and c.kind = 'SETTLEMENT' and c.currency = v.currency
    limit 1
  ) s on true
), posted as (
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
    operation, reference, occurred_at)
  select id, 'REDEMPTION', serial_number, settlement, amount_minor, currency, merchant_id, serial_number,
    'redeem', reference, $7
  from decided where outcome = 'ok'
  order by merchant_id, reference
  on conflict do nothing
  returning id, merchant_id, amount_minor
), booked as materialized (
  -- All of what was posted was decided: a full join goes by a hash, where a left one compares each row with each.
  select d.*, p.id as posted_id, p.amount_minor as posted_minor from decided d full join posted p on p.id = d.id
), announced as (
  insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, occurred_at, due_at)
  select e.id, p.id, 'voucher.redeemed', p.id, $7, $7
  from posted p cross join lateral ${openEndpoints('p.merchant_id', "'voucher.redeemed'")} e
), touched as (
  update vouchers v set
    balance_minor = v.balance_minor - t.spent,
    wrong_pins = t.wrong_pins,
    pin_locked_until = case
      when t.wrong_pins = 5 then $7 + interval '15 minutes'
      when t.wrong_pins = 10 then $7 + interval '24 hours'
      when t.wrong_pins = 15 then 'infinity'
    end,
    version = v.version + 1
  from (
    select serial_number, coalesce(posted_minor, 0) as spent,
      case when outcome = '55' then least(wrong_pins + 1, 15) else 0 end as wrong_pins
    from booked
    where posted_id is not null or outcome = '55'
      or (pin_ok and wrong_pins > 0 and not too_fine and outcome not in ('ok', 'again', '94', '75'))
  ) t
  -- Said twice: the join alone may be worked out by reading all vouchers while they are few, and for long after that.
  where v.serial_number = t.serial_number and v.serial_number = any (array(select serial_number from locked))
)
select d.ord::int as ord,
  case
    when d.outcome = 'ok' and d.posted_id is null then 'again'
    when d.outcome in ('44', '43', '54', '40', '47', '42', '51') and d.reference is not null
      and d.version <> (select n.version from vouchers n where n.serial_number = d.serial_number) then 'again'
    else d.outcome
  end as outcome,
  coalesce(d.posted_id, d.prior_id) as id, case when d.posted_id is null then d.prior_at else $7 end as occurred_at,
  d.serial_number, d.amount_minor, d.currency
from booked d`,
};
