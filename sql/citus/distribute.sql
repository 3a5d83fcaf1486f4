-- Distributes the schema over the workers of a Citus cluster: `scrip migrate --distribute` runs this file
-- on the coordinator, in one transaction, after all migrations (docs/how-to/citus.md). functions.sql follows
-- in the same transaction. `scrip.bucket_count` holds the number of buckets.
--
-- A bucket is an integer whose hash belongs to its own shard. There are as many shards as buckets; a
-- shard can be moved but never split. Existing rows move to their buckets: vouchers by their serial number,
-- with their journal rows, updates and deliveries; claims by their reference; all other rows by their
-- merchant.
--
-- Locks all tables exclusively until the end. It takes a second for each bucket, and a minute for each
-- million vouchers.
--
-- Names include their schema: Citus sends statements to the workers, where the search path is different.
set local search_path = pg_catalog;
set local client_min_messages = warning;
set local citus.multi_shard_modify_mode = 'sequential';
set local citus.shard_replication_factor = 1;
select set_config('citus.shard_count', current_setting('scrip.bucket_count'), true);

-- Choose the buckets: for each shard, the first positive integer whose hash belongs to it. Since no bucket is
-- 0, a process that does not know of the distribution and writes bucket 0 fails.
delete from scrip.buckets;
delete from scrip.bucket_positions;
insert into scrip.bucket_positions (position, bucket)
select s.shard, min(s.bucket)
from (
  select k as bucket, ((hashint4(k)::bigint + 2147483648) / (4294967296 / n.count))::integer as shard
  from (select current_setting('scrip.bucket_count')::integer as count) n
  cross join generate_series(1, 100 * n.count) k
) s
where s.shard < current_setting('scrip.bucket_count')::integer
group by s.shard;
insert into scrip.buckets (bucket, position) select bucket, position from scrip.bucket_positions;

-- Returns the slot of a reference, like slotOfReference in src/db/buckets.ts.
create function scrip.slot_of_reference(
  merchant_id integer, operation scrip.operation, reference text
) returns integer
language sql immutable parallel safe as $$
  select get_byte(sha256(convert_to(merchant_id || ' ' || operation || ' ' || reference, 'UTF8')), 0) % 64
$$;
create function scrip.bucket_at(slot bigint) returns integer
language sql stable set search_path = scrip, pg_temp as $$
  select p.bucket from bucket_positions p where p.position = slot % (select count(*) from bucket_positions)
$$;

-- Keys must contain the distribution column. It is the last column, so that each index still begins with the
-- column of its look-ups.
alter table scrip.vouchers drop constraint vouchers_pkey, drop constraint vouchers_code_unique;
alter table scrip.journal drop constraint journal_pkey;
alter table scrip.claims drop constraint claims_pkey;
alter table scrip.voids drop constraint voids_pkey;
alter table scrip.redemption_updates drop constraint redemption_updates_pkey;
alter table scrip.webhook_deliveries drop constraint webhook_deliveries_pkey;
alter table scrip.webhook_attempts drop constraint webhook_attempts_pkey;

-- Existing rows move to their bucket. The list of buckets is joined as a table: a look-up for each row would
-- cost a minute per million.
create temporary table bucket_of_slot on commit drop as
select s.slot, scrip.bucket_at(s.slot) as bucket from generate_series(0, 63) as s (slot);
update scrip.vouchers v set bucket = b.bucket
from bucket_of_slot b where b.slot = v.serial_number % 64;
update scrip.journal j set bucket = b.bucket
from bucket_of_slot b where j.serial_number is not null and b.slot = j.serial_number % 64;
update scrip.journal j set bucket = scrip.bucket_at(coalesce(j.merchant_id, 0)) where j.serial_number is null;
update scrip.claims c set bucket = b.bucket
from bucket_of_slot b where b.slot = scrip.slot_of_reference(c.merchant_id, c.operation, c.reference);
update scrip.redemption_updates u set bucket = j.bucket
from scrip.journal j where j.id = u.original_id;
update scrip.webhook_deliveries d set bucket = scrip.bucket_at(e.merchant_id)
from scrip.webhook_endpoints e where e.id = d.endpoint_id;
update scrip.webhook_deliveries d set bucket = j.bucket
from scrip.journal j where j.id = d.subject_id;
update scrip.voucher_expiries e set bucket = b.bucket
from bucket_of_slot b where b.slot = e.serial_number % 64;
update scrip.voucher_extensions e set bucket = b.bucket
from bucket_of_slot b where b.slot = e.serial_number % 64;
update scrip.webhook_attempts a set bucket = d.bucket
from scrip.webhook_deliveries d where d.endpoint_id = a.endpoint_id and d.event_id = a.event_id;
-- Finished rotations of the key ring are recorded for each bucket.
insert into scrip.keyring_rotations (key_id, bucket, resealed_to, started_at, finished_at)
select r.key_id, p.bucket, r.resealed_to, r.started_at, r.finished_at
from scrip.keyring_rotations r cross join scrip.bucket_positions p where r.bucket = 0;
delete from scrip.keyring_rotations where bucket = 0;

