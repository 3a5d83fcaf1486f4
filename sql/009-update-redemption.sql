-- 009: updates and refunds of redemptions. An update reverses the original and may book a new redemption in
-- its place. The functions have the structure of redemptions (006-redeem.sql).
--
-- Only an increase requires a voucher that can be spent. Money also returns to a voucher that is blocked or
-- expired. If the voucher was replaced, the money goes to the last voucher in the chain of replacements. No
-- money returns to a canceled voucher.

-- The updates of redemptions, in the bucket of the voucher. The primary key allows one for each redemption.
create table redemption_updates (
  original_id uuid not null,
  reversal_id uuid not null,
  new_id uuid, -- null: a full reversal
  new_minor bigint not null, -- 0 for a full reversal
  updated_at timestamptz not null,
  bucket integer not null default 0,
  constraint redemption_updates_pkey primary key (original_id)
);
create index redemption_updates_by_time on redemption_updates using brin (updated_at) with (autosummarize);
grant select on redemption_updates to scrip_service;

-- Finds redemptions of merchants by their reference or, if they have none, by their transaction id. Returns a
-- row for each reference; its id is null if there is no such redemption.
create function find_redemptions(
  p_bucket integer, p_merchants integer[], p_references text[]
) returns table (ord integer, id uuid)
language plpgsql stable security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
    select a.ord::integer, coalesce(c.id, j.id)
    from unnest(p_merchants, p_references) with ordinality as a (merchant_id, reference, ord)
    left join lateral (
      select r.id from claims r
      where r.bucket = p_bucket and r.merchant_id = a.merchant_id and r.operation = 'redeem'
        and r.reference = a.reference limit 1
    ) c on true
    left join lateral (
      select r.id from journal r
      where c.id is null and r.bucket = p_bucket and r.id = uuid_from(a.reference)
        and r.merchant_id = a.merchant_id and r.kind = 'REDEMPTION' and r.reference is null
        and r.original_id is null limit 1
    ) j on true;
end $$;

-- What is decided about a request: first what `update_redemptions` returns to the service, then what it
-- writes.
create type redemption_change as (
  ord integer, outcome text, original_id uuid, original_minor bigint, original_at timestamptz, reference text,
  serial_number bigint, sealed bytea, decimals smallint, reversal_id uuid, new_id uuid, new_minor bigint,
  updated_at timestamptz, replacement_id uuid, merchant_id integer, key_id text, settlement bigint,
  currency text, successor bigint -- the voucher that the money returns to
);

-- In: parallel arrays: the merchant; its API key or null; the original redemption; the new amount in
-- ten-thousandths; the ids of the reversal, the new redemption, and the movement to a voucher that replaced
-- this one. p_originals: null on one server, where p_references are looked up here. p_limit_ids: as for
-- redemptions; a daily limit counts an increase, and a decrease gives nothing back. Out: a row for each
-- request with the outcome and, for `ok` and `58`, the update.
create function update_redemptions(
  p_bucket integer, p_merchants integer[], p_key_ids text[], p_references text[], p_originals uuid[],
  p_amounts bigint[], p_reversal_ids uuid[], p_new_ids uuid[], p_replacement_ids uuid[], p_limit_ids uuid[],
  p_now timestamptz
) returns setof redemption_change
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  originals uuid[] := p_originals;
  changes redemption_change[];
  outcomes text[];
  currencies text[];
  increases bigint[];
  successors bigint[];
  involved bigint[];
  found bigint[];
  is_late boolean;
  is_replaced boolean;
  updates integer; -- the expected number of rows
  entries integer;
  written integer;
