-- 021: declines: requests of merchants that named a voucher and were refused. They let support explain why.
-- They are kept for 90 days, outside the journal, in monthly partitions. Only new tables: it locks nothing
-- and takes milliseconds.

-- Contains no code and no PIN. The service adds rows in bulk, a moment after the answer
-- (src/vouchers/declines.ts).
create table declines (
  id uuid not null, -- UUID of version 7, which begins with the time
  serial_number bigint, -- null: the code is unknown
  merchant_id integer not null,
  key_id text not null,
  operation text not null
    constraint declines_operation check (operation in ('activate', 'balance', 'redeem')),
  code text not null, -- the refusal; for an opaque merchant, the hidden one
  amount_units bigint, -- in ten-thousandths of a major unit
  reference text,
  constraint declines_pkey primary key (id)
) partition by range (id);
create index declines_by_voucher on declines (serial_number, id) where serial_number is not null;
create index declines_by_merchant on declines (merchant_id, id);
create table declines_default partition of declines default;

-- The number of declines on each UTC day, by code. It includes those that were not kept because there were
-- too many.
create table decline_counts (
  day date not null,
  code text not null,
  declines bigint not null,
  constraint decline_counts_pkey primary key (day, code)
);

-- Creates the missing partitions from the month of `first` to the last one as seen today, except where the
-- default partition contains rows of the month.
create function create_decline_partitions(first timestamptz, today timestamptz) returns integer
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  month timestamp := date_trunc('month', first at time zone 'UTC');
  lower_id uuid;
  upper_id uuid;
  made integer := 0;
begin
  perform pg_advisory_xact_lock(7311990004);
  while month <= last_partition(today) loop
    lower_id := id_floor(month at time zone 'UTC');
    upper_id := id_floor((month + interval '1 month') at time zone 'UTC');
    if to_regclass(format('scrip.%I', 'declines' || to_char(month, '_YYYY_MM'))) is null
      and not exists (select from declines_default where id >= lower_id and id < upper_id)
    then
      execute format('create table %I partition of declines for values from (%L) to (%L)',
        'declines' || to_char(month, '_YYYY_MM'), lower_id, upper_id);
      made := made + 1;
    end if;
    month := month + interval '1 month';
  end loop;
  return made;
end $$;

-- Drops the partitions whose month ended before `before`, and deletes older rows of the default partition and
-- older counts. Returns the months.
create function drop_old_declines(before timestamptz) returns setof text
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  month text;
begin
  perform pg_advisory_xact_lock(7311990004);
  delete from declines_default where id < id_floor(before);
  delete from decline_counts where day < (before at time zone 'UTC')::date;
  for month in
    select substring(c.relname from '\d{4}_\d{2}$')
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'declines'::regclass and c.relname ~ '_\d{4}_\d{2}$' order by 1
  loop
    continue when to_date(month, 'YYYY_MM') + interval '1 month' > before at time zone 'UTC';
    execute format('drop table %I', 'declines_' || month);
    return next month;
  end loop;
end $$;

revoke execute on function create_decline_partitions, drop_old_declines from public;
grant execute on function create_decline_partitions, drop_old_declines to scrip_service;
grant select, insert on declines to scrip_service;
grant select, insert, update on decline_counts to scrip_service;

select create_decline_partitions(now(), now());
