-- 018: the list of all buckets by position. The bucket of a merchant's rows follows from it.
--
-- Every insert joins `buckets`, so on several shards that table is distributed, one row on each shard. This
-- list stays on the coordinator and can be read while a worker is down. A new table and a function: it locks
-- nothing and takes milliseconds.
create table bucket_positions (
  position integer primary key,
  bucket integer not null constraint bucket_positions_once unique
);
insert into bucket_positions (position, bucket) select position, bucket from buckets;
grant select on bucket_positions to scrip_service;

create or replace function bucket_of(merchant_id integer) returns integer
language sql stable security definer set search_path = scrip, pg_temp as $$
  select p.bucket from bucket_positions p
  where p.position = merchant_id % (select count(*) from bucket_positions)
$$;

-- Returns the given keys of codes that exist already. It runs with the rights of the owner: the calling
-- transaction has written vouchers in that role, and Citus does not let a second role read them in the same
-- transaction.
create function find_code_keys(p_code_keys uuid[]) returns table (code_key uuid)
language plpgsql stable security definer set search_path = scrip, pg_temp as $$
begin
  return query select v.code_key from vouchers v where v.code_key = any (p_code_keys);
end $$;
revoke execute on function find_code_keys from public;
grant execute on function find_code_keys to scrip_service;
