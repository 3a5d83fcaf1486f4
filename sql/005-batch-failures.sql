-- 005: how often in a row a batch has failed to go on, and since when. Why: a failure that repeats has to end the batch, over
-- all processes and restarts, and one that passes must not.
-- Locks: batches exclusively, for a moment; no row is rewritten.

alter table batches
  add column failures smallint not null default 0,
  add column failing_since timestamptz; -- null: the last chunk went well
