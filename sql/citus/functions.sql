-- Adapts the functions to a distributed database. It runs after distribute.sql, after the migrations of each
-- later release, and by `scrip migrate --distribute` after a worker was added: a migration that replaces a
-- function brings back the form for one server. It changes nothing that is adapted already. Functions in use
-- are not locked.
--
-- Names include their schema (distribute.sql).
set local search_path = pg_catalog;
set local client_min_messages = warning;

-- Functions of one bucket run on its worker: a plan made without the bucket would ask all workers. The rules
-- that they share are on every worker. All other functions work on tables of the coordinator, including those
-- that move money between a voucher of a bucket and a float. Citus cannot use generic plans: a function that
-- had them on one server is marked with `auto`.
do $$
declare
  f record;
begin
  for f in
    select p.oid::regprocedure::text as signature, r.is_rule,
      'plan_cache_mode=force_generic_plan' = any (p.proconfig) as is_generic,
      o.objid is not null and (r.is_rule or o.distribution_argument_index is not null) as is_distributed
    from pg_proc p
    cross join lateral (
      select p.provolatile = 'i' or p.proname in ('database_time', 'check_stamp', 'expect_rows') as is_rule
    ) r
    left join pg_dist_object o on o.classid = 'pg_proc'::regclass and o.objid = p.oid
    where p.pronamespace = 'scrip'::regnamespace and (r.is_rule or 'p_bucket' = any (p.proargnames))
      and p.proname not in ('book_voucher', 'sweep_vouchers', 'take_price', 'release_price',
        'cancel_inactive', 'reserve_again', 'moved_ages_of', 'touched_vouchers_of')
    order by r.is_rule desc, p.oid
  loop
    if f.is_generic then execute format('alter function %s set plan_cache_mode = auto', f.signature); end if;
    if f.is_rule and not f.is_distributed then
      perform create_distributed_function(f.signature::regprocedure);
    elsif not f.is_distributed then
      perform create_distributed_function(
        f.signature::regprocedure, 'p_bucket', colocate_with => 'scrip.buckets');
    end if;
  end loop;
end $$;

-- A function that reads all shards cannot use a generic plan either.
do $$
declare
  signature text;
begin
  for signature in
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace = 'scrip'::regnamespace and p.prosrc ~ '\m(journal|vouchers)\M'
      and 'p_bucket' <> all (coalesce(p.proargnames, '{}'))
      and exists (select from unnest(p.proconfig) s where s like 'plan_cache_mode=%')
  loop
    execute format('alter function %s reset plan_cache_mode', signature);
  end loop;
end $$;

-- Citus does not see the parameters of an SQL function. Functions that read the shards become PL/pgSQL.
do $$
declare
  f record;
begin
  for f in
    select pg_get_functiondef(p.oid) as definition, p.prosrc as body, p.proretset as is_set
    from pg_proc p
    where p.pronamespace = 'scrip'::regnamespace
      and p.prolang = (select l.oid from pg_language l where l.lanname = 'sql')
      and p.prosrc ~ '\m(journal|vouchers|book_rows|slice_movements|movements|earlier_reversals)\M'
  loop
    execute replace(replace(f.definition, 'LANGUAGE sql', 'LANGUAGE plpgsql'), f.body,
      format(E'\n#variable_conflict use_column\nbegin return %s; end ',
        case when f.is_set then 'query ' || f.body else '(' || f.body || ')' end));
  end loop;
end $$;

-- A transaction that writes to any table of the coordinator commits in two phases on the workers
-- (distribute.sql). Otherwise a journal row could remain without the change of its float.
create or replace function scrip.use_two_phases() returns trigger
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update two_phases set id = id where id < 0;
  return null;
end $$;
do $$
declare
  name text;
