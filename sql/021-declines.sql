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
    constraint declines_operation check (operation in ('activate', 'balance', 'cash-out', 'redeem')),
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

-- Deletes the rows of the default partition and the counts from before p_before, and drops the partition of
-- the oldest month that ended before it. Returns the month, or null.
create function drop_old_declines(p_before timestamptz) returns text
language plpgsql security definer set search_path = scrip, pg_temp set lock_timeout = '200ms' as $$
declare
  oldest text;
begin
  perform pg_advisory_xact_lock(7311990004);
  delete from declines_default where id < id_floor(p_before);
  delete from decline_counts where day < (p_before at time zone 'UTC')::date;
  select o.month into oldest from old_partitions('declines', p_before) o limit 1;
  if oldest is not null then execute format('drop table %I', 'declines_' || oldest); end if;
  return oldest;
end $$;

revoke execute on function drop_old_declines from public;
grant execute on function drop_old_declines to scrip_service;
grant select, insert on declines to scrip_service;
grant select, insert, update on decline_counts to scrip_service;

select create_partition(parent, month) from missing_partitions(now(), now());
