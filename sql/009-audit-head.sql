-- 009: the end of the audit, sealed under the key ring.
-- Why: a chain does not know of itself that entries were cut off at its end, or that all of it was written anew. Who can write into
-- the database but does not have the key ring can do both, and not make this row fit again (src/audit/head.ts).
-- Locks: none but on the new table. Takes milliseconds.

create table audit_head (
  one boolean primary key default true constraint audit_head_is_one check (one), -- a table of one row
  sealed bytea not null -- number and hash of the newest entry
);

grant select, insert, update on audit_head to scrip_service;
