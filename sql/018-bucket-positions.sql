-- 018: the buckets by position, for what has to know all of them: which there are, and where the rows of a merchant lie.
--
-- `buckets` anchors every insert to its bucket, so over shards it is distributed, a row on each shard. This list stays on
-- the coordinator and can be read while a worker is away. A new table and a function: nothing is locked; milliseconds.
create table bucket_positions (
  position integer primary key,
  bucket integer not null constraint bucket_positions_once unique
);
insert into bucket_positions (position, bucket) select position, bucket from buckets;
grant select on bucket_positions to scrip_service, scrip_producer;

create or replace function bucket_of(merchant_id integer) returns integer
language sql stable security definer set search_path = scrip, pg_temp as $$
  select p.bucket from bucket_positions p where p.position = merchant_id % (select count(*) from bucket_positions)
$$;
