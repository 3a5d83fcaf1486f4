-- 031: names of API keys, by which people tell the till of one shop from that of another. A new column
-- without a default: it locks the table for milliseconds.
alter table api_keys
  add column name text constraint api_keys_name_length check (char_length(name) between 1 and 100);
