-- 008: references: their tables, and how they are claimed over shards (docs/how-to/citus.md). The reference
-- of a request and its voucher may lie on different servers: claim and booking are then two local
-- transactions, each on one shard.
--
--  1. `find_vouchers` in the bucket of the code gives the serial number and the terms.
--  2. `claim` in the bucket of the reference: the first request gets the claim, with the id of its
--     transaction; all others are shown the claim there is.
--  3. The same request (same voucher and fingerprint) goes on under the id of the claim: `redeem` or
--     `activate` in the bucket of the voucher books the id, once, or finds it booked: a replay.
--  4. Another request asks the bucket of the claim's voucher to `void_transaction` the id. If it was
--     booked, the reference is used (94). If not, it never will be, and `reassign_claim` gives the
--     reference to the new request, under a new id.
--
-- An id is booked or voided under the lock of one voucher, so never both. A crash leaves at worst a claim
-- whose transaction was not booked, which stands in nobody's way.

-- Idempotency: the first request under a reference claims it, for its merchant and operation, for ever.
-- The claim names the transaction and what makes a request the same: the voucher (null for an order of
-- vouchers) and the fingerprint of the rest. On one server a claim is written in the transaction that
-- books the request. Over shards it is written first, in the bucket of the reference, and may name a
-- transaction that never came to be (docs/how-to/citus.md).
create table claims (
  id uuid not null,
  serial_number bigint,
  merchant_id integer not null,
  bucket integer not null default 0, -- of the reference
  operation operation not null,
  reference text collate "C" not null,
  fingerprint text not null,
  constraint claims_pkey primary key (merchant_id, operation, reference)
);

-- Over shards: a transaction that must not be booked any more, since its claim was given to another request.
create table voids (
  id uuid not null,
  bucket integer not null default 0, -- of the voucher
  constraint voids_pkey primary key (id)
);

-- Over shards: money that left a float for an activation on another shard, until that is booked or
-- declined. The row stays: a late copy of the request under the same id must not take the money again.
create table float_holds (
  id uuid primary key, -- of the activation
  account_id bigint not null,
  merchant_id integer not null,
  amount_minor bigint not null,
  bucket integer not null, -- of the voucher
  serial_number bigint not null,
  held_at timestamptz not null,
  entry_id uuid not null, -- its HOLD in the journal
  ended_at timestamptz, -- null: the activation is neither booked nor declined yet
  release_id uuid -- its HOLD_RELEASE, where the activation was declined
);
create index float_holds_open on float_holds (held_at) where ended_at is null;
grant select on claims, voids, float_holds to scrip_service;
grant insert, update on float_holds to scrip_service;

-- What a request needs to know of its voucher before it makes a claim. In: keys of codes, or serial
-- numbers. Out: a row for each voucher that is found.
create function find_vouchers(p_bucket integer, p_code_keys uuid[], p_serials bigint[]) returns table (
  ord integer, serial_number bigint, merchant_id integer, value_minor bigint, decimals smallint, currency text
)
language plpgsql stable security definer set search_path = scrip, pg_temp
  set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  return query
    select a.ord::integer, v.serial_number, b.merchant_id, b.value_minor, b.decimals, b.currency
    from unnest(p_code_keys, p_serials) with ordinality as a (code_key, serial_number, ord)
    left join lateral (
      select r.serial_number, r.batch_id from vouchers r where r.bucket = p_bucket
        and r.code_key = a.code_key limit 1
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

-- Claims references of one bucket. Out: for each, the claim that stands. A request without an id only looks.
create function claim(
  p_bucket integer, p_operation operation, p_merchants integer[], p_references text[], p_ids uuid[],
    p_serials bigint[],
  p_fingerprints text[]
) returns table (ord integer, id uuid, serial_number bigint, fingerprint text)
language plpgsql security definer set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  ids uuid[];
  serials bigint[];
  fingerprints text[];
  missing integer;
begin
  insert into claims (bucket, merchant_id, operation, reference, id, serial_number, fingerprint)
  select k.bucket, a.merchant_id, p_operation, a.reference, a.id, a.serial_number, a.fingerprint
  from buckets k
  cross join unnest(p_merchants, p_references, p_ids, p_serials, p_fingerprints)
    as a (merchant_id, reference, id, serial_number, fingerprint)
  where k.bucket = p_bucket and a.id is not null
  order by a.merchant_id, a.reference
  on conflict do nothing;
  select array_agg(c.id order by a.ord), array_agg(c.serial_number order by a.ord),
    array_agg(c.fingerprint order by a.ord), count(a.id) filter (where c.id is null)
  into ids, serials, fingerprints, missing
  from unnest(p_merchants, p_references, p_ids) with ordinality as a (merchant_id, reference, id, ord)
  left join lateral (
    select r.id, r.serial_number, r.fingerprint from claims r
    where r.bucket = p_bucket and r.merchant_id = a.merchant_id and r.operation = p_operation
      and r.reference = a.reference limit 1
  ) c on true;
  perform expect_rows('claims', count(u.id) - missing, count(u.id)) from unnest(p_ids) as u (id);
  return query
    select u.ord::integer, u.id, u.serial_number, u.fingerprint
    from unnest(ids, serials, fingerprints) with ordinality as u (id, serial_number, fingerprint, ord)
    where u.id is not null;
end $$;

-- Makes sure that a transaction that was claimed and not booked never will be. False where it was booked.
create function void_transaction(p_bucket integer, p_serial bigint, p_id uuid) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update buckets set position = position where bucket = p_bucket and position < 0;
  perform from vouchers where bucket = p_bucket and serial_number = p_serial for update;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  perform from journal where bucket = p_bucket and id = p_id;
  if found then return false; end if;
  insert into voids (bucket, id) values (p_bucket, p_id) on conflict do nothing;
  return true;
end $$;

-- Gives the claim of a voided transaction to another request. False where a third one was faster.
create function reassign_claim(
  p_bucket integer, p_operation operation, p_merchant integer, p_reference text, p_voided uuid, p_id uuid,
    p_serial bigint,
  p_fingerprint text
) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update claims set id = p_id, serial_number = p_serial, fingerprint = p_fingerprint
  where bucket = p_bucket and merchant_id = p_merchant and operation = p_operation
    and reference = p_reference and id = p_voided;
  return found;
end $$;

revoke execute on function find_vouchers, claim, void_transaction, reassign_claim from public;
grant execute on function find_vouchers, claim, void_transaction, reassign_claim to scrip_service;
