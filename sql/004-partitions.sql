-- 004: creates the monthly partitions of the journal and the webhook tables ahead of time, and drops old
-- ones. The service's role cannot change the schema, so these functions run with the rights of its owner.
-- Locks: creating a partition takes a lock on its parent that does not block reads and writes (share update
-- exclusive), and an exclusive lock on the default partition, which is empty. Each takes milliseconds.

-- Returns the smallest id of a time: ids made at that time or later are not smaller. Declared immutable
-- although extract() is not, in general: the epoch does not depend on the time zone.
create function id_floor(at timestamptz) returns uuid language sql immutable parallel safe as $$
  select (
    lpad(to_hex(floor(extract(epoch from greatest(at, 'epoch')) * 1000)::bigint), 12, '0')
    || '70008000000000000000'
  )::uuid
$$;

-- The same for a time before or after. Immutable, unlike the sum of a time and an interval, which may depend
-- on the time zone: the planner computes it, and leaves out the partitions of other months at once.
create function id_floor(at timestamptz, margin interval) returns uuid
language sql immutable parallel safe as $$
  select scrip.id_floor(at + margin)
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

-- Creates the missing partitions from the month of `first` to the last one as seen today. Returns how many it
-- created.
create function create_partitions(first timestamptz, today timestamptz) returns integer
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  parent text;
  month timestamp;
  lower_id uuid;
  upper_id uuid;
  is_taken boolean;
  made integer := 0;
begin
  perform pg_advisory_xact_lock(7311990004);
  foreach parent in array array['journal', 'webhook_deliveries', 'webhook_attempts'] loop
    month := date_trunc('month', first at time zone 'UTC');
    while month <= last_partition(today) loop
      if to_regclass(format('scrip.%I', parent || to_char(month, '_YYYY_MM'))) is null then
        lower_id := id_floor(month at time zone 'UTC');
        upper_id := id_floor((month + interval '1 month') at time zone 'UTC');
        -- Rows of this month are already in the default partition: they stay there, and later ones join them.
        execute format('select exists (select from %I where %I >= $1 and %I < $2)', parent || '_default',
          case parent when 'journal' then 'id' else 'event_id' end,
          case parent when 'journal' then 'id' else 'event_id' end)
          into is_taken using lower_id, upper_id;
        if not is_taken then
          execute format('create table %I partition of %I for values from (%L) to (%L)',
            parent || to_char(month, '_YYYY_MM'), parent, lower_id, upper_id);
          -- Rows of the journal never change: freeze them and read their statistics early, in small steps,
          -- not all at once later.
          if parent = 'journal' then
            execute format('alter table %I set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)',
              parent || to_char(month, '_YYYY_MM'));
          else
            execute format('alter table %I set (fillfactor = 80)', parent || to_char(month, '_YYYY_MM'));
          end if;
          made := made + 1;
        end if;
      end if;
      month := month + interval '1 month';
    end loop;
  end loop;
  return made;
end $$;

-- Drops the partitions of deliveries and attempts whose month ended before `before`, unless they contain
-- pending deliveries or attempts after `before`. Returns the months that it dropped.
create function drop_old_deliveries(before timestamptz) returns setof text
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  month text;
  in_use boolean;
begin
  perform pg_advisory_xact_lock(7311990004);
  for month in
    select substring(c.relname from '\d{4}_\d{2}$')
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'webhook_deliveries'::regclass and c.relname ~ '_\d{4}_\d{2}$' order by 1
  loop
    continue when to_date(month, 'YYYY_MM') + interval '1 month' > before at time zone 'UTC';
    execute format('select exists (select from %I where attempted_at >= $1) or exists (select from %I where state = ''PENDING'')',
      'webhook_attempts_' || month, 'webhook_deliveries_' || month)
      into in_use using before;
    continue when in_use;
    execute format('drop table %I, %I', 'webhook_attempts_' || month, 'webhook_deliveries_' || month);
    return next month;
  end loop;
end $$;

revoke execute on function create_partitions, drop_old_deliveries from public;
grant execute on function create_partitions, drop_old_deliveries to scrip_service;
grant execute on function id_floor(timestamptz), id_floor(timestamptz, interval) to scrip_service;

select create_partitions(now(), now());
