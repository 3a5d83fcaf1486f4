-- 006: what an API key may do, from where, until when and how often; and when it called last.
-- Why: a key that leaks is worth as little as can be, and is found out by who never uses it.
-- Locks: columns without a default, a moment's exclusive lock each on two small tables. Milliseconds.

alter table api_keys
  add column scopes text[], -- of the merchant's permissions, these only; null: all that it has
  add column networks text[], -- called from these only, in CIDR; null: from anywhere
  add column expires_at timestamptz,
  add column rotated_to text, -- the key that takes its place
  add column calls_per_second integer constraint api_keys_rate_bounds check (calls_per_second between 1 and 1000000),
  add column calls_burst integer constraint api_keys_burst_bounds check (calls_burst between 1 and 10000000),
  add constraint api_keys_limit_is_whole check ((calls_per_second is null) = (calls_burst is null));

alter table key_days add column last_call_at timestamptz; -- to the quarter of a second in which it was counted
