-- 003: the audit log, a hash chain of everything that operators change. Who changed what, why and from
-- where must be provable later, even against somebody who can write to the database. New tables only:
-- nothing is locked; milliseconds.

-- Entries are only added. Each holds the hash of the entry before it, and a hash over that and its own
-- columns (src/audit/chain.ts): an entry that is changed, removed, moved or inserted later is found.
create table audit (
  -- 1, 2, 3, … without a gap
  sequence bigint primary key constraint audit_sequence_positive check (sequence > 0),
  occurred_at timestamptz not null,
  actor text not null, -- who
  origin text not null, -- from where
  action text not null, -- what, such as merchant.suspend
  subject text not null, -- to what, such as merchant 5
  reason text, -- why
  before text, -- JSON, as it was hashed; never a secret
  after text,
  previous_hash bytea not null,
  hash bytea not null constraint audit_hash_once unique,
  -- the chain has one end: no two entries follow the same one
  constraint audit_links_once unique (previous_hash)
);
create index audit_by_subject on audit (subject, sequence);

-- The end of the chain, sealed under the key ring. A chain cannot know that entries were cut off its end,
-- or that all of it was rewritten. Somebody with write access to the database but without the key ring
-- cannot make this row fit again.
create table audit_head (
  only_row boolean primary key default true constraint audit_head_is_one_row check (only_row),
  sealed bytea not null -- number and hash of the newest entry
);

grant select, insert on audit to scrip_service;
grant select, insert, update on audit_head to scrip_service;
