import type { HotStatement } from '../db/sql.ts';

/** The longest history that a balance answer tells: the newest entries. A voucher with more is one nobody reads. */
export const HISTORY = 1_000;

/**
 * Looks up a list of balances where nothing has to be counted: the PIN is right, and no wrong one came before it. In: columns
 * $1 merchant, $2 code key, $3 PIN key; and $4, the time. Out: a row for each of these, and none for all others.
 *
 * That is nearly every call, and it takes a third of what the statement below does, which looks once more under the
 * voucher's lock. The history comes as the rows are, the newest first: which of them are in force shows when all are
 * there, and an index look-up for each would be half of the statement's work.
 */
export const READ_BALANCE: HotStatement = {
  name: 'read-balance',
  text: `
select a.ord::int as ord, v.serial_number, b.decimals, v.balance_minor, v.value_minor,
  case when v.activated_at is null or v.blocked_at is not null or v.closed is not null or v.expires_at <= $4
    then 0 else v.balance_minor end as usable_minor,
  h.history
from unnest($1::int[], $2::uuid[], $3::uuid[]) with ordinality as a (merchant_id, code_key, pin_key, ord)
cross join lateral (select * from vouchers c where c.code_key = a.code_key limit 1) v
cross join lateral (
  select n.decimals, n.reference from batches n where n.id = v.batch_id and n.status = 'COMPLETED' limit 1
) b
cross join lateral (
  select json_agg(json_build_array(e.id, e.kind, e.amount_minor, e.occurred_at,
    case when e.merchant_id = a.merchant_id then case when e.batch_id is null then e.reference else b.reference end
      else '' end, e.original_id)) as history
  from (
    select j.id, j.kind, j.amount_minor, j.occurred_at, j.merchant_id, j.batch_id, j.reference, j.original_id
    from journal j
    where j.serial_number = v.serial_number
    order by j.id desc
    limit ${HISTORY}
  ) e
) h
where v.pin_key = a.pin_key and v.wrong_pins = 0 and v.pin_locked_until is null`,
};

/**
 * Looks up a list of balances. In: columns $1 merchant, $2 code key, $3 PIN key; and $4, the time. Out: a row each.
 *
 * A right PIN on a voucher without wrong ones before it is a plain read. Any other is looked at once more under the
 * voucher's lock, on the newest row, and counted there: so no number of guesses at the same time sees more than its five.
 * An unknown code writes into the log as well, what nobody reads: so it waits for the disk as a wrong PIN does, which was 0.3 ms
 * otherwise, and told whether a code exists. The history holds what is in force: no reversal, and no redemption that an update
 * has replaced. It comes from the snapshot:
 * of a row that has changed since, balance and history would not fit together, so the next statement looks (`again`).
 */
export const BALANCE: HotStatement = {
  name: 'balance',
  text: `
with asked as (
  select *, row_number() over (partition by code_key order by ord) as turn
  from unnest($1::int[], $2::uuid[], $3::uuid[]) with ordinality as a (merchant_id, code_key, pin_key, ord)
), seen as materialized (
  select a.ord, a.code_key, v.serial_number, v.batch_id, v.pin_key, v.value_minor, v.balance_minor, v.activated_at, v.expires_at,
    v.blocked_at, v.closed, v.wrong_pins, v.pin_locked_until, v.version, v.pin_key = a.pin_key as pin_ok
  from asked a
  cross join lateral (select * from vouchers c where c.code_key = a.code_key limit 1) v
  where a.turn = 1
), held as materialized (
  select serial_number, code_key, batch_id, pin_key, value_minor, balance_minor, activated_at, expires_at, blocked_at, closed,
    wrong_pins, pin_locked_until, version
  from vouchers where serial_number = any (array(select serial_number from seen where not pin_ok or wrong_pins > 0))
  order by serial_number
  for update
), newest as (
  select s.ord, s.serial_number, s.batch_id, s.pin_key, s.value_minor, s.balance_minor, s.activated_at, s.expires_at,
    s.blocked_at, s.closed, s.wrong_pins, s.pin_locked_until, false as stale
  from seen s where s.pin_ok and s.wrong_pins = 0
  union all
  -- A voucher that was sealed anew since it was seen is looked up by another key.
  select s.ord, h.serial_number, h.batch_id, h.pin_key, h.value_minor, h.balance_minor, h.activated_at, h.expires_at,
    h.blocked_at, h.closed, h.wrong_pins, h.pin_locked_until, h.version <> s.version as stale
  from seen s join held h using (serial_number, code_key)
), decided as materialized (
  select a.ord, a.merchant_id, v.serial_number, v.value_minor, v.balance_minor, v.activated_at, v.expires_at,
    v.blocked_at, v.closed, v.wrong_pins, b.decimals, b.reference as batch_reference,
    case
      when a.turn > 1 then 'again'
      when b.id is null and pg_logical_emit_message(true, 'scrip', '') is not null then '14'
      when v.pin_locked_until > $4 then '75'
      when v.pin_key <> a.pin_key then '55'
      when v.stale then 'again'
      else 'ok'
    end as outcome
  from asked a
  left join newest v on v.ord = a.ord
  left join lateral (
    select n.id, n.decimals, n.reference from batches n where n.id = v.batch_id and n.status = 'COMPLETED' limit 1
  ) b on true
), touched as (
  update vouchers v set
    wrong_pins = t.wrong_pins,
    pin_locked_until = case
      when t.wrong_pins = 5 then $4 + interval '15 minutes'
      when t.wrong_pins = 10 then $4 + interval '24 hours'
      when t.wrong_pins = 15 then 'infinity'
    end,
    version = v.version + 1
  from (
    select serial_number, case when outcome = '55' then least(wrong_pins + 1, 15) else 0 end as wrong_pins
    from decided where outcome = '55' or (outcome = 'ok' and wrong_pins > 0)
  ) t
  where v.serial_number = t.serial_number
)
select d.ord::int as ord, d.outcome, d.serial_number, d.decimals, d.balance_minor, d.value_minor,
  case when d.activated_at is null or d.blocked_at is not null or d.closed is not null or d.expires_at <= $4
    then 0 else d.balance_minor end as usable_minor,
  h.history
from decided d
left join lateral (
  select json_agg(json_build_array(e.id, e.kind, e.amount_minor, e.occurred_at, e.reference) order by e.id) as history
  from (
    select j.id, j.kind, j.amount_minor, j.occurred_at,
      case when j.merchant_id = d.merchant_id then case when j.batch_id is null then j.reference else d.batch_reference end
        else '' end as reference
    from journal j
    where d.outcome = 'ok' and j.serial_number = d.serial_number and j.kind in ('ACTIVATION', 'REDEMPTION')
      -- A value of one row: what is asked by exists may be worked out for the whole journal at once.
      and (select true from journal r where r.original_id = j.id and r.kind = 'REDEMPTION_REVERSAL' limit 1) is null
    order by j.id desc
    limit ${HISTORY}
  ) e
) h on true`,
};
