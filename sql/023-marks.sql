-- 023: marks, which show up to when all transactions have ended, so that a day can be closed
-- (docs/explanation/books.md). A new table and functions: it locks nothing and takes milliseconds.

-- The newest transaction on each server when it was marked: on the only server, or on the coordinator and its
-- workers.
create table book_marks (
  node integer primary key,
  mark xid8 not null
);

-- The time before which nothing is booked: 150 seconds before the last mark. It never goes back, even if the
-- clock does. On Citus every server has it.
create table book_horizon (
  only_row boolean primary key default true constraint book_horizon_is_one_row check (only_row),
  at timestamptz not null
);
insert into book_horizon (at) values ('-infinity');

-- Returns the newest and the oldest transaction on each server, and a time before the servers were asked. On
-- Citus, distribute.sql replaces this function by one that asks all servers.
create function node_transactions() returns table (
  node integer, newest xid8, oldest xid8, asked_at timestamptz
)
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  asked_at := database_time();
  return query select 0, pg_current_xact_id(), pg_snapshot_xmin(pg_current_snapshot()), asked_at;
end $$;

-- Marks the newest transaction on each server once all transactions before the last marks have ended. A row
-- stamped before a mark may still be written on another server after its own transaction has ended, so the
-- time that has passed is that of the marks before the last ones. No new row gets a time before that, less
-- half the grace: a booking first gets its transaction number, then check_stamp accepts a stamp that is at
-- most 150 seconds old, and not before the horizon. If the clock was set back, the marks keep their time.
create function advance_mark() returns table (now_at timestamptz, passed timestamptz)
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  nodes integer[];
  newest xid8[];
  oldest xid8[];
  asked_at timestamptz;
begin
  perform from books for update;
  select array_agg(t.node), array_agg(t.newest), array_agg(t.oldest), min(t.asked_at)
  into nodes, newest, oldest, asked_at
  from node_transactions() t;
  if not exists (
    select from unnest(nodes, oldest, newest) as u (node, oldest, newest)
    left join book_marks m on m.node = u.node
    -- A later mark than the newest transaction is of a server from which the rows were copied.
    where m.mark between u.oldest and u.newest
  ) then
    update books b set passed_at = b.marked_before, marked_before = b.marked_at,
      marked_at = greatest(b.marked_at, asked_at);
    update book_horizon h set at = greatest(h.at, asked_at - interval '150 seconds');
    delete from book_marks;
    insert into book_marks (node, mark)
    select u.node, u.newest from unnest(nodes, newest) as u (node, newest);
  end if;
  return query select database_time(), b.passed_at from books b;
end $$;

revoke execute on function advance_mark, node_transactions from public;
grant select on book_marks, book_horizon to scrip_service;
grant execute on function advance_mark to scrip_service;
