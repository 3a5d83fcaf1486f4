const ONE_VOUCHER = 'select min(serial_number) from vouchers where balance_minor > 100 and closed is null';
const OF_ACTIVATION = `select serial_number from journal where reference = 'activation-1'`;
const FIRST_OF_NOW = `select min(serial_number) from vouchers where batch_id = (select id from batches where reference = 'now')`;
const A_SETTLEMENT = `select id from accounts where kind = 'SETTLEMENT' and currency = 'USD'`;
const EURO_SETTLEMENT = `select id from accounts where kind = 'SETTLEMENT' and currency = 'EUR'`;
const A_FLOAT = `select id from accounts where kind = 'FLOAT' and currency = 'USD'`;
const reserveOf = (reference: string) => `select reserve_account from batches where reference = '${reference}'`;

/** Accounts that nothing was booked to yet: no difference, and to be found as none. */
export const UNUSED_ACCOUNTS = `insert into accounts (kind, merchant_id, currency, decimals, balance_minor)
  select unnest(array['RESERVE', 'FLOAT']::account_kind[]), merchant_id, 'GBP', 2, unnest(array[null, 0])
  from accounts where id = (${A_FLOAT})`;

/** What somebody with the owner's rights could do, or a defect: each with the checks that see it. */
export const TAMPERINGS: readonly (readonly [what: string, statement: string, red: readonly string[]])[] = [
  [
    'a float that holds more',
    `update accounts set balance_minor = balance_minor + 1 where id = (${A_FLOAT})`,
    ['float-balances', 'totals'],
  ],
  [
    'a voucher that holds more',
    `update vouchers set balance_minor = balance_minor + 1 where serial_number = (${ONE_VOUCHER})`,
    ['voucher-balances', 'totals'],
  ],
  ['a redemption that is gone', `delete from journal where reference = 'sale-3'`, ['voucher-balances', 'totals']],
  [
    'a redemption of another amount',
    `update journal set amount_minor = amount_minor + 1 where reference = 'sale-3'`,
    ['voucher-balances', 'totals'],
  ],
  [
    'money on a voucher that does not exist',
    `update journal set credit_account = 999999999999999, serial_number = 999999999999999 where reference = 'activation-1'`,
    ['voucher-balances', 'activations'],
  ],
  [
    'money of another currency',
    `update journal set currency = 'EUR' where reference = 'sale-3'`,
    ['voucher-balances', 'journal-entries', 'totals'],
  ],
  [
    'money of another currency, behind its own in the alphabet',
    `update journal set currency = 'ZAR' where reference = 'sale-3'`,
    ['voucher-balances', 'journal-entries', 'totals'],
  ],
  [
    'a voucher all of whose money is of another currency',
    `update journal set currency = 'EUR' where serial_number = (${OF_ACTIVATION})`,
    ['voucher-balances', 'journal-entries'],
  ],
  [
    'a top-up that went to no float',
    `update journal set credit_account = (${A_SETTLEMENT}) where kind = 'TOP_UP'`,
    ['float-balances', 'journal-entries', 'totals'],
  ],
  [
    'a reservation that went to no reserve',
    `update journal set credit_account = (${A_SETTLEMENT}) where kind = 'RESERVATION' and batch_id = (select id from batches where reference = 'now')`,
    ['journal-entries', 'reserves'],
  ],
  [
    'an activation that went to no voucher',
    `update journal set credit_account = (${A_SETTLEMENT}), serial_number = null where reference = 'activation-1'`,
    ['voucher-balances', 'journal-entries', 'activations', 'totals'],
  ],
  [
    'a redemption settled in another currency',
    `update journal set credit_account = (${EURO_SETTLEMENT}) where reference = 'sale-3'`,
    ['journal-entries'],
  ],
  [
    'a redemption that went to a float',
    `update journal set credit_account = (${A_FLOAT}) where reference = 'sale-3'`,
    ['float-balances', 'journal-entries', 'totals'],
  ],
  [
    'an account that does not exist',
    `update journal set credit_account = 9999999999 where reference = 'sale-3'`,
    ['journal-entries', 'totals'],
  ],
  // Without its operation a redemption no longer uses its reference up: a retry would be a second payment.
  [
    'a redemption that has given its reference free',
    `update journal set operation = null where reference = 'sale-3'`,
    ['journal-entries'],
  ],
  [
    'an updated redemption that has given its reference free',
    `update journal set operation = null where reference = 'sale-0'`,
    ['journal-entries'],
  ],
  [
    'an entry that moves nothing',
    `alter table journal drop constraint journal_amount_positive;
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, occurred_at)
      select gen_random_uuid(), kind, debit_account, credit_account, 0, currency, merchant_id, occurred_at from journal
      where kind = 'TOP_UP'`,
    ['journal-entries'],
  ],
  [
    'money that stays where it is',
    `alter table journal drop constraint journal_accounts_differ;
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, serial_number, occurred_at)
      select gen_random_uuid(), 'REPLACEMENT', serial_number, serial_number, 1, 'USD', serial_number, now()
      from vouchers where serial_number = (${ONE_VOUCHER})`,
    ['journal-entries', 'replacements'],
  ],
  [
    'a redemption of another voucher than it says',
    `update journal set serial_number = serial_number + 1 where reference = 'sale-3'`,
    ['journal-entries'],
  ],
  [
    'a redemption for another merchant',
    `update journal set merchant_id = merchant_id + 1 where reference = 'sale-3'`,
    ['journal-entries'],
  ],
  [
    'a voucher that was never activated',
    `update vouchers set value_minor = 500, activated_at = now() where activated_at is null and closed is null
      and batch_id = (select id from batches where reference = 'open')`,
    ['activations'],
  ],
  [
    'an active voucher that says it is not',
    `update vouchers set value_minor = null, activated_at = null
      where serial_number = (select serial_number from journal where reference = 'activation-1')`,
    ['activations'],
  ],
  [
    'a voucher activated twice',
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, occurred_at)
      select gen_random_uuid(), kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, occurred_at
      from journal where reference = 'activation-1'`,
    ['float-balances', 'voucher-balances', 'activations'],
  ],
  [
    'another value than was activated',
    `update vouchers set value_minor = value_minor + 1 where serial_number = (${ONE_VOUCHER})`,
    ['activations'],
  ],
  [
    'a replacement with another value',
    `update vouchers set value_minor = value_minor + 1 where serial_number = (select max(replaced_by) from vouchers
      where activated_at is not null)`,
    ['activations'],
  ],
  [
    'an update without its reversal',
    `delete from journal where reference = 'CANCEL-sale-0'`,
    ['voucher-balances', 'redemption-updates', 'totals'],
  ],
  [
    'an update whose original is gone',
    `delete from journal where reference = 'sale-1'`,
    ['voucher-balances', 'redemption-updates', 'totals'],
  ],
  [
    'a reversal of another amount',
    `update journal set amount_minor = amount_minor - 1 where reference = 'CANCEL-sale-0'`,
    ['voucher-balances', 'redemption-updates', 'totals'],
  ],
  [
    'a reversal that debits another account',
    `update journal set debit_account = (${EURO_SETTLEMENT}) where reference = 'CANCEL-sale-0'`,
    ['journal-entries', 'redemption-updates'],
  ],
  [
    'a reversal that credits another voucher',
    `update journal set credit_account = credit_account + 1 where reference = 'CANCEL-sale-0'`,
    ['voucher-balances', 'journal-entries', 'redemption-updates'],
  ],
  [
    'an update in another currency',
    `update journal set currency = 'EUR' where reference = 'NEW-sale-0'`,
    ['voucher-balances', 'journal-entries', 'redemption-updates', 'totals'],
  ],
  [
    'an update of what is no redemption',
    `update journal set kind = 'EXPIRY' where reference = 'sale-1'`,
    ['journal-entries', 'redemption-updates'],
  ],
  [
    'an update of another kind',
    `update journal set kind = 'EXPIRY' where reference = 'NEW-sale-0'`,
    ['journal-entries', 'redemption-updates'],
  ],
  [
    'an update of an update',
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, reference,
        original_id, occurred_at)
      select gen_random_uuid(), 'REDEMPTION_REVERSAL'::entry_kind, credit_account, debit_account, amount_minor, currency, merchant_id,
        serial_number, 'CANCEL-NEW-sale-0', id, occurred_at
      from journal where reference = 'NEW-sale-0'
      union all
      select gen_random_uuid(), kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, 'NEW-NEW-sale-0', id, occurred_at
      from journal where reference = 'NEW-sale-0'`,
    ['redemption-updates'],
  ],
  [
    'an update under another reference',
    `update journal set reference = 'NEW-other' where reference = 'NEW-sale-0'`,
    ['redemption-updates'],
  ],
  [
    'a reversal of nothing',
    `update journal set original_id = null where reference = 'CANCEL-sale-1'`,
    ['redemption-updates'],
  ],
  [
    'a voucher less than ordered',
    `delete from vouchers where serial_number = (select max(serial_number) from vouchers where activated_at is null
      and closed is null and batch_id = (select id from batches where reference = 'open'))`,
    ['batches'],
  ],
  [
    'a voucher more than ordered',
    `update batches set produced = 2, quantity = 2 where reference = 'open'`,
    ['batches'],
  ],
  ['more said than produced', `update batches set produced = 5 where reference = 'waiting'`, ['batches']],
  [
    'vouchers of no batch',
    `update vouchers set batch_id = 999 where batch_id = (select id from batches where reference = 'open')`,
    ['batches', 'totals'],
  ],
  [
    'a batch that ended too early',
    `alter table batches drop constraint batches_complete_is_complete;
      update batches set status = 'COMPLETED', ended_at = now() where reference = 'waiting'`,
    ['batches'],
  ],
  [
    'a reservation that is gone',
    `delete from journal where kind = 'RESERVATION' and batch_id = (select id from batches where reference = 'now')`,
    ['float-balances', 'reserves', 'totals'],
  ],
  [
    'a batch paid back that is in force',
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, batch_id, occurred_at)
      select gen_random_uuid(), 'RELEASE', credit_account, debit_account, amount_minor, currency, merchant_id, batch_id, now()
      from journal where kind = 'RESERVATION' and batch_id = (select id from batches where reference = 'later')`,
    ['float-balances', 'reserves', 'totals'],
  ],
  [
    'a canceled batch that was not paid back',
    `delete from journal where kind = 'RELEASE'`,
    ['float-balances', 'reserves', 'totals'],
  ],
  [
    'a release under another name',
    `update journal set kind = 'TOP_UP' where kind = 'RELEASE'`,
    ['journal-entries', 'reserves'],
  ],
  [
    'a voucher that was taken back to no reserve',
    `update journal set credit_account = (${A_SETTLEMENT})
      where id = (select max(id::text)::uuid from journal where kind = 'VOID')`,
    ['journal-entries', 'reserves'],
  ],
  [
    'a batch with the reserve of another one',
    `update batches set reserve_account = (${reserveOf('now')}) where reference = 'later'`,
    ['reserves'],
  ],
  [
    'a batch without the entries of its reserve',
    // All of its vouchers are active: nothing is due to be there, and nothing is.
    `delete from journal where (${reserveOf('euro')}) in (debit_account, credit_account)`,
    ['float-balances', 'voucher-balances', 'activations', 'reserves'],
  ],
  [
    'money in the reserve of a canceled batch',
    `update journal set debit_account = (${reserveOf('canceled')}) where reference = 'activation-1'`,
    ['float-balances', 'reserves', 'totals'],
  ],
  [
    'money in a reserve of no batch',
    `insert into accounts (kind, merchant_id, currency, decimals) select 'RESERVE', merchant_id, currency, decimals
      from accounts where id = (${A_FLOAT});
      update journal set debit_account = (select max(id) from accounts) where reference = 'activation-1'`,
    ['float-balances', 'reserves', 'totals'],
  ],
  [
    'a replaced voucher that is open',
    `update vouchers set closed = null where serial_number = (select min(serial_number) from vouchers where closed = 'REPLACED')`,
    ['batches', 'reserves', 'replacements'],
  ],
  [
    'a replaced voucher that is open, and had nothing left',
    `update vouchers set closed = null where serial_number = (${FIRST_OF_NOW}) + 2`,
    ['batches', 'reserves', 'replacements'],
  ],
  [
    'a canceled voucher in a batch that is in force',
    `update vouchers set closed = 'CANCELED' where serial_number = (select max(serial_number) from vouchers where activated_at is null
      and closed is null and batch_id = (select id from batches where reference = 'open'))`,
    ['batches'],
  ],
  [
    'two vouchers replaced by the same one',
    // The third had nothing left that an entry would tell of.
    `update vouchers set replaced_by = (select replaced_by from vouchers where serial_number = (${FIRST_OF_NOW}))
      where serial_number = (${FIRST_OF_NOW}) + 2`,
    ['activations', 'replacements'],
  ],
  [
    'a voucher replaced by one of another batch',
    `update vouchers set batch_id = (select id from batches where reference = 'waiting')
      where serial_number = (select max(replaced_by) from vouchers)`,
    ['batches', 'reserves', 'replacements'],
  ],
  [
    'a replacement that neither of its vouchers knows of',
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, serial_number, occurred_at)
      select gen_random_uuid(), 'REPLACEMENT', min(serial_number), max(serial_number), 1, 'USD', max(serial_number), now()
      from vouchers where balance_minor > 100 and closed is null`,
    ['voucher-balances', 'replacements'],
  ],
  [
    'a replacement that went to another voucher',
    `update journal set credit_account = (${ONE_VOUCHER}), serial_number = (${ONE_VOUCHER})
      where id = (select max(id::text)::uuid from journal where kind = 'REPLACEMENT')`,
    ['voucher-balances', 'replacements'],
  ],
  [
    'a voucher that had nothing left, replaced by one that does not exist',
    `update vouchers set replaced_by = 999999999999999 where serial_number = (${FIRST_OF_NOW}) + 2`,
    ['activations', 'replacements'],
  ],
  [
    'a voucher that had nothing left, replaced by none',
    `update vouchers set replaced_by = null where serial_number = (${FIRST_OF_NOW}) + 2`,
    ['activations', 'replacements'],
  ],
  [
    'a voucher replaced by none',
    `update vouchers set replaced_by = null where serial_number = (select min(serial_number) from vouchers where closed = 'REPLACED')`,
    ['activations', 'replacements'],
  ],
];