begin
  for name in
    select c.oid::regclass::text from pg_class c
    where c.relnamespace = 'scrip'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and not exists (select from pg_dist_partition p where p.logicalrelid = c.oid)
      and not exists (select from pg_dist_shard s where c.relname like '%\_' || s.shardid)
      and not exists (select from pg_trigger t where t.tgrelid = c.oid and t.tgname = 'two_phases')
  loop
    execute format('create trigger two_phases before insert or update or delete on %s for each statement
      execute function scrip.use_two_phases()', name);
  end loop;
end $$;

-- The transactions of every server. Each server is asked on a separate connection: the answer is not part of
-- this transaction, and the connection's own transaction ends with the answer.
create or replace function scrip.node_transactions() returns table (
  node integer, newest xid8, oldest xid8, asked_at timestamptz
)
language plpgsql security definer set search_path = scrip, pg_catalog, pg_temp as $$
declare
  answer record;
begin
  for answer in
    select r.nodeid, r.success, r.result from run_command_on_all_nodes($ask$
      select concat_ws(' ', extract(epoch from scrip.database_time()), pg_current_xact_id(),
        pg_snapshot_xmin(pg_current_snapshot()))
    $ask$) r
  loop
    if not answer.success then
      raise exception 'node % does not answer: %', answer.nodeid, answer.result using errcode = '57P03';
    end if;
    node := answer.nodeid;
    asked_at := to_timestamp(split_part(answer.result, ' ', 1)::numeric);
    newest := split_part(answer.result, ' ', 2)::xid8;
    oldest := split_part(answer.result, ' ', 3)::xid8;
    return next;
  end loop;
end $$;

-- Each bucket has a schema with its own copies of the hot functions, and of what they call, which name the
-- shards of the bucket. PostgreSQL plans a copy as on one server and keeps the plans, while Citus plans each
-- statement of a function in each call, which costs several times as much as running it.
--
-- A copy that the service calls first checks that the shards are on this server (SC003). One that writes pins
-- the bucket before: it takes the lock that a move of the shard waits for, as Citus does for each change of a
-- distributed table, so the shards stay until the transaction ends. A change of no row would take it too, but
-- Citus plans it in each call. One that only reads sees its shards and their place in one snapshot. What a
-- copy calls may use Citus, so it does not inherit the generic plans.
create or replace function scrip.require_shard(p_shard bigint) returns void
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = auto as $$
begin
  perform from pg_dist_placement p join pg_dist_local_group g on g.groupid = p.groupid
  where p.shardid = p_shard;
  if not found then raise exception 'shard % is on another server', p_shard using errcode = 'SC003'; end if;
end $$;
create or replace function scrip.pin_shard(p_shard bigint) returns void
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = auto as $$
declare
  share constant integer := 5; -- ShareLock
begin
  perform lock_shard_metadata(share, array[p_shard]);
  perform require_shard(p_shard);
end $$;
revoke execute on function scrip.require_shard, scrip.pin_shard from public;
grant execute on function scrip.require_shard, scrip.pin_shard to scrip_service;
do $$
declare
  tables regclass[] := array(
    select p.logicalrelid from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
    where c.relnamespace = 'scrip'::regnamespace and not c.relispartition
      and (p.partmethod = 'h' or p.repmodel = 't'));
  owner regrole := (select n.nspowner::regrole from pg_namespace n where n.nspname = 'scrip');
  schema text;
  own_shard bigint;
  place record;
  f record;
  named text; -- a table
  shard bigint;
  body text;
  definition text;
begin
  perform create_distributed_function(p.oid::regprocedure) from pg_proc p
  where p.pronamespace = 'scrip'::regnamespace and p.proname in ('require_shard', 'pin_shard')
    and not exists (select from pg_dist_object o where o.classid = 'pg_proc'::regclass and o.objid = p.oid);
  for place in select p.bucket from scrip.bucket_positions p order by p.position loop
    schema := 'scrip_bucket_' || place.bucket;
    own_shard := get_shard_id_for_distribution_column('scrip.buckets', place.bucket);
    if to_regnamespace(schema) is null then
      execute format('create schema %I authorization %s', schema, owner);
    end if;
    for f in
      select p.prosrc as body, pg_get_functiondef(p.oid) as definition, p.provolatile = 'v' as writes,
        p.proargnames[1] = 'p_bucket' and p.proname <> 'announce' as is_called,
        format('%I.%I(%s)', schema, p.proname, oidvectortypes(p.proargtypes)) as signature
      from pg_proc p
      where p.pronamespace = 'scrip'::regnamespace and (
        p.proargnames[1] = 'p_bucket' and 'plan_cache_mode=auto' = any (p.proconfig)
        or p.proname in ('announce', 'check_stamp', 'read_long_balance'))
      order by p.proname
    loop
      body := f.body;
      if f.is_called then
        body := regexp_replace(body, '(^|\n)begin\n', format(E'\\1begin\n  perform %s;\n', case
          when f.writes then format('scrip.pin_shard(%s)', own_shard)
          else format('scrip.require_shard(%s)', own_shard) end));
        if body = f.body then raise exception '% has no begin on a line', f.signature; end if;
      end if;
      for named, shard in
        select c.relname, case p.partmethod
          when 'h' then get_shard_id_for_distribution_column(p.logicalrelid, place.bucket)
          else (select s.shardid from pg_dist_shard s where s.logicalrelid = p.logicalrelid) end
        from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
        where p.logicalrelid = any (tables)
      loop
        body := regexp_replace(body, format('\m%s\M', named), format('scrip.%s_%s', named, shard), 'g');
      end loop;
      definition := replace(replace(replace(replace(f.definition, f.body, body),
        'FUNCTION scrip.', format('FUNCTION %I.', schema)),
        'SET search_path TO ''scrip''', format('SET search_path TO %L, ''scrip''', schema)),
        'SET plan_cache_mode TO ''auto''', 'SET plan_cache_mode TO ''force_generic_plan''');
      if not f.is_called then
        definition := replace(definition, E'\nAS $function$',
          E'\n SET plan_cache_mode TO ''auto''\nAS $function$');
      end if;
      continue when definition = (
        select pg_get_functiondef(p.oid) from pg_proc p where p.oid = to_regprocedure(f.signature));
      execute definition;
      execute format('alter function %s owner to %s', f.signature, owner);
      if not exists (
        select from pg_dist_object o
        where o.classid = 'pg_proc'::regclass and o.objid = f.signature::regprocedure)
      then
        perform create_distributed_function(f.signature::regprocedure);
      end if;
      execute format('grant execute on function %s to scrip_service', f.signature);
    end loop;
    execute format('grant usage on schema %I to scrip_service', schema);
  end loop;
end $$;

-- A worker gets the grants of a function of one bucket, but not the revokes; also one that is added later.
do $$
declare
  signature text;
begin
  for signature in
    select p.oid::regprocedure::text from pg_proc p
    where p.pronamespace::regnamespace::text ~ '^scrip(_bucket_\d+)?$' and 'p_bucket' = any (p.proargnames)
  loop
    execute format('revoke execute on function %s from public', signature);
  end loop;
end $$;

-- The grants on the schema have not reached the workers.
grant usage on schema scrip to scrip_service;
