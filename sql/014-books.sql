-- 014: the books: the days, and the records of closed days (docs/explanation/books.md). Only new tables: it
-- locks nothing and takes milliseconds.

-- The state of the installation's books: one row.
create table books (
  only_row boolean primary key default true constraint books_is_one_row check (only_row),
  zone text not null default 'UTC', -- the time zone of days that have not begun
  grace_minutes integer not null default 15
    constraint books_grace_bounds check (grace_minutes between 5 and 60),
  -- slices before this are sealed: no new row gets an earlier time; null: no slice is sealed
  sealed_until timestamptz,
  marked_at timestamptz, -- when the marks of `book_marks` were made
  marked_before timestamptz, -- the marks before these, all of which have passed
  passed_at timestamptz -- every transaction with an earlier time has ended
);
insert into books default values;

-- The days, without gaps. A day's row is created when the day begins. A day has 23, 24 or 25 hours, or more
-- if the zone changed.
create table book_days (
  day date primary key,
  starts_at timestamptz not null constraint book_days_starts_once unique,
  ends_at timestamptz not null,
  zone text not null,
  constraint book_days_have_length check (ends_at > starts_at)
);

-- The movements of a sealed slice, 15 minutes of UTC. 0 means none.
create table book_slices (
  starts_at timestamptz not null,
  currency text not null,
  kind entry_kind not null,
  debit_kind text not null, -- the kind of the account, including VOUCHER
  credit_kind text not null,
  merchant_id integer not null,
  issuer_id integer not null, -- the merchant that generated the voucher
  product_id integer not null,
  rows bigint not null,
  amount_minor bigint not null,
  constraint book_slices_pkey
    primary key (starts_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
);

-- For forecasts of floats, which read four weeks of what the floats paid for.
create index book_slices_of_floats on book_slices (merchant_id, starts_at)
  where debit_kind = 'FLOAT' or credit_kind = 'FLOAT';

-- The proof of a slice's rows; a slice without rows has no seal. `listing` has an entry for each row, in
-- order: its id (16 bytes) and the first four bytes of its leaf hash. It identifies rows that were altered,
-- removed or added.
create table book_seals (
  starts_at timestamptz primary key,
  rows bigint not null constraint book_seals_has_rows check (rows > 0),
  root bytea not null, -- of the Merkle tree of the rows, in the order of time and id
  listing bytea not null,
  -- some of the vouchers whose balance was not the sum of their rows when the slice was sealed; null: none
  differing bigint[]
);
alter table book_seals alter column listing set storage external; -- random bytes do not compress

-- The movements of closed days, with the columns of book_slices.
create table book_movements (
  day date not null,
  currency text not null,
  kind entry_kind not null,
  debit_kind text not null,
  credit_kind text not null,
  merchant_id integer not null,
  issuer_id integer not null,
  product_id integer not null,
  rows bigint not null,
  amount_minor bigint not null,
  constraint book_movements_pkey
    primary key (day, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
);

-- For what a merchant redeemed, day by day.
create index book_movements_by_merchant on book_movements (merchant_id, day);

-- Balances at the end of each closed day, credit minus debit. Floats and settlement accounts are kept by
-- merchant, vouchers and reserves by issuer and product, all others by currency.
create table book_balances (
  day date not null,
  currency text not null,
  account_kind text not null,
  merchant_id integer not null,
  issuer_id integer not null,
  product_id integer not null,
  balance_minor bigint not null,
  constraint book_balances_pkey primary key (day, account_kind, currency, merchant_id, issuer_id, product_id)
);

-- Movements of vouchers on closed days, by the month in which the voucher was activated, and by the expiry
-- policy of its batch.
create table book_cohorts (
  day date not null,
  currency text not null,
  product_id integer not null,
  issuer_id integer not null,
  expiry_policy expiry_policy not null,
  issue_month date not null,
  kind entry_kind not null,
  is_credit boolean not null, -- true: money arrives on the voucher
  rows bigint not null,
  amount_minor bigint not null,
  constraint book_cohorts_pkey
    primary key (day, currency, product_id, issuer_id, expiry_policy, issue_month, kind, is_credit)
);

-- Reversals of redemptions of earlier days, by the day of the redemption. A settlement lists reversals of
-- earlier periods separately, and their commission follows the terms of the redemption.
create table book_reversals (
  day date not null,
  original_day date not null,
  currency text not null,
  merchant_id integer not null,
  product_id integer not null,
  rows bigint not null,
  amount_minor bigint not null,
  again_minor bigint not null, -- redeemed again in place of what was reversed, less refunds
  constraint book_reversals_pkey primary key (day, original_day, currency, merchant_id, product_id),
  constraint book_reversals_are_earlier check (original_day < day)
);

-- Vouchers with a balance when the last slice was sealed, by the quarter of an hour in which they expire
-- (`expires`), and by the beginning of the day of the books on which they were activated or last redeemed
-- (`idle`). Each seal moves the vouchers of its slices on, so a close does not read the others.
create table book_ages (
  currency text not null,
  product_id integer not null,
  issuer_id integer not null,
  basis text not null constraint book_ages_basis check (basis in ('expires', 'idle')),
  at timestamptz not null,
  vouchers bigint not null,
  amount_minor bigint not null,
  constraint book_ages_pkey primary key (currency, product_id, issuer_id, basis, at)
);

-- Vouchers with a balance at the end of a closed day, by the days until they expire, the days since their
-- last use, and the calendar month of their expiry (0: the month of that day; 13: that month and later).
create table book_aging (
  day date not null,
  currency text not null,
  product_id integer not null,
  issuer_id integer not null,
  basis text not null constraint book_aging_basis check (basis in ('expires', 'idle', 'month')),
  lower_bound integer not null, -- in days or months
  vouchers bigint not null,
  amount_minor bigint not null,
  constraint book_aging_pkey primary key (day, currency, product_id, issuer_id, basis, lower_bound)
);

-- The closings of days. Each contains the hash of the closing before it, so that a closing that is changed,
-- removed or inserted later is found.
create table book_closings (
  day date primary key,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  zone text not null,
  rows bigint not null,
  first_id uuid,
  last_id uuid,
  root bytea not null, -- of the Merkle tree of the slices, in order
  totals text not null, -- JSON, exactly as it was hashed
  version integer not null, -- the version of these computations
  closed_at timestamptz not null,
  previous_hash bytea not null constraint book_closings_links_once unique,
  hash bytea not null constraint book_closings_hash_once unique
);

-- Rows that were found in a slice after it was sealed. Each is a break, and is booked as a movement of a
-- later slice (docs/explanation/books.md).
create table book_late_rows (
  id uuid primary key,
  occurred_at timestamptz not null,
  slice_at timestamptz not null, -- the slice in which it is booked
  found_in date not null
);

-- The expired amounts that were paid to a state, each once. One movement (ESCHEAT) pays many. Nothing comes
-- back from them to their vouchers.
create table escheated_expiries (
  expiry_id uuid primary key, -- the EXPIRY row that moved the amount to UNCLAIMED
  escheat_id uuid not null, -- the ESCHEAT row
  serial_number bigint not null,
  amount_minor bigint not null,
  expired_at timestamptz not null, -- the time of the EXPIRY row, or an earlier expiry in another system
  escheated_at timestamptz not null
);
create index escheated_expiries_by_escheat on escheated_expiries (escheat_id, serial_number);
create index escheated_expiries_by_voucher on escheated_expiries (serial_number);
create index escheated_expiries_by_time on escheated_expiries using brin (escheated_at) with (autosummarize);

-- The runs of `scrip books verify` over all closed days. A run that was interrupted is continued.
create table book_verifications (
  id integer generated by default as identity primary key,
  started_at timestamptz not null,
  verified_to date, -- the last day that was verified
  breaks integer not null default 0,
  ended_at timestamptz -- null: it is running, or was interrupted
);

-- The estimated share of a product's vouchers that are never redeemed, from a day on. Rows are only added. Of
-- several rows with the same day, which was not closed yet, the newest one is valid.
create table book_breakage_rates (
  id integer generated by default as identity primary key,
  product_id integer not null constraint book_breakage_rates_product references products (id),
  valid_from date not null,
  rate_ppm integer not null constraint book_breakage_rates_bounds check (rate_ppm between 0 and 1000000),
  set_by text not null,
  reason text not null,
  set_at timestamptz not null
);

grant select on books, book_days, book_slices, book_seals, book_movements, book_balances, book_cohorts,
  book_reversals, book_ages, book_aging, book_closings, book_late_rows, book_breakage_rates,
  escheated_expiries to scrip_service;
grant update (zone, grace_minutes) on books to scrip_service;
grant insert on book_movements, book_balances, book_aging, book_closings, book_late_rows,
  book_breakage_rates, escheated_expiries to scrip_service;
grant select, insert, update on book_verifications to scrip_service;
grant usage on sequence book_breakage_rates_id_seq, book_verifications_id_seq to scrip_service;
