-- 008: references: their tables, and how they are claimed on several shards (docs/how-to/citus.md). The
-- reference of a request and its voucher may be on different servers. Claim and booking are then two local
-- transactions, each on one shard.
--
--  1. `find_vouchers` in the bucket of the code returns the serial number and the terms.
--  2. `claim` in the bucket of the reference: the first request makes the claim, with the id of its
--     transaction. All others get the existing claim.
--  3. The same request (same voucher and fingerprint) continues under the id of the claim: `redeem` or
--     `activate` in the bucket of the voucher books the id once. If it is booked already, it is a replay.
--  4. A different request calls `void_transaction` with the id, in the bucket of the claim's voucher. If the
--     id was booked, the reference is used (94). If not, it can no longer be booked, and `reassign_claim`
--     gives the reference to the new request, under a new id.
--
-- An id is booked or voided under the lock of one voucher, so never both. After a decline or a crash there is
-- a claim whose transaction was not booked. It blocks nobody. If its request is repeated more than half an
-- hour later, `redeem` or `activate` voids the id, and the request gets a new one: the books find a row by
-- the time in its id.

-- Idempotency: the first request under a reference claims it permanently, for its merchant and operation. The
-- claim names the transaction, the voucher (null for an order of vouchers) and a fingerprint of the rest of
-- the request. Voucher and fingerprint identify a repeat of the same request. On one server, a claim is
-- written in the transaction that books the request. On several shards it is written first, in the bucket of
-- the reference, and may name a transaction that was never booked (docs/how-to/citus.md).
--
-- A claim of a redemption without a voucher, with the fingerprint `given-up`, is a tombstone: nothing is
-- booked under its reference any more.
create table claims (
  id uuid not null,
  serial_number bigint,
  merchant_id integer not null,
  bucket integer not null default 0, -- the bucket of the reference
  operation operation not null,
  reference text collate "C" not null,
  fingerprint text not null,
  constraint claims_pkey primary key (merchant_id, operation, reference)
);
-- Claims are only added, in the order of their ids. A reconciliation reads those since the last closing.
create index claims_by_id on claims using brin (id) with (autosummarize);

-- On several shards: transactions that must not be booked, since another request has taken over their claim.
create table voids (
  id uuid not null,
  bucket integer not null default 0, -- the bucket of the voucher
  constraint voids_pkey primary key (id)
);

-- On several shards: money taken from a float for an activation on another shard, until that is booked or
-- declined. The row is kept: a late copy of the request under the same id must not take the money again.
create table float_holds (
  id uuid primary key, -- the id of the activation
  account_id bigint not null,
  merchant_id integer not null,
  amount_minor bigint not null,
  bucket integer not null, -- the bucket of the voucher
  serial_number bigint not null,
  held_at timestamptz not null,
  entry_id uuid not null, -- the HOLD row in the journal, of all holds of a float in one call
  ended_at timestamptz, -- null: the activation is not yet booked or declined
  release_id uuid -- the HOLD_RELEASE row, if the activation was declined; of a call, too
);
create index float_holds_open on float_holds (held_at) where ended_at is null;
create index float_holds_by_end on float_holds using brin (ended_at) with (autosummarize);
grant select on claims, voids, float_holds to scrip_service;

-- Returns the facts about vouchers that a request needs before it makes a claim. Takes keys of codes, or
-- serial numbers. Returns a row for each voucher that is found.
create function find_vouchers(p_bucket integer, p_code_keys uuid[], p_serials bigint[]) returns table (
  ord integer, serial_number bigint, merchant_id integer, value_minor bigint, decimals smallint, currency text
)
language plpgsql stable security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
    select a.ord::integer, v.serial_number, b.merchant_id, b.value_minor, b.decimals, b.currency
    from unnest(p_code_keys, p_serials) with ordinality as a (code_key, serial_number, ord)
    left join lateral (
      select r.serial_number, r.batch_id from vouchers r
      where r.bucket = p_bucket and r.code_key = a.code_key limit 1
    ) c on true
    cross join lateral (
      select r.serial_number, r.batch_id from vouchers r
      where r.bucket = p_bucket and r.serial_number = coalesce(a.serial_number, c.serial_number) limit 1
    ) v
    cross join lateral (
      select r.merchant_id, r.value_minor, r.decimals, r.currency from batches r
      where r.id = v.batch_id and r.status = 'COMPLETED' limit 1
    ) b;
end $$;

