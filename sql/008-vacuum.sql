-- What is cleaned up, and when, in tables that grow to millions of rows.
-- Why: PostgreSQL waits until a fifth of a table has changed, which of ten million vouchers is two million dead rows, and
-- reads no statistics of a journal before a tenth of it is new. Both then do in one go what slows the calls down for minutes.
-- Updates of vouchers stay on their page (fillfactor of 001, no index on what changes), so that little is left to vacuum:
-- what is wanted is that it happens often and is short. A float is one row that every activation updates: half of its page
-- is left free, or each of them would go to another page and into two indexes.
-- Locks: share update exclusive on each table, which stops neither reads nor writes; takes no time, since nothing is rewritten.

alter table vouchers set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05
);
alter table journal set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
alter table accounts set (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
alter table key_days set (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02);
