-- 007: which key of the key ring is used for what, so that a key can be rotated while traffic runs, and dropped after.
-- Why: what seals and looks up new vouchers was told by the order of the key ring in each process's settings; now it is told by
-- the database, so that all processes change over at one moment (docs/keys.md, "How it stays right").
-- Locks: columns without a default on a table of a few rows. Milliseconds.

alter table key_checks
  add column activation integer constraint key_checks_activation_once unique, -- the order in which keys were put to use
  add column superseded_at timestamptz, -- another one seals and looks up what is new
  add column retired_at timestamptz, -- nothing is looked up under it any more
  add column dropped_at timestamptz; -- the key ring needs it no more

update key_checks k set activation = n.activation
from (select key_id, row_number() over (order by first_used_at, key_id) as activation from key_checks) n
where n.key_id = k.key_id;
update key_checks set superseded_at = now() where activation < (select max(activation) from key_checks);

-- How far the vouchers are sealed anew: where a rotation that was interrupted goes on.
create table key_rotations (
  key_id text primary key, -- the key that they are sealed under
  resealed_to bigint not null default 0, -- a serial number
  started_at timestamptz not null,
  finished_at timestamptz
);

grant update (superseded_at, retired_at, dropped_at) on key_checks to scrip_service;
grant select, insert, update on key_rotations to scrip_service;