-- Claims references of one bucket. Returns the valid claim of each. A request without an id only reads.
create function claim(
  p_bucket integer, p_merchants integer[], p_operations operation[], p_references text[], p_ids uuid[],
  p_serials bigint[], p_fingerprints text[]
) returns table (ord integer, id uuid, serial_number bigint, fingerprint text)
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  ids uuid[];
  serials bigint[];
  fingerprints text[];
  missing integer;
begin
  insert into claims (bucket, merchant_id, operation, reference, id, serial_number, fingerprint)
  select k.bucket, a.merchant_id, a.operation, a.reference, a.id, a.serial_number, a.fingerprint
  from buckets k
  cross join unnest(p_merchants, p_operations, p_references, p_ids, p_serials, p_fingerprints)
    as a (merchant_id, operation, reference, id, serial_number, fingerprint)
  where k.bucket = p_bucket and a.id is not null
  order by a.merchant_id, a.operation, a.reference
  on conflict do nothing;
  select array_agg(c.id order by a.ord), array_agg(c.serial_number order by a.ord),
    array_agg(c.fingerprint order by a.ord), count(a.id) filter (where c.id is null)
  into ids, serials, fingerprints, missing
  from unnest(p_merchants, p_operations, p_references, p_ids) with ordinality
    as a (merchant_id, operation, reference, id, ord)
  left join lateral (
    select r.id, r.serial_number, r.fingerprint from claims r
    where r.bucket = p_bucket and r.merchant_id = a.merchant_id and r.operation = a.operation
      and r.reference = a.reference limit 1
  ) c on true;
  perform expect_rows('claims', count(u.id) - missing, count(u.id)) from unnest(p_ids) as u (id);
  return query
    select u.ord::integer, u.id, u.serial_number, u.fingerprint
    from unnest(ids, serials, fingerprints) with ordinality as u (id, serial_number, fingerprint, ord)
    where u.id is not null;
end $$;

-- Ensures that a claimed transaction is never booked. Returns false if it was booked already.
create function void_transaction(p_bucket integer, p_serial bigint, p_id uuid) returns boolean
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  perform from vouchers where bucket = p_bucket and serial_number = p_serial for update;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  perform from journal where bucket = p_bucket and id = p_id;
  if found then return false; end if;
  insert into voids (bucket, id) values (p_bucket, p_id) on conflict do nothing;
  return true;
end $$;

-- Gives the claim of a voided transaction to another request. Returns false if a third request was faster.
create function reassign_claim(
  p_bucket integer, p_operation operation, p_merchant integer, p_reference text, p_voided uuid, p_id uuid,
  p_serial bigint, p_fingerprint text
) returns boolean
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  update claims set id = p_id, serial_number = p_serial, fingerprint = p_fingerprint
  where bucket = p_bucket and merchant_id = p_merchant and operation = p_operation
    and reference = p_reference and id = p_voided;
  return found;
end $$;

revoke execute on function find_vouchers, claim, void_transaction, reassign_claim from public;
grant execute on function find_vouchers, claim, void_transaction, reassign_claim to scrip_service;

-- Moves the amounts of activations from floats to the transit account, once for each id. A float is one row
-- of the coordinator, and its HOLD row is on a worker, so the float is locked during a two-phase commit. The
-- requests of a call share it, and one HOLD row for each float.
-- In: parallel arrays: merchant, currency, amount, the voucher's bucket and serial number, the id of the
-- activation, the ids of a new `float.low` event and of a new HOLD row. Out: for each request `ok`, `short`
-- (the float does not cover it), `wait` (nor does it now, but holds have not ended, and would return enough)
-- or `account` (there is no float yet).
create function hold_floats(
  p_merchants integer[], p_currencies text[], p_amounts bigint[], p_buckets integer[], p_serials bigint[],
  p_ids uuid[], p_low_ids uuid[], p_entry_ids uuid[], p_now timestamptz
) returns table (ord integer, outcome text)
language plpgsql security definer set search_path = scrip, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  debits bigint[];
  credits bigint[];
  known uuid[];
  outcomes text[] := array_fill(null::text, array[cardinality(p_ids)]);
  entries uuid[] := array_fill(null::uuid, array[cardinality(p_ids)]);
  float_ids bigint[];
  left_minor bigint[];
  firsts integer[]; -- for each float, the first request that it covers
  spent_minor bigint[];
  place integer;
