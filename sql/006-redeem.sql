-- 006: redemptions, the heart of the program. One call decides and books a list of them, in one transaction.

-- What is decided about a request: first what `redeem` returns to the service, then what it writes.
create type redemption as (
  ord integer, outcome text, id uuid, occurred_at timestamptz, serial_number bigint, amount_minor bigint,
  decimals smallint, currency text, merchant_id integer, key_id text, reference text, amount bigint, row tid,
  settlement bigint, pin_count smallint, previous_use_id uuid
);

-- In: the bucket of the vouchers (0 on one server), and parallel arrays, one element for each request: the
-- merchant, its API key or null, the key of the code, the key of the PIN, the amount in ten-thousandths of a
-- major unit, the reference or null, the id of the new transaction. p_claimed: the ids were claimed before
-- the call (on several shards: 008-claims.sql). p_limit_ids: the ids of new `limit.reached` events, if daily
-- limits bound these requests (027-daily-limits.sql); otherwise null.
-- Out: a row for each request: its position, the outcome, and, for `ok` and `replay`, the transaction. The
-- outcome is `ok`, `replay`, a status code, or one of two that the service resolves before it asks again:
-- `account` (there is no settlement account yet) and `void` (another request has taken the claim over).
--
-- It locks, decides, then writes. Each statement sees everything that was committed before it began, so
-- decisions after the locks use the newest rows. Every function that locks several vouchers locks them in the
-- order of their serial numbers. The service ensures that a voucher or a reference appears only once in a
-- call. After each write, `expect_rows` checks the number of rows.
create function redeem(
  p_bucket integer, p_merchants integer[], p_key_ids text[], p_code_keys uuid[], p_pin_keys uuid[],
  p_amounts bigint[], p_references text[], p_ids uuid[], p_claimed boolean, p_limit_ids uuid[],
  p_now timestamptz
) returns setof redemption
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  booked uuid[];
  earliest_id uuid;
  latest_id uuid;
  voided uuid[];
  redemptions redemption[];
  outcomes text[];
  currencies text[];
  amounts_minor bigint[];
  known_times timestamptz[];
  bookings integer; -- the expected number of rows
  references_used integer;
  changed integer;
  written integer;
