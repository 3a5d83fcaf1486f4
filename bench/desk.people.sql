-- The records of a year of people of the operator and of merchants: changes, declines, settlements, bank
-- statements, jobs, approvals, deliveries.

create or replace function bench.fill_declines(p_rows integer) returns void
language sql set search_path = scrip, bench as $$
  insert into declines (id, serial_number, merchant_id, key_id, operation, code, amount_units, reference)
  select uuidv7(-interval '90 days' * (1 - n::float8 / p_rows)), v.serial_number, m.id, 'key-' || m.id,
    'redeem', (array['51', '54', '43', '55'])[1 + n % 4], 10000, 'declined ' || n
  from generate_series(1, p_rows) n
  join bench.merchants m
    on m.place = floor((select count(*) from bench.merchants) * bench.spread(n, 4))::integer
  left join lateral (
    select r.serial_number from scrip.vouchers r
    where r.batch_id = (
      select b.id from bench.batches b where b.place = n % (select count(*) from bench.batches))
    order by r.serial_number limit 1
  ) v on n % 10 > 0
$$;

create or replace function bench.fill_audit(p_rows integer) returns void
language sql set search_path = scrip, bench as $$
  insert into audit (sequence, occurred_at, actor_kind, actor_id, actor, origin, action, subject, reason,
    after, previous_hash, hash)
  select h.last + n, now() - interval '360 days' * (1 - n::float8 / p_rows), 'user', n % 40,
    'person ' || n % 40, 'console',
    (array['voucher.find', 'voucher.block', 'voucher.unblock', 'merchant.change', 'float.top-up'])[1 + n % 5],
    'merchant ' || n % 2000, 'asked for', '{}', sha256(convert_to('b' || n, 'UTF8')),
    sha256(convert_to('b' || (n + 1), 'UTF8'))
  from (select max(sequence) as last from audit) h cross join generate_series(1, p_rows) n
$$;

-- A settlement a week for each merchant; of every hundredth a dispute. One of fifty of the last week is a
-- draft.
create or replace function bench.fill_settlements() returns void
language sql set search_path = scrip, bench as $$
  insert into settlements (merchant_id, currency, decimals, first_day, last_day, starts_at, ends_at, zone,
    state, carried_minor, closing_minor, outstanding_minor, payable_minor, due_on, closing_hash, made_by,
    made_at, year, number, approved_by, approved_at, content_hash, root, csv, pdf)
  select m.id, 'USD', 2, d.first, d.first + 6, d.first, d.first + 7, 'UTC',
    case when s.draft then 'DRAFT' else 'PAID' end::settlement_state, 0, 100, 0, 100, d.first + 9, '',
    'system', d.first + 8, case when not s.draft then extract(year from d.first) end,
    case when not s.draft then w end, case when not s.draft then 'anna' end,
    case when not s.draft then d.first + 9 end, '', sha256(''), case when not s.draft then 'a,b' end,
    case when not s.draft then '\x00'::bytea end
  from generate_series(1, 51) w
  cross join lateral (select current_date - 7 * (52 - w) as first) d
  cross join bench.merchants m
  cross join lateral (select w = 51 and m.place % 50 = 0 as draft) s;
  insert into settlement_disputes (settlement_id, comment, made_by, made_at, answer, answered_by, answered_at)
  select id, 'Please check.', 'shop', made_at, case when id % 5000 > 0 then 'Checked.' end,
    case when id % 5000 > 0 then 'anna' end, case when id % 5000 > 0 then made_at end
  from settlements where id % 100 = 0
$$;