begin
  select array_agg(f.id order by a.ord), array_agg(t.id order by a.ord) into debits, credits
  from unnest(p_merchants, p_currencies) with ordinality as a (merchant_id, currency, ord)
  left join lateral (
    select r.id from accounts r
    where r.merchant_id = a.merchant_id and r.currency = a.currency and r.kind = 'FLOAT' limit 1
  ) f on true
  left join lateral (
    select r.id from accounts r
    where r.merchant_id = 0 and r.currency = a.currency and r.kind = 'TRANSIT' limit 1
  ) t on true;
  select array_agg(l.account_id), array_agg(l.balance_minor), array_agg(0::bigint), array_agg(null::integer)
  into float_ids, left_minor, spent_minor, firsts
  from (
    select r.account_id, r.balance_minor from floats r
    where r.account_id = any (debits) order by r.account_id for update
  ) l;
  -- After the lock, holds of other calls for the same request can be seen.
  known := array(select h.id from float_holds h where h.id = any (p_ids));
  for at in 1 .. cardinality(p_ids) loop
    place := array_position(float_ids, debits[at]);
    outcomes[at] := case
      when p_ids[at] = any (known) then 'ok'
      when place is null or credits[at] is null then 'account'
      when left_minor[place] >= p_amounts[at] then 'ok'
      when left_minor[place] + spent_minor[place] + (
        select coalesce(sum(h.amount_minor), 0) from float_holds h
        where h.account_id = debits[at] and h.ended_at is null
      ) >= p_amounts[at] then 'wait'
      else 'short'
    end;
    continue when outcomes[at] <> 'ok' or p_ids[at] = any (known);
    left_minor[place] := left_minor[place] - p_amounts[at];
    spent_minor[place] := spent_minor[place] + p_amounts[at];
    firsts[place] := coalesce(firsts[place], at);
    entries[at] := p_entry_ids[firsts[place]];
  end loop;
  for at in 1 .. coalesce(cardinality(float_ids), 0) loop
    continue when firsts[at] is null;
    if not debit_float(float_ids[at], spent_minor[at], p_low_ids[firsts[at]], p_now) then
      perform expect_rows('floats', 0, 1);
    end if;
    perform post(p_entry_ids[firsts[at]], 'HOLD', float_ids[at], credits[firsts[at]], spent_minor[at],
      p_merchants[firsts[at]], null, p_now);
  end loop;
  insert into float_holds (id, account_id, merchant_id, amount_minor, bucket, serial_number, entry_id,
    held_at)
  select u.id, u.debit, u.merchant_id, u.amount_minor, u.bucket, u.serial_number, u.entry_id, p_now
  from unnest(p_ids, debits, p_merchants, p_amounts, p_buckets, p_serials, entries)
    as u (id, debit, merchant_id, amount_minor, bucket, serial_number, entry_id)
  where u.entry_id is not null;
  return query select u.ord::integer, u.outcome from unnest(outcomes) with ordinality as u (outcome, ord);
end $$;

-- Ends holds whose activations were booked.
create function end_holds(p_ids uuid[], p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  perform from float_holds h where h.id = any (p_ids) order by h.id for update;
  update float_holds h set ended_at = p_now where h.id = any (p_ids) and h.ended_at is null;
end $$;

-- Ends holds whose activations can no longer be booked, and returns the money to the floats. p_release_ids:
-- the id of a new HOLD_RELEASE row for each request, of which each float uses one.
create function release_holds(p_ids uuid[], p_release_ids uuid[], p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  r record;
  transit bigint;
begin
  perform from floats f
    where f.account_id = any (array(select h.account_id from float_holds h where h.id = any (p_ids)))
    order by f.account_id for update;
  perform from float_holds h where h.id = any (p_ids) order by h.id for update;
  for r in
    select h.account_id, h.merchant_id, f.currency, sum(h.amount_minor)::bigint as amount_minor,
      array_agg(h.id) as ids, min(u.release_id::text)::uuid as release_id
    from unnest(p_ids, p_release_ids) as u (id, release_id)
    join float_holds h on h.id = u.id and h.ended_at is null
    join floats f on f.account_id = h.account_id
    group by h.account_id, h.merchant_id, f.currency order by h.account_id
  loop
    select a.id into transit from accounts a
    where a.merchant_id = 0 and a.currency = r.currency and a.kind = 'TRANSIT';
    update floats f set balance_minor = f.balance_minor + r.amount_minor where f.account_id = r.account_id;
    if not found then perform expect_rows('floats', 0, 1); end if;
    perform post(r.release_id, 'HOLD_RELEASE', transit, r.account_id, r.amount_minor, r.merchant_id, null,
      p_now);
    update float_holds h set ended_at = p_now, release_id = r.release_id where h.id = any (r.ids);
  end loop;
end $$;

revoke execute on function hold_floats, end_holds, release_holds from public;
grant execute on function hold_floats, end_holds, release_holds to scrip_service;
