-- 032: the language of the documents of a merchant. A new column without a default: it locks the table for
-- milliseconds.
alter table merchants
  add column language text constraint merchants_language check (language in ('en', 'de')); -- null: English
