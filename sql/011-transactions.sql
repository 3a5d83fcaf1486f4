-- 011: transactions by reference, and by id.

-- Returns the current state of transactions: for an updated redemption, the new one. After a full reversal
-- the `outcome` is `reversed`. An id that was never booked has no row.
-- p_ids: null on one server, where p_references are looked up here: a redemption, otherwise an activation,
-- otherwise the id of a transaction without a reference.
create function find_transactions(
  p_bucket integer, p_merchants integer[], p_references text[], p_ids uuid[]
) returns table (
  ord integer, outcome text, id uuid, kind entry_kind, amount_minor bigint, decimals smallint,
  occurred_at timestamptz, reference text, serial_number bigint, sealed bytea, original_id uuid
)
language plpgsql stable security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  ids uuid[] := p_ids;
begin
  if ids is null then
    select array_agg(coalesce(c.id, j.id) order by a.ord) into ids
    from unnest(p_merchants, p_references) with ordinality as a (merchant_id, reference, ord)
    left join lateral (
      select r.id from claims r
      where r.bucket = p_bucket and r.merchant_id = a.merchant_id and r.operation in ('activate', 'redeem')
        and r.reference = a.reference and r.serial_number is not null
      order by r.operation desc limit 1
    ) c on true
    left join lateral (
      select r.id from journal r
      where c.id is null and r.bucket = p_bucket and r.id = uuid_from(a.reference)
        and r.merchant_id = a.merchant_id and r.kind in ('ACTIVATION', 'REDEMPTION')
        and r.reference is null and r.original_id is null and r.batch_id is null limit 1
    ) j on true;
  end if;
  return query
    select a.ord::integer,
      case when u.original_id is not null and u.new_id is null then 'reversed' else 'ok' end,
      j.id, j.kind, j.amount_minor, b.decimals, j.occurred_at, j.reference, j.serial_number, v.sealed,
      j.original_id
    from unnest(ids) with ordinality as a (id, ord)
    left join lateral (
      select * from redemption_updates r where r.bucket = p_bucket and r.original_id = a.id limit 1
    ) u on true
    cross join lateral (
      select * from journal r where r.bucket = p_bucket and r.id = coalesce(u.new_id, a.id) limit 1
    ) j
    cross join lateral (
      select r.sealed, r.batch_id from vouchers r
      where r.bucket = p_bucket and r.serial_number = j.serial_number limit 1
    ) v
    cross join lateral (select r.decimals from batches r where r.id = v.batch_id limit 1) b;
end $$;

-- Returns the 50 newest transactions of a merchant, newest first, without activations by batches.
-- p_in_force: without reversals, and without redemptions that an update has replaced.
--
-- It is one query without a subquery: on several shards, each of them then joins its own newest rows. It is a
-- function since its plan takes longer to make than to run, and a prepared statement would keep the plan of
-- tables that were still small.
create function list_transactions(p_merchant_id integer, p_in_force boolean) returns table (
  id uuid, kind entry_kind, amount_minor bigint, occurred_at timestamptz, reference text,
  serial_number bigint, original_id uuid, canceled boolean, sealed bytea, decimals smallint
)
language plpgsql stable
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
    select j.id, j.kind, j.amount_minor, j.occurred_at, j.reference, j.serial_number, j.original_id,
      u.original_id is not null, v.sealed, b.decimals
    from journal j
    join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
    join batches b on b.id = v.batch_id
    left join redemption_updates u on u.bucket = j.bucket and u.original_id = j.id
    where j.merchant_id = p_merchant_id and j.batch_id is null
      and j.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL')
      and not (p_in_force and (j.kind = 'REDEMPTION_REVERSAL' or u.original_id is not null))
    order by j.id desc limit 50;
end $$;

revoke execute on function find_transactions, list_transactions from public;
grant execute on function find_transactions, list_transactions to scrip_service;
