-- 004: creates the monthly partitions of the journal, the webhook tables and the declines ahead of time, and
-- drops old ones. The service's role cannot change the schema, so these functions run with the rights of its
-- owner.
--
-- Locks: creating or dropping a partition locks its parent exclusively (access exclusive), so it waits for
-- every transaction that has read the parent, and every booking waits behind it. Attaching a table that was
-- created before would lock the parent less, but the default partition exclusively, which long readers hold
-- as well. So each function handles one partition, in a transaction of its own, and gives up after 200 ms
-- (55P03). Maintenance tries again every ten minutes, and has three months for it.

-- Returns the smallest id of a time before or after: ids made at that time or later are not smaller. Only
-- immutable operations, unlike the sum of a time and an interval, which may depend on the time zone: so the
-- planner inlines it, computes it for a known time, and leaves out the partitions of other months at once.
create function id_floor(at timestamptz, margin interval default '0') returns uuid
language sql immutable parallel safe as $$
  select (
    lpad(to_hex(floor(
      extract(epoch from greatest(at - timestamptz 'epoch' + margin, interval '0')) * 1000)::bigint), 12, '0')
    || '70008000000000000000'
  )::uuid
$$;

-- Rows of a month without a partition go to the default one: nothing is lost if a clock is far ahead.
create table journal_default partition of journal default;
create table webhook_deliveries_default partition of webhook_deliveries default;
create table webhook_attempts_default partition of webhook_attempts default;

-- Returns the last month that has a partition, as seen today. There are few ahead, since a statement that is
-- not limited to some months plans and locks every partition.
create function last_partition(today timestamptz) returns timestamp language sql immutable parallel safe as $$
  select date_trunc('month', today at time zone 'UTC') + interval '3 months'
$$;

-- Lists the missing partitions from the month of p_first to the last one as seen at p_today.
create function missing_partitions(p_first timestamptz, p_today timestamptz) returns table (
  parent text, month date
)
language sql stable set search_path = scrip, pg_temp as $$
  select p.relname::text, m.month::date
  from pg_class p
  cross join generate_series(
    date_trunc('month', p_first at time zone 'UTC'), last_partition(p_today), interval '1 month') m (month)
  where p.relnamespace = 'scrip'::regnamespace and p.relkind = 'p'
    and to_regclass(format('%I', p.relname || to_char(m.month, '_YYYY_MM'))) is null
  order by m.month, p.relname
$$;

-- Creates the partition of a month. Returns false if it exists, or if the default partition contains rows of
-- the month: they stay there, and later ones join them.
create function create_partition(p_parent text, p_month date) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp set lock_timeout = '200ms' as $$
declare
  lower_id uuid := id_floor(p_month::timestamp at time zone 'UTC');
  upper_id uuid := id_floor((p_month + interval '1 month') at time zone 'UTC');
  part text := p_parent || to_char(p_month, '_YYYY_MM');
  key text;
  is_taken boolean;
begin
  perform pg_advisory_xact_lock(7311990004);
  select a.attname into strict key
  from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
  where p.partrelid = format('%I', p_parent)::regclass;
  if to_regclass(format('%I', part)) is not null then return false; end if;
  execute format('select exists (select from %I where %I >= $1 and %I < $2)', p_parent || '_default', key, key)
    into is_taken using lower_id, upper_id;
  if is_taken then return false; end if;
  execute format('create table %I partition of %I for values from (%L) to (%L)', part, p_parent, lower_id,
    upper_id);
  -- Vacuum in small steps, not after a fifth of a month. Rows of the journal never change: freezing them and
  -- reading their statistics is all that it does there. Deliveries change a few times, within minutes.
  execute format('alter table %I set (autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, fillfactor = %s)', part,
    case when p_parent like 'webhook%' then 80 else 100 end);
  return true;
end $$;