-- A top-up a day for every tenth merchant, each with its entry at the bank; one of a thousand of them is not
-- matched.
create or replace function bench.fill_bank() returns void
language plpgsql set search_path = scrip, bench as $$
begin
  insert into accounts (kind, merchant_id, currency, decimals) values ('FUNDING', 0, 'USD', 2)
  on conflict do nothing;
  insert into bank_accounts (name, currency, decimals) values ('House', 'USD', 2), ('Quiet', 'USD', 2)
  on conflict do nothing;
  insert into bank_files (digest, account, format, entries, imported_by, imported_at)
  select sha256(convert_to(n::text, 'UTF8')), 'House', 'camt.053', 200, 'anna',
    now() - interval '1 day' * (360 - n)
  from generate_series(1, 359) n;
  create temp table paid on commit drop as
  select uuidv7(t.at - now()) as id, m.id as merchant_id, a.id as float, t.at, f.id as file_id
  from bench.merchants m
  join accounts a on a.merchant_id = m.id and a.kind = 'FLOAT' and a.currency = 'USD'
  cross join bank_files f
  cross join lateral (select f.imported_at - interval '1 hour' as at) t
  where m.place % 10 = 0;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    reference, occurred_at)
  select p.id, 'TOP_UP', a.id, p.float, 1000, 'USD', p.merchant_id, 'top up ' || p.id, p.at
  from paid p join accounts a on a.kind = 'FUNDING' and a.currency = 'USD';
  insert into bank_entries (file_id, account, entry_reference, booked_on, amount_minor, description)
  select file_id, 'House', id, at, 1000, 'top up ' || id from paid order by id;
  insert into bank_matches (entry_id, movement_id, kind, reference, occurred_at, amount_minor, how,
    matched_by, matched_at)
  select e.id, p.id, 'TOP_UP', 'top up ' || p.id, p.at, 1000, 'exact', 'anna', now()
  from bank_entries e join paid p on p.id = e.entry_reference::uuid
  where e.account = 'House' and e.id % 1000 > 0;
end $$;

create or replace function bench.fill_work(p_rows integer) returns void
language sql set search_path = scrip, bench as $$
  insert into jobs (task, input, actor, state, total, done, created_at, ended_at)
  select 'voucher.block-many', '{}', '{"name":"anna"}', 'COMPLETED', 1, 1, now(), now()
  from generate_series(1, p_rows);
  insert into job_rows (job_id, number, subject, outcome)
  select j.id, n, '10000000064', 'ok'
  from (select max(id) as id from jobs) j cross join generate_series(1, 10000) n;
  insert into approvals (operation, input, statement, maker, mode, state, created_at, not_before,
    expires_at, decided_at)
  select 'float.refund', '{}', '{"sentence":"Refund","values":{},"link":"/"}', '{"kind":"user","id":"3","userId":"3","name":"anna","roles":["finance"]}',
    'two-people', 'REJECTED', now(), now(), now() + interval '3 days', now()
  from generate_series(1, p_rows);
  with made as (
    insert into webhook_endpoints (merchant_id, url, secret, created_at)
    select id, 'https://shop.example/' || id, '', now() from bench.merchants where place < 20 returning id
  )
  insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, occurred_at, due_at, state,
    finished_at, attempts)
  select m.id, e.id, 'float.low', null, e.at, e.at,
    case when n % 5000 = 0 then 'FAILED' else 'DELIVERED' end::delivery_state, e.at, 1
  from made m
  cross join generate_series(1, 25 * p_rows / 10) n
  cross join lateral (select now() - interval '90 days' * (1 - n::float8 / (25 * p_rows / 10)) as at) t
  cross join lateral (select uuidv7(t.at - now()) as id, t.at) e
$$;

-- Four weeks of slices, of a hundred merchants each: what they took, and what left the floats of some.
create or replace function bench.fill_slices() returns void
language sql set search_path = scrip, bench as $$
  insert into book_slices (starts_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id,
    product_id, rows, amount_minor)
  select t.at, 'USD', k.kind, k.debit, k.credit, m.id, m.id, 1, 10, 1000
  from generate_series(date_bin('15 minutes', now() - interval '28 days', 'epoch'), now() - interval '1 hour',
    interval '15 minutes') t (at)
  join bench.merchants m on (m.place + extract(epoch from t.at)::bigint / 900) % 20 = 0
  cross join (values ('REDEMPTION'::entry_kind, 'VOUCHER', 'SETTLEMENT'), ('RESERVATION', 'FLOAT', 'RESERVE'))
    k (kind, debit, credit)
  where k.debit = 'VOUCHER' or m.place % 5 = 0
  on conflict do nothing;
  update books set sealed_until = date_bin('15 minutes', now() - interval '20 minutes', 'epoch')
$$;
