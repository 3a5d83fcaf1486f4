-- 003: the audit, a chain of everything that operators change.
-- Why: who changed what, why and from where has to be provable later, also against who can write into the database.
-- Locks: none but on the new table. Takes milliseconds.

-- Entries are only ever added. Each holds the hash of the one before it, and a hash over that and all of its own columns
-- (src/audit/chain.ts), so that none can be changed, left out, moved or put in between unseen.
create table audit (
  sequence bigint primary key constraint audit_sequence_positive check (sequence > 0), -- 1, 2, 3 and on, without a gap
  occurred_at timestamptz not null,
  actor text not null, -- who
  origin text not null, -- from where
  action text not null, -- what, as merchant.suspend
  subject text not null, -- to what, as merchant 5
  reason text, -- why
  before text, -- JSON, as it was hashed; never a secret
  after text,
  previous_hash bytea not null,
  hash bytea not null constraint audit_hash_once unique,
  constraint audit_links_once unique (previous_hash) -- the chain has one end: two entries cannot follow the same one
);
create index audit_by_subject on audit (subject, sequence);

grant select, insert on audit to scrip_service;
