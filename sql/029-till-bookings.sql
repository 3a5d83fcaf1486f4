-- 029: who booked at the till of the portal. A new table: it locks nothing and takes milliseconds.

-- The person or the token of a merchant that booked a movement. It is written after the movement, which many
-- tills book in one call: a process that is killed between the two leaves a movement without a name.
create table till_bookings (
  transaction_id uuid primary key,
  actor_kind text not null constraint till_bookings_kind check (actor_kind in ('user', 'token')),
  actor_id integer not null
);

grant select, insert on till_bookings to scrip_service;
