-- Prints the positions of the sequences as statements: logical replication does not copy them. See
-- docs/how-to/upgrade.md.
select format('select setval(%L, %s, %L);', format('%I.%I', schemaname, sequencename),
  coalesce(last_value, start_value), last_value is not null)
from pg_sequences where schemaname = 'scrip';