begin
  perform check_stamp(p_now);
  if originals is null then
    select array_agg(f.id order by f.ord) into originals
    from find_redemptions(p_bucket, p_merchants, p_references) f;
  end if;
  select array_agg(j.serial_number order by a.ord) into successors
  from unnest(originals, p_merchants) with ordinality as a (id, merchant_id, ord)
  left join lateral (
    select r.serial_number from journal r
    where r.bucket = p_bucket and r.id = a.id and r.merchant_id = a.merchant_id and r.kind = 'REDEMPTION'
      and r.original_id is null limit 1
  ) j on true;

  -- Lock the vouchers and all their replacements in one statement, in the order of their serial numbers. Only
  -- a replacement that is made while this statement waits is locked afterwards.
  involved := array_remove(successors, null);
  loop
    loop
      select array_agg(v.replaced_by) into found
      from unnest(involved) as a (serial_number)
      cross join lateral (
        select r.replaced_by from vouchers r
        where r.bucket = p_bucket and r.serial_number = a.serial_number and r.replaced_by <> all (involved)
        limit 1
      ) v;
      exit when found is null;
      involved := involved || found;
    end loop;
    select bool_or(l.replaced_by <> all (involved)), bool_or(l.replaced_by is not null)
    into is_late, is_replaced
    from (
      select v.replaced_by from vouchers v
      where v.bucket = p_bucket and v.serial_number = any (involved) order by v.serial_number for update
    ) l;
    exit when is_late is not true;
  end loop;
  while is_replaced loop
    select array_agg(coalesce(v.replaced_by, a.serial_number) order by a.ord),
      bool_or(v.replaced_by is not null)
    into successors, is_replaced
    from unnest(successors) with ordinality as a (serial_number, ord)
    left join lateral (
      select r.replaced_by from vouchers r
      where r.bucket = p_bucket and r.serial_number = a.serial_number limit 1
    ) v on true;
  end loop;

  -- Decide. Two updates of the same voucher run one after the other.
  select array_agg(d::redemption_change), array_agg(d.outcome) into changes, outcomes
  from (
    select a.ord::integer, o.outcome, j.id as original_id, j.amount_minor as original_minor,
      j.occurred_at as original_at, j.reference, j.serial_number, v.sealed, b.decimals,
      coalesce(u.reversal_id, a.reversal_id) as reversal_id,
      case when u.original_id is not null then u.new_id when n.minor > 0 then a.new_id end as new_id,
      coalesce(u.new_minor, n.minor) as new_minor, coalesce(u.updated_at, p_now) as updated_at,
      a.replacement_id, a.merchant_id, a.key_id, j.credit_account as settlement, j.currency, a.successor
    from (
      select u.*, row_number() over (partition by u.successor order by u.ord) as turn
      from unnest(originals, successors, p_merchants, p_key_ids, p_amounts, p_reversal_ids, p_new_ids,
        p_replacement_ids) with ordinality
        as u (original_id, successor, merchant_id, key_id, amount, reversal_id, new_id, replacement_id, ord)
    ) a
    left join lateral (
      select * from journal r
      where a.successor is not null and r.bucket = p_bucket and r.id = a.original_id limit 1
    ) j on true
    left join lateral (
      select * from vouchers r where r.bucket = p_bucket and r.serial_number = j.serial_number limit 1
    ) v on true
    left join lateral (
      select r.closed from vouchers r where r.bucket = p_bucket and r.serial_number = a.successor limit 1
    ) s on true
    left join lateral (
      select r.decimals, unit_of(r.decimals) as unit from batches r where r.id = v.batch_id limit 1
    ) b on true
    cross join lateral (
      select a.amount / b.unit as minor, a.amount / b.unit > j.amount_minor as is_increase
    ) n
    left join lateral (
      select * from redemption_updates r where r.bucket = p_bucket and r.original_id = j.id limit 1
    ) u on true
    left join lateral (
      select coalesce(sum(r.amount_minor), 0) as refunded_minor from journal r
      where r.bucket = p_bucket and r.serial_number = any (involved) and r.kind = 'REFUND'
        and r.original_id = j.id and r.id >= id_floor(j.occurred_at, '-2 hours')
    ) f on true
    cross join lateral (select case
      when j.id is null then '60'
      when a.turn > 1 then 'again'
      when a.amount % b.unit <> 0 then '13'
      else coalesce(
        decline_after_pin(
          closed => s.closed is not null or v.closed is not null and n.is_increase,
          blocked => v.blocked_at is not null and n.is_increase,
          expired => v.expires_at <= p_now and n.is_increase,
          updated => u.original_id is not null,
          -- What was refunded is back on the voucher already.
          insufficient => n.minor - j.amount_minor > v.balance_minor or n.minor < f.refunded_minor),
        'ok')
      end as outcome) o
    order by a.ord
  ) d;
  if p_limit_ids is not null then
    select array_agg(u.currency), array_agg(greatest(u.new_minor - u.original_minor, 0))
    into currencies, increases from unnest(changes) as u;
    outcomes := within_limits('redeem', p_merchants, p_key_ids, currencies, increases, outcomes, p_now);
    for at in 1 .. cardinality(outcomes) loop
      changes[at].outcome := outcomes[at];
    end loop;
    perform count_under_limits('redeem', p_merchants, p_key_ids, currencies, increases, outcomes,
      p_limit_ids, p_now);
  end if;

  -- Write. The primary key allows one update of a redemption.
  select count(*), count(*) + count(*) filter (where u.new_minor > 0)
    + count(*) filter (where u.successor <> u.serial_number and u.original_minor > u.new_minor)
  into updates, entries
  from unnest(changes) as u where u.outcome = 'ok';
  if updates > 0 then
    insert into redemption_updates (bucket, original_id, reversal_id, new_id, new_minor, updated_at)
    select k.bucket, u.original_id, u.reversal_id, u.new_id, u.new_minor, p_now
    from buckets k cross join unnest(changes) as u
    where k.bucket = p_bucket and u.outcome = 'ok'
    order by u.original_id;
    get diagnostics written = row_count;
    perform expect_rows('redemption_updates', written, updates);
    insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      key_id, serial_number, reference, original_id, occurred_at)
    select k.bucket, m.id, m.kind, m.debit, m.credit, m.amount_minor, u.currency,
      case when m.kind <> 'REPLACEMENT' then u.merchant_id end, u.key_id,
      case when m.kind = 'REPLACEMENT' then u.successor else u.serial_number end, m.reference,
      u.original_id, p_now
    from buckets k cross join unnest(changes) as u
    cross join lateral (values
      (u.reversal_id, 'REDEMPTION_REVERSAL'::entry_kind, u.settlement, u.serial_number, u.original_minor,
        'CANCEL-' || u.reference),
      (u.new_id, 'REDEMPTION', u.serial_number, u.settlement, u.new_minor, 'NEW-' || u.reference),
      (u.replacement_id, 'REPLACEMENT', u.serial_number, u.successor,
        case when u.successor <> u.serial_number then u.original_minor - u.new_minor end, null)
    ) as m (id, kind, debit, credit, amount_minor, reference)
    where k.bucket = p_bucket and u.outcome = 'ok' and m.amount_minor > 0;
    get diagnostics written = row_count;
    perform expect_rows('journal', written, entries);
    if exists (select from webhook_endpoints e
      where e.merchant_id = any (p_merchants || 0) and e.disabled_at is null and e.removed_at is null)
    then
      perform announce(p_bucket, 'redemption.updated', p_merchants, p_reversal_ids, outcomes, p_now);
    end if;
    if p_originals is null then -- on one server
      perform hold_returned(successors, (
        select array_agg(case when u.outcome = 'ok' then u.original_minor - u.new_minor end order by u.ord)
        from unnest(changes) as u));
    end if;
    -- Money that returns to a replacement was part of the value that it took over.
    update vouchers v set
      balance_minor = v.balance_minor + u.original_minor - u.new_minor,
      value_minor = v.value_minor
        + case when u.successor <> u.serial_number then u.original_minor - u.new_minor else 0 end
    from unnest(changes) as u
    where v.bucket = p_bucket and v.serial_number = u.successor and u.outcome = 'ok';
    get diagnostics written = row_count;
    perform expect_rows('vouchers', written, updates);
    -- Money that returns to a voucher that has expired, or soon will, is swept again.
    insert into voucher_expiries (bucket, serial_number, due_at)
    select v.bucket, v.serial_number, greatest(v.expires_at, p_now)
    from vouchers v
    where v.bucket = p_bucket and v.serial_number = any (successors) and v.balance_minor > 0
      and v.expires_at <= p_now + interval '5 minutes'
    on conflict do nothing;
  end if;

  return query select * from unnest(changes);