begin
  perform check_stamp(p_now);
  perform from vouchers v where v.bucket = p_bucket and v.code_key = any (p_code_keys)
    order by v.serial_number for update;
  if p_claimed then
    booked := array(select r.id from journal r where r.bucket = p_bucket and r.id = any (p_ids));
    -- The claim of a declined request keeps its id. A repeat of the request long after it, or after the clock
    -- of a process was corrected, needs a new id, so that its row belongs to a day of the books.
    earliest_id := id_floor(p_now, '-30 minutes');
    latest_id := id_floor(p_now, '30 minutes');
    voided := array(
      select r.id from voids r where r.bucket = p_bucket and r.id = any (p_ids)
      union all
      select u.id from unnest(p_ids) as u (id) where u.id < earliest_id or u.id >= latest_id
    );
  end if;

  -- Decide. A used reference comes first: with another voucher or amount it is 94, and the PIN is not
  -- checked. A repeat of the same request is a replay, but only after its PIN was checked. Otherwise a used
  -- reference would allow guesses that are not counted. A limit of 1 makes each look-up use its index, even
  -- without statistics of a new table. On several shards, the claims of these requests exist already, some of
  -- them in this bucket: they do not show what was booked.
  select array_agg(d::redemption), array_agg(d.outcome), count(*) filter (where d.outcome = 'ok'),
    count(d.reference) filter (where d.outcome = 'ok'),
    count(*) filter (where d.outcome = 'ok' or d.pin_count is not null)
  into redemptions, outcomes, bookings, references_used, changed
  from (
    select a.ord::integer, o.outcome, coalesce(c.id, a.id) as id, p_now as occurred_at, v.serial_number,
      a.amount / b.unit as amount_minor, b.decimals, b.currency, a.merchant_id, a.key_id, a.reference,
      a.amount, v.ctid as row, s.id as settlement, wrong_pins_after(o.outcome, v.wrong_pins) as pin_count,
      v.last_use_id as previous_use_id
    from unnest(p_merchants, p_key_ids, p_code_keys, p_pin_keys, p_amounts, p_references, p_ids)
      with ordinality as a (merchant_id, key_id, code_key, pin_key, amount, reference, id, ord)
    left join lateral (
      select r.ctid, r.* from vouchers r where r.bucket = p_bucket and r.code_key = a.code_key limit 1
    ) v on true
    left join lateral (
      select r.merchant_id, r.currency, r.decimals, r.scope, unit_of(r.decimals) as unit from batches r
      where r.id = v.batch_id and r.status = 'COMPLETED' limit 1
    ) b on true
    left join lateral (
      select r.id from accounts r
      where r.merchant_id = a.merchant_id and r.currency = b.currency and r.kind = 'SETTLEMENT' limit 1
    ) s on true
    left join lateral (
      select r.id, r.fingerprint = a.amount::text and r.serial_number = v.serial_number as is_same
      from claims r
      where not p_claimed and r.bucket = p_bucket and r.merchant_id = a.merchant_id
        and r.operation = 'redeem' and r.reference = a.reference limit 1
    ) c on true
    cross join lateral (select case
      when c.id is not null and c.is_same is not true then '94'
      else coalesce(
        decline_before_pin(b.unit is null, v.pin_locked_until > p_now, v.pin_key <> a.pin_key),
        case
          when c.id is not null or a.id = any (booked) then 'replay'
          when a.id = any (voided) then 'void'
          when a.amount % b.unit <> 0 then '13'
        end,
        decline_after_pin(
          closed => v.closed is not null,
          blocked => v.blocked_at is not null,
          expired => v.expires_at <= p_now,
          not_active => v.activated_at is null,
          other_issuer => b.scope = 'issuer' and b.merchant_id <> a.merchant_id,
          spent => v.balance_minor = 0,
          insufficient => v.balance_minor < a.amount / b.unit),
        case when s.id is null then 'account' else 'ok' end)
      end as outcome) o
    order by a.ord
  ) d;
  if p_limit_ids is not null then
    select array_agg(u.currency), array_agg(u.amount_minor) into currencies, amounts_minor
    from unnest(redemptions) as u;
    outcomes := within_limits('redeem', p_merchants, p_key_ids, currencies, amounts_minor, outcomes, p_now);
    for at in 1 .. cardinality(outcomes) loop
      redemptions[at].outcome := outcomes[at];
    end loop;
    perform count_under_limits('redeem', p_merchants, p_key_ids, currencies, amounts_minor, outcomes,
      p_limit_ids, p_now);
    select count(*) filter (where u.outcome = 'ok'), count(u.reference) filter (where u.outcome = 'ok'),
      count(*) filter (where u.outcome = 'ok' or u.pin_count is not null)
    into bookings, references_used, changed
    from unnest(redemptions) as u;
  end if;

  -- Write. If another transaction has made the same claim since the look-up, the primary key refuses the
  -- insert, and the service repeats the call.
  if 'ok' = any (outcomes) then
    if not p_claimed then
      insert into claims (bucket, merchant_id, operation, reference, id, serial_number, fingerprint)
      select k.bucket, u.merchant_id, 'redeem', u.reference, u.id, u.serial_number, u.amount::text
      from buckets k cross join unnest(redemptions) as u
      where k.bucket = p_bucket and u.outcome = 'ok' and u.reference is not null;
      get diagnostics written = row_count;
      perform expect_rows('claims', written, references_used);
    end if;
    insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      key_id, serial_number, reference, previous_use_id, occurred_at)
    select k.bucket, u.id, 'REDEMPTION', u.serial_number, u.settlement, u.amount_minor, u.currency,
      u.merchant_id, u.key_id, u.serial_number, u.reference, u.previous_use_id, p_now
    from buckets k cross join unnest(redemptions) as u
    where k.bucket = p_bucket and u.outcome = 'ok';
    get diagnostics written = row_count;
    perform expect_rows('journal', written, bookings);
    if exists (select from webhook_endpoints e
      where e.merchant_id = any (p_merchants || 0) and e.disabled_at is null and e.removed_at is null)
    then
      perform announce(p_bucket, 'voucher.redeemed', p_merchants, p_ids, outcomes, p_now);
    end if;
  end if;
  if 'void' = any (outcomes) then
    insert into voids (bucket, id)
    select k.bucket, u.id from buckets k cross join unnest(redemptions) as u
    where k.bucket = p_bucket and u.outcome = 'void' on conflict do nothing;
  end if;
  -- The rows are locked, so they are still in the place where they were read.
  update vouchers v set
    balance_minor = v.balance_minor - case when u.outcome = 'ok' then u.amount_minor else 0 end,
    last_use_id = case when u.outcome = 'ok' then u.id else v.last_use_id end,
    wrong_pins = coalesce(u.pin_count, v.wrong_pins),
    pin_locked_until = case
      when u.pin_count is null then v.pin_locked_until
      else pin_locked_until(u.pin_count, p_now)
    end
  from unnest(redemptions) as u
  where v.bucket = p_bucket and v.ctid = u.row and (u.outcome = 'ok' or u.pin_count is not null);
  get diagnostics written = row_count;
  perform expect_rows('vouchers', written, changed);
  -- An unknown code writes to the log as well. It then waits for the disk just like a wrong PIN, so that the
  -- response time does not reveal which it was.
  if '14' = any (outcomes) then perform pg_logical_emit_message(true, 'scrip', ''); end if;

  if 'replay' = any (outcomes) then
    select array_agg(j.occurred_at order by u.ord) into known_times
    from unnest(redemptions) as u
    left join lateral (
      select r.occurred_at from journal r where r.bucket = p_bucket and r.id = u.id limit 1
    ) j on true;
  end if;
  return query
    select u.ord, u.outcome, case when u.outcome in ('ok', 'replay') then u.id end,
      case when u.outcome = 'ok' then p_now else known_times[u.ord] end, u.serial_number, u.amount_minor,
      u.decimals, u.currency, u.merchant_id, u.key_id, u.reference, u.amount, u.row, u.settlement,
      u.pin_count, u.previous_use_id
    from unnest(redemptions) as u;
end $$;

revoke execute on function redeem from public;
grant execute on function redeem to scrip_service;
