-- 003: the keys of the key ring; and the audit log, a hash chain of everything that operators change, whose
-- end is sealed under them. Who changed what, why and from where must be provable later, even against
-- somebody who can write to the database. New tables only: nothing is locked; milliseconds.

-- The keys of the key ring that this database has used: a value derived from each key, never the key.
-- `activation` is the order in which they were put to use.
create table keyring_keys (
  key_id text primary key,
  check_value bytea not null,
  activation integer constraint keyring_keys_activation_once unique,
  first_used_at timestamptz not null default now(),
  superseded_at timestamptz, -- another key seals and looks up what is new
  retired_at timestamptz, -- nothing is looked up under it any more
  dropped_at timestamptz -- the key ring no longer needs it
);
-- The routing key gives a code its slot, and is never rotated: the serial numbers in print depend on it.
create table routing (
  only_row boolean primary key default true constraint routing_is_one_row check (only_row),
  check_value bytea not null
);
-- How far a rotation has sealed the vouchers of each bucket again: where it goes on after an interruption.
create table keyring_rotations (
  key_id text not null, -- the key that they are sealed under
  bucket integer not null,
  resealed_to bigint not null default 0, -- a serial number
  started_at timestamptz not null,
  finished_at timestamptz,
  constraint keyring_rotations_pkey primary key (key_id, bucket)
);

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
grant select on keyring_keys, routing, keyring_rotations to scrip_service;
grant insert on keyring_keys, routing to scrip_service;
grant update (superseded_at, retired_at, dropped_at) on keyring_keys to scrip_service;
grant insert, update on keyring_rotations to scrip_service;