end $$;

-- Returns the updates of redemptions, as `update_redemptions` does; no row for a redemption without one.
create function find_updates(
  p_bucket integer, p_merchants integer[], p_references text[], p_originals uuid[]
) returns table (
  ord integer, original_id uuid, original_minor bigint, original_at timestamptz, reference text,
  serial_number bigint, sealed bytea, decimals smallint, reversal_id uuid, new_id uuid, new_minor bigint,
  updated_at timestamptz
)
language plpgsql stable security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  originals uuid[] := p_originals;
begin
  if originals is null then
    select array_agg(f.id order by f.ord) into originals
    from find_redemptions(p_bucket, p_merchants, p_references) f;
  end if;
  return query
    select a.ord::integer, j.id, j.amount_minor, j.occurred_at, j.reference, j.serial_number, v.sealed,
      b.decimals, u.reversal_id, u.new_id, u.new_minor, u.updated_at
    from unnest(originals, p_merchants) with ordinality as a (id, merchant_id, ord)
    cross join lateral (
      select * from redemption_updates r where r.bucket = p_bucket and r.original_id = a.id limit 1
    ) u
    cross join lateral (
      select * from journal r
      where r.bucket = p_bucket and r.id = a.id and r.merchant_id = a.merchant_id limit 1
    ) j
    cross join lateral (
      select r.sealed, r.batch_id from vouchers r
      where r.bucket = p_bucket and r.serial_number = j.serial_number limit 1
    ) v
    cross join lateral (select r.decimals from batches r where r.id = v.batch_id limit 1) b;
