-- 003: the keys of the key ring, and the audit log. The log is a hash chain of every change by operators; its
-- end is sealed under the key ring. It proves who changed what, why and from where, even against somebody who
-- can write to the database. Only new tables: it locks nothing and takes milliseconds.

-- The keys of the key ring that this database has used. A value derived from each key is stored, never the
-- key. `activation` is the order in which the keys came into use.
create table keyring_keys (
  key_id text primary key,
  check_value bytea not null,
  activation integer constraint keyring_keys_activation_once unique,
  first_used_at timestamptz not null default now(),
  superseded_at timestamptz, -- another key now seals and looks up new vouchers
  retired_at timestamptz, -- vouchers are no longer looked up under it
  dropped_at timestamptz -- the key ring no longer needs it
);
-- The routing key decides the slot of a code. It is never rotated: printed serial numbers depend on it.
create table routing (
  only_row boolean primary key default true constraint routing_is_one_row check (only_row),
  check_value bytea not null
);
-- The progress of a rotation in each bucket, from which it continues after an interruption.
create table keyring_rotations (
  key_id text not null, -- the new key of the vouchers
  bucket integer not null,
  resealed_to bigint not null default 0, -- the last serial number that was sealed again
  started_at timestamptz not null,
  finished_at timestamptz,
  constraint keyring_rotations_pkey primary key (key_id, bucket)
);

-- Entries are only added. Each contains the hash of the entry before it, and a hash of that and its own
-- columns (src/audit/chain.ts). Any entry that is changed, removed, moved or inserted later is found.
create table audit (
  -- 1, 2, 3, … without a gap
  sequence bigint primary key constraint audit_sequence_positive check (sequence > 0),
  occurred_at timestamptz not null,
  actor text not null, -- who made the change
  origin text not null, -- from where
  action text not null, -- such as merchant.suspend
  subject text not null, -- such as merchant 5
  reason text, -- why
  before text, -- JSON, exactly as it was hashed; never a secret
  after text,
  -- JSON: digests of what is set of its subjects, as the change left it (src/audit/states.ts)
  states text,
  previous_hash bytea not null,
  hash bytea not null constraint audit_hash_once unique,
  -- at most one entry follows each entry, so the chain does not branch
  constraint audit_links_once unique (previous_hash)
);
create index audit_by_subject on audit (subject, sequence);

-- The end of the chain, sealed under the key ring. The chain alone cannot show that its last entries were cut
-- off, or that all of it was rewritten. Somebody who can write to the database but does not have the key ring
-- cannot forge this row.
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
