-- 028: how much the vouchers of a product may hold together, if the product bounds it. A new table and its
-- functions: it locks nothing and takes milliseconds. Citus has none: a call books on one shard, and their
-- counts would be on another server.

-- What the vouchers of a product with a bound hold, and what is reserved for those that are not active.
-- Generations and activations lock the row and add to it. What leaves the vouchers is not taken off, so that
-- redemptions neither wait here nor read anything: the row is never too low, and if it leaves no room, the
-- vouchers are added up again.
create table product_holdings (
  product_id integer primary key,
  begun_at timestamptz not null,
  held_minor bigint not null default 0,
  summed_at timestamptz not null default '-infinity',
  refused_at timestamptz -- the first refusal of a day
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
grant select on product_holdings to scrip_service;

-- Returns what the vouchers of a product hold. A batch in production holds its whole price. Of a large batch,
-- the planner concludes that all are large, and would read the whole table for each.
create function held_by(p_product integer) returns bigint
language sql stable security definer set search_path = scrip, pg_temp set enable_seqscan = off as $$
  select coalesce(sum(case when b.status = 'PROCESSING' then b.quantity * b.value_minor else v.held_minor end), 0)
    ::bigint
  from batches b
  cross join lateral (
    select sum(case
      when r.activated_at is null and r.payer_id is not null and r.closed is null then b.value_minor
      else r.balance_minor
    end) as held_minor
    from vouchers r where r.batch_id = b.id and b.status = 'COMPLETED'
  ) v
  where b.product_id = p_product and b.status <> 'CANCELED'
$$;

-- Locks what a product holds, before an amount is added. Floats are locked afterwards. The vouchers are added
-- up if the amount does not fit, and in the first minute of a bound, for the bookings that began before it:
-- at most every ten seconds, since it takes a second for some millions of vouchers.
create function lock_held(p_product integer, p_amount bigint, p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  h product_holdings;
  max_minor bigint;
begin
  insert into product_holdings (product_id, begun_at) values (p_product, p_now) on conflict do nothing;
  select * into strict h from product_holdings where product_id = p_product for update;
  select p.outstanding_max_minor into strict max_minor from products p where p.id = p_product;
  if (p_now < h.begun_at + interval '1 minute' or h.held_minor > max_minor - p_amount)
    and p_now >= h.summed_at + interval '10 seconds'
  then
    update product_holdings set held_minor = held_by(p_product), summed_at = p_now
    where product_id = p_product;
  end if;
end $$;

-- Begins the count of a product whose bound was set or removed, so that no order adds its vouchers up. The
-- row stays after the bound, since orders may wait for it.
create function begin_holding(p_product integer, p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  insert into product_holdings (product_id, begun_at) values (p_product, p_now)
  on conflict (product_id) do update
  set begun_at = excluded.begun_at, summed_at = '-infinity', refused_at = null;
  perform lock_held(p_product, 0, p_now);
end $$;

-- Adds an amount to what a product holds, which the caller has locked. Returns false if it would hold more
-- than its bound.
create function hold(p_product integer, p_amount bigint) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update product_holdings h set held_minor = h.held_minor + p_amount
  from products p
  where h.product_id = p_product and p.id = p_product
    and (p.outstanding_max_minor is null or h.held_minor <= p.outstanding_max_minor - p_amount);
  return found;
end $$;

-- Adds what comes back to vouchers, which no bound refuses.
create function hold_returned(p_serials bigint[], p_amounts bigint[]) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  each record;
begin
  if not exists (select from product_holdings) then return; end if;
  for each in
    select b.product_id, sum(u.amount) as amount
    from unnest(p_serials, p_amounts) as u (serial_number, amount)
    join vouchers v on v.serial_number = u.serial_number
    join batches b on b.id = v.batch_id
    where u.amount > 0
    group by b.product_id order by b.product_id
  loop
    update product_holdings set held_minor = held_minor + each.amount where product_id = each.product_id;
  end loop;
end $$;

-- Notes that the bound of a product has refused a merchant. The first refusal of a day queues
-- `limit.reached`.
create function note_full(p_product integer, p_merchant integer, p_event uuid, p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update product_holdings set refused_at = p_now
  where product_id = p_product and (refused_at is null or day_of(refused_at) < day_of(p_now));
  if not found then return; end if;
  perform announce_to(p_merchant, 'limit.reached', p_event, null, json_build_object(
    'flow', 'outstanding', 'keyId', null, 'product', p.code, 'currency', p.currency,
    'limit', trim_scale(p.outstanding_max_minor / 10::numeric ^ p.decimals)), p_now)
  from products p where p.id = p_product;
end $$;

revoke execute on function held_by, lock_held, begin_holding, hold, hold_returned, note_full from public;
grant execute on function lock_held, begin_holding, hold, note_full to scrip_service;