end $$;

-- Refunds a part of a redemption: REFUND, from the settlement account of its merchant to its voucher, or to
-- the last voucher in the chain of replacements. Refunds give back at most what the redemption took, or what
-- an update left of it. Like an update, it locks the voucher of the redemption first. Returns the outcome
-- and, for `ok`, the voucher with its new balance.
create function refund_redemption(
  p_bucket integer, p_original uuid, p_amount bigint, p_id uuid, p_reference text, p_now timestamptz
) returns table (outcome text, serial_number bigint, balance_minor bigint)
language plpgsql security definer set search_path = scrip, pg_temp as $$
#variable_conflict use_column
declare
  original journal;
  v vouchers;
  serial bigint;
  involved bigint[] := '{}'; -- the voucher of the redemption, and those that replaced it
  left_minor bigint;
begin
  perform check_stamp(p_now);
  -- On several shards: the shard cannot move before this transaction ends.
  update buckets b set position = b.position where b.bucket = p_bucket and b.position < 0;
  select * into strict original from journal r
  where r.bucket = p_bucket and r.id = p_original and r.kind = 'REDEMPTION' and r.original_id is null;
  serial := original.serial_number;
  while serial is not null loop
    select * into strict v from vouchers r
    where r.bucket = p_bucket and r.serial_number = serial for update;
    involved := involved || serial;
    serial := v.replaced_by;
  end loop;
  select coalesce((
      select u.new_minor from redemption_updates u
      where u.bucket = p_bucket and u.original_id = p_original limit 1
    ), original.amount_minor) - coalesce(sum(r.amount_minor), 0)
  into left_minor
  from journal r
  where r.bucket = p_bucket and r.serial_number = any (involved) and r.kind = 'REFUND'
    and r.original_id = p_original and r.id >= id_floor(original.occurred_at, '-2 hours');
  outcome := coalesce(
    decline_after_pin(closed => v.closed is not null, blocked => false, expired => false,
      insufficient => p_amount > left_minor),
    'ok');
  serial_number := v.serial_number;
  balance_minor := v.balance_minor + p_amount;
  if outcome = 'ok' then
    insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      serial_number, original_id, reference, occurred_at)
    values (p_bucket, p_id, 'REFUND', original.credit_account, v.serial_number, p_amount, original.currency,
      original.merchant_id, v.serial_number, p_original, p_reference, p_now);
    if not found then perform expect_rows('journal', 0, 1); end if;
    if exists (
      select from batches b join products p on p.id = b.product_id
      where b.id = v.batch_id and p.outstanding_max_minor is not null
    ) then
      perform hold_returned(array[v.serial_number], array[p_amount]);
    end if;
    update vouchers r set balance_minor = r.balance_minor + p_amount
    where r.bucket = p_bucket and r.serial_number = v.serial_number;
    if not found then perform expect_rows('vouchers', 0, 1); end if;
    -- Money that returns to a voucher that has expired, or soon will, is swept again.
    insert into voucher_expiries (bucket, serial_number, due_at)
    select p_bucket, v.serial_number, greatest(v.expires_at, p_now)
    where v.expires_at <= p_now + interval '5 minutes'
    on conflict do nothing;
  end if;
  return next;
end $$;

revoke execute on function find_redemptions, update_redemptions, find_updates, refund_redemption from public;
grant execute on function find_redemptions, update_redemptions, find_updates, refund_redemption
  to scrip_service;
