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
  entry_id uuid not null, -- the HOLD row in the journal
  ended_at timestamptz, -- null: the activation is not yet booked or declined
  release_id uuid -- the HOLD_RELEASE row, if the activation was declined
);
create index float_holds_open on float_holds (held_at) where ended_at is null;
grant select on claims, voids, float_holds to scrip_service;
grant insert, update on float_holds to scrip_service;

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
  p_bucket integer, p_operation operation, p_merchants integer[], p_references text[], p_ids uuid[],
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

-- Ensures that a claimed transaction is never booked. Returns false if it was booked already.
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

-- Gives the claim of a voided transaction to another request. Returns false if a third request was faster.
create function reassign_claim(
  p_bucket integer, p_operation operation, p_merchant integer, p_reference text, p_voided uuid, p_id uuid,
  p_serial bigint, p_fingerprint text
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