do $$
declare
  name text;
begin
  foreach name in array array['vouchers', 'journal', 'claims', 'voids', 'redemption_updates',
    'voucher_expiries', 'voucher_extensions', 'webhook_deliveries', 'webhook_attempts']
  loop
    execute format('alter table scrip.%I alter bucket drop default, add constraint %I check (bucket > 0)',
      name, name || '_bucket_positive');
  end loop;
end $$;
alter table scrip.vouchers
  add constraint vouchers_pkey primary key (serial_number, bucket),
  add constraint vouchers_code_unique unique (code_key, bucket);
alter table scrip.journal add constraint journal_pkey primary key (id, bucket);
alter table scrip.claims add constraint claims_pkey primary key (merchant_id, operation, reference, bucket);
alter table scrip.voids add constraint voids_pkey primary key (id, bucket);
alter table scrip.redemption_updates add constraint redemption_updates_pkey primary key (original_id, bucket);
alter table scrip.webhook_deliveries
  add constraint webhook_deliveries_pkey primary key (endpoint_id, event_id, bucket);
alter table scrip.webhook_attempts
  add constraint webhook_attempts_pkey primary key (endpoint_id, event_id, number, bucket);

-- Tables that every shard reads are on every worker. All others stay on the coordinator. Foreign keys between
-- the two groups are dropped; rows of the referenced tables are never deleted.
alter table scrip.merchants drop constraint merchants_default_product;
alter table scrip.floats drop constraint floats_account;
alter table scrip.batches drop constraint batches_merchant;
select create_reference_table(('scrip.' || t)::regclass)
from unnest(array['products', 'accounts', 'batches', 'webhook_endpoints', 'book_late_rows', 'book_horizon'])
  with ordinality as u (t, n)
order by n;
-- create_reference_table sets the sequences of identity columns back to 1.
select setval(pg_get_serial_sequence('scrip.products', 'id'), coalesce(max(id), 0) + 1, false)
from scrip.products;
select setval(pg_get_serial_sequence('scrip.accounts', 'id'), coalesce(max(id), 0) + 1, false)
from scrip.accounts;
select setval(pg_get_serial_sequence('scrip.batches', 'id'), coalesce(max(id), 0) + 1, false)
from scrip.batches;
select setval(pg_get_serial_sequence('scrip.webhook_endpoints', 'id'), coalesce(max(id), 0) + 1, false)
from scrip.webhook_endpoints;

select create_distributed_table('scrip.buckets', 'bucket');
select create_distributed_table(('scrip.' || t)::regclass, 'bucket', colocate_with => 'scrip.buckets')
from unnest(array['vouchers', 'journal', 'claims', 'voids', 'redemption_updates', 'voucher_expiries',
  'voucher_extensions', 'webhook_deliveries', 'webhook_attempts']) as t;

-- Citus commits a transaction that has written to one worker without preparing it there: first on the worker,
-- then on the coordinator, which may be lost between the two. A transaction that also writes to a table of
-- Citus on the coordinator is prepared. This table, which stays empty, is for that (functions.sql).
create table scrip.two_phases (id integer primary key);
select citus_add_local_table_to_metadata('scrip.two_phases');
