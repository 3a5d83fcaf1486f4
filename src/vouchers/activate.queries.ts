import type { HotStatement } from '../db/sql.ts';
import { openEndpoints } from '../webhooks/queries.ts';

/**
 * Decides and books a list of activations in one statement; built like the statement of redemptions, which explains how
 * it stays right with others at the same time.
 *
 * In:  columns $1 merchant, $2 code key or null, $3 PIN key or null, $4 serial number or null, $5 value in
 *      ten-thousandths of a major unit or null, $6 reference or null, $7 id of the transaction to be; and $8, the time; and
 *      the column $9, the id of the event to be that tells of a low float.
 * Out: as for redemptions, with the sealed code.
 *
 * A voucher comes by code and PIN, or by serial number: then only to the merchant that generated it. The value is the one
 * asked for, else the batch's, else 5000. A batch with a value was paid for when it was generated, from its reserve; one
 * without debits the float of the merchant that activates. Where several activations of a merchant do not fit its float
 * together, those that fit in their order go through, and the others are decided by the next statement: none is refused
 * because of another one that was refused itself. Nor is one refused for a float that has changed since the snapshot, which is
 * told by the place of its row: what debited it may have used the same reference, and that comes first.
 */
export const ACTIVATE: HotStatement = {
  name: 'activate',
  text: `
with asked as (
  select a.*, n.serial_number, row_number() over (partition by coalesce(n.serial_number, -a.ord) order by a.ord) as turn
  from unnest($1::int[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::text[], $7::uuid[], $9::uuid[]) with ordinality
    as a (merchant_id, code_key, pin_key, asked_serial, value, reference, id, low_id, ord)
  left join lateral (
    select coalesce(a.asked_serial, (select c.serial_number from vouchers c where c.code_key = a.code_key)) as serial_number
  ) n on true
), locked as materialized (
  select serial_number, batch_id, code_key, pin_key, sealed, activated_at, expires_at, blocked_at, closed, wrong_pins,
    pin_locked_until, version
  from vouchers where serial_number = any (array(select serial_number from asked))
  order by serial_number
  for update
), floats as materialized (
  select id, merchant_id, currency, balance_minor, ctid as row_at from accounts
  where coalesce(merchant_id, 0) = any ($1::int[]) and kind = 'FLOAT'
    -- Always true. Vouchers are locked before floats, all of them, by every statement; and also one that finds no voucher waits
    -- for the float, or the time would tell that there is none.
    and (select count(*) from locked) >= 0
  order by id + 0 -- by id alone, PostgreSQL 15 reads all accounts in the order of their ids rather than sort the few
  for update
), finest as (
  select ('{10000,1000,100,10,1}'::bigint[])[max(decimals) + 1] as unit from products
), known as materialized (
  select a.ord, a.id, a.low_id, a.merchant_id, a.reference, a.turn, a.asked_serial is null as by_code,
    v.serial_number, v.version, v.wrong_pins, v.pin_key = a.pin_key as pin_ok, v.sealed,
    v.pin_locked_until, v.closed, v.blocked_at, v.expires_at, v.activated_at,
    b.merchant_id as issuer, b.scope, b.currency, b.decimals, b.reserve_account, f.id as float_account,
    p.id as prior_id, p.occurred_at as prior_at, p.serial_number as prior_serial, p.amount_minor as prior_minor,
    coalesce(b.value_minor, a.value / b.unit, 5000 * 10000 / b.unit) as value_minor,
    a.value % finest.unit <> 0 as too_fine,
    a.value % b.unit <> 0 or a.value / b.unit <> b.value_minor as other_value,
    b.value_minor is null and (coalesce(a.value / b.unit, 5000 * 10000 / b.unit) not between r.min_value_minor and r.max_value_minor)
      as out_of_limits,
    f.balance_minor as float_minor, f.row_at as float_at
  from asked a
  cross join finest
  left join lateral (
    -- A limit of 1 keeps the look-up a look-up: joined freely, all batches are read for each statement.
    select c.* from locked c
    cross join lateral (
      select l.merchant_id from batches l where l.id = c.batch_id and l.status = 'COMPLETED' limit 1
    ) l
    where c.serial_number = a.serial_number and (a.asked_serial is null or l.merchant_id = a.merchant_id)
      -- Else it was sealed anew since, and is looked up by another key.
      and (a.code_key is null or c.code_key = a.code_key)
  ) v on true
  left join lateral (
    select n.*, ('{10000,1000,100,10,1}'::bigint[])[n.decimals + 1] as unit from batches n where n.id = v.batch_id limit 1
  ) b on true
  left join lateral (
    select m.min_value_minor, m.max_value_minor from products m where m.id = b.product_id limit 1
  ) r on true
  left join lateral (
    select j.id, j.serial_number, j.amount_minor, j.occurred_at from journal j
    where j.merchant_id = a.merchant_id and j.operation = 'activate'
      and (coalesce(j.reference, j.id::text) collate "C") = a.reference
    limit 1
  ) p on true
  left join floats f on f.merchant_id = a.merchant_id and f.currency = b.currency
), judged as materialized (
  select k.*,
    case
      when turn > 1 then 'again'
      when too_fine then '13'
      when not by_code and other_value then '13'
      when not by_code and out_of_limits then '61'
      when prior_id is not null and (prior_serial is distinct from serial_number or prior_minor <> value_minor) then '94'
      when serial_number is null and pg_logical_emit_message(true, 'scrip', '') is not null then '14'
      when by_code and pin_locked_until > $8 then '75'
      when by_code and not pin_ok then '55'
      when prior_id is not null then 'replay'
      when other_value then '13'
      when out_of_limits then '61'
      when closed is not null then '44'
      when blocked_at is not null then '43'
      when expires_at <= $8 then '54'
      when activated_at is not null then '41'
      when scope = 'issuer' and issuer <> merchant_id then '47'
      when reserve_account is null and float_account is null then 'account'
      when reserve_account is null and value_minor > float_minor then '50'
      else 'ok'
    end as judgement
  from known k
), decided as materialized (
  select j.*,
    case
      when judgement = 'ok' and reserve_account is null and sum(value_minor) filter (where judgement = 'ok')
        over (partition by float_account, reserve_account is null order by ord) > float_minor then 'again'
      else judgement
    end as outcome
  from judged j
), posted as (
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
    operation, reference, occurred_at)
  select id, 'ACTIVATION', coalesce(reserve_account, float_account), serial_number, value_minor, currency, merchant_id,
    serial_number, 'activate', reference, $8
  from decided where outcome = 'ok'
  order by merchant_id, reference
  on conflict do nothing
  returning id, merchant_id, amount_minor
), booked as materialized (
  -- All of what was posted was decided: a full join goes by a hash, where a left one compares each row with each.
  select d.*, p.id as posted_id, p.amount_minor as posted_minor from decided d full join posted p on p.id = d.id
), debited as (
  update accounts f set balance_minor = f.balance_minor - t.amount_minor
  from (
    select float_account, sum(posted_minor)::bigint as amount_minor, (array_agg(low_id order by ord))[1] as low_id
    from booked where posted_id is not null and reserve_account is null group by float_account
  ) t
  where f.id = t.float_account
  returning f.merchant_id, f.currency, f.decimals, f.balance_minor, t.amount_minor, t.low_id,
    coalesce(f.low_minor, f.topped_up_minor / 10) as threshold_minor
), announced as (
  insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, data, occurred_at, due_at)
  select e.id, t.event_id, t.type, t.subject_id, t.data, $8, $8
  from (
    select merchant_id, id as event_id, 'voucher.activated' as type, id as subject_id, null::json as data from posted
    union all
    select merchant_id, low_id, 'float.low', null, json_build_object('currency', currency,
      'balance', trim_scale(balance_minor / 10::numeric ^ decimals), 'threshold', trim_scale(threshold_minor / 10::numeric ^ decimals))
    from debited where balance_minor < threshold_minor and balance_minor + amount_minor >= threshold_minor
  ) t
  cross join lateral ${openEndpoints('t.merchant_id', 't.type')} e
), touched as (
  update vouchers v set
    value_minor = coalesce(t.posted_minor, v.value_minor),
    balance_minor = v.balance_minor + coalesce(t.posted_minor, 0),
    activated_at = case when t.posted_minor is null then v.activated_at else $8 end,
    wrong_pins = t.wrong_pins,
    pin_locked_until = case
      when not t.by_code then v.pin_locked_until
      when t.wrong_pins = 5 then $8 + interval '15 minutes'
      when t.wrong_pins = 10 then $8 + interval '24 hours'
      when t.wrong_pins = 15 then 'infinity'
    end,
    version = v.version + 1
  from (
    select serial_number, by_code, posted_minor,
      case when not by_code then wrong_pins when outcome = '55' then least(wrong_pins + 1, 15) else 0 end as wrong_pins
    from booked
    where posted_id is not null or outcome = '55'
      or (by_code and pin_ok and wrong_pins > 0 and too_fine is not true and outcome not in ('again', '94', '75'))
  ) t
  -- Said twice: the join alone may be worked out by reading all vouchers while they are few, and for long after that.
  where v.serial_number = t.serial_number and v.serial_number = any (array(select serial_number from locked))
)
select d.ord::int as ord,
  case
    when d.outcome = 'ok' and d.posted_id is null then 'again'
    when d.outcome in ('44', '43', '54', '41', '47', '50') and d.reference is not null
      and d.version <> (select n.version from vouchers n where n.serial_number = d.serial_number) then 'again'
    when d.outcome = '50' and d.reference is not null
      and d.float_at <> (select n.ctid from accounts n where n.id = d.float_account) then 'again'
    else d.outcome
  end as outcome,
  d.prior_id, d.prior_at, d.serial_number, d.value_minor as amount_minor, d.decimals, d.currency, d.sealed
from booked d`,
};
