-- 018: the buckets by position, for what has to know all of them: which there are, and where the rows of
-- a merchant lie.
--
-- `buckets` anchors every insert to its bucket, so over shards it is distributed, a row on each shard.
-- This list stays on the coordinator and can be read while a worker is away. A new table and a function:
-- nothing is locked; milliseconds.
create table bucket_positions (
  position integer primary key,
  bucket integer not null constraint bucket_positions_once unique
);
insert into bucket_positions (position, bucket) select position, bucket from buckets;
grant select on bucket_positions to scrip_service;

create or replace function bucket_of(merchant_id integer) returns integer
language sql stable security definer set search_path = scrip, pg_temp as $$
  select p.bucket from bucket_positions p where p.position = merchant_id % (select count(*)
    from bucket_positions)
$$;

-- Which of these keys of codes are taken. With the rights of the owner, as whom the transaction that asks
-- has written vouchers: Citus lets no second role read what a first one has written in the same
-- transaction.
create function find_code_keys(p_code_keys uuid[]) returns table (code_key uuid)
language plpgsql stable security definer set search_path = scrip, pg_temp as $$
begin
  return query select v.code_key from vouchers v where v.code_key = any (p_code_keys);
end $$;
revoke execute on function find_code_keys from public;
grant execute on function find_code_keys to scrip_service;