-- Lists the months of a table's partitions that ended before p_before, the oldest first.
create function old_partitions(p_parent text, p_before timestamptz) returns table (month text)
language sql stable set search_path = scrip, pg_temp as $$
  select substring(c.relname from '\d{4}_\d{2}$')
  from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = format('%I', p_parent)::regclass and c.relname ~ '_\d{4}_\d{2}$'
    and to_date(right(c.relname, 7), 'YYYY_MM') + interval '1 month' <= p_before at time zone 'UTC'
  order by 1
$$;

-- Drops the partitions of deliveries and attempts of the oldest month that ended before p_before, unless they
-- contain pending deliveries or attempts after p_before. Returns the month, or null. An endpoint whose kept
-- events are dropped knows up to which position; those that nobody has read count as one more position.
create function drop_old_deliveries(p_before timestamptz) returns text
language plpgsql security definer set search_path = scrip, pg_temp set lock_timeout = '200ms' as $$
declare
  month text;
  in_use boolean;
  lost record;
begin
  perform pg_advisory_xact_lock(7311990004);
  for month in select o.month from old_partitions('webhook_deliveries', p_before) o loop
    execute format('select exists (select from %I where attempted_at >= $1)
        or exists (select from %I where state = ''PENDING'')',
      'webhook_attempts_' || month, 'webhook_deliveries_' || month)
      into in_use using p_before;
    continue when in_use;
    for lost in execute format('select endpoint_id, max(position) as position,
          bool_or(position is null) as unread
        from %I where state = ''KEPT'' group by endpoint_id', 'webhook_deliveries_' || month)
    loop
      update webhook_endpoints e set
        positions = e.positions + lost.unread::integer,
        lost_to = greatest(e.lost_to, lost.position, case when lost.unread then e.positions + 1 end)
      where e.id = lost.endpoint_id;
    end loop;
    execute format('drop table %I, %I', 'webhook_attempts_' || month, 'webhook_deliveries_' || month);
    return month;
  end loop;
  return null;
end $$;

-- Moves the rows of a month of the journal to a tablespace, while others are booked. They never change: they
-- are copied first, and the copy takes the place of the partition in a moment. Only the owner may call it.
-- Returns the number of rows.
create function move_partition(p_part text, p_tablespace text) returns bigint
language plpgsql set search_path = scrip, pg_temp set lock_timeout = '200ms' as $$
declare
  copy constant text := p_part || '_copy';
  bound text;
  condition text;
  options text;
  copied bigint;
  index_name text;
begin
  perform pg_advisory_xact_lock(7311990004);
  select pg_get_expr(c.relpartbound, c.oid), pg_get_partition_constraintdef(c.oid),
    array_to_string(c.reloptions, ', ')
  into strict bound, condition, options
  from pg_class c where c.oid = format('%I', p_part)::regclass and c.relispartition;
  -- With the condition of the partition, the copy need not be read again when it is attached.
  perform set_config('default_tablespace', p_tablespace, true);
  execute format('create table %I (like %I including all, constraint of_month check (%s)) with (%s)', copy,
    p_part, condition, options);
  execute format('insert into %I select * from %I order by id', copy, p_part);
  get diagnostics copied = row_count;
  loop
    begin
      execute format('alter table journal detach partition %I', p_part);
      execute format('alter table journal attach partition %I %s', copy, bound);
      exit;
    exception when lock_not_available then
      perform pg_sleep(1);
    end;
  end loop;
  execute format('drop table %I', p_part);
  execute format('alter table %I rename to %I', copy, p_part);
  execute format('alter table %I drop constraint of_month', p_part);
  for index_name in
    select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = format('%I', p_part)::regclass
  loop
    execute format('alter index %I rename to %I', index_name, replace(index_name, copy, p_part));
  end loop;
  return copied;
end $$;

revoke execute on function create_partition, drop_old_deliveries, move_partition from public;
grant execute on function create_partition, drop_old_deliveries to scrip_service;
grant execute on function id_floor to scrip_service;

select create_partition(parent, month) from missing_partitions(now(), now());
