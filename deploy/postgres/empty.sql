-- Removes the rows with which a new schema begins, on a server that is about to subscribe to another one: they
-- are copied with all others. See docs/how-to/upgrade.md.
set session_replication_role = replica;
do $$
declare
  tables text;
begin
  select string_agg(oid::regclass::text, ', ') into tables from pg_class
  where relnamespace = 'scrip'::regnamespace and relkind in ('r', 'p') and not relispartition;
  execute 'truncate ' || tables;
end $$;
reset session_replication_role;
