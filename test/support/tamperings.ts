/** Changes that the owner of the database or a defect could make, and the checks that detect them. */
export type Tamperings = Readonly<Record<string, readonly [statement: string, red: string]>>;

/** Returns a change of the row of the journal with a reference. */
export const entry = (reference: string, change: string) =>
  `update journal set ${change} where reference = '${reference}'`;

export const ONE_VOUCHER =
  'select min(serial_number) from vouchers where balance_minor > 100 and closed is null';
const OF_ACTIVATION = `select serial_number from journal where reference = 'activation-1'`;
export const A_SETTLEMENT = `select min(id) from accounts where kind = 'SETTLEMENT' and currency = 'USD'`;
const EURO_SETTLEMENT = `select id from accounts where kind = 'SETTLEMENT' and currency = 'EUR'`;
export const A_FLOAT = `select min(id) from accounts where kind = 'FLOAT' and currency = 'USD'`;

const OF_FLOAT = `(select merchant_id from accounts where id = (${A_FLOAT}))`;

/** Returns a change of the batch with a reference. */
export const batch = (reference: string, change: string) =>
  `update batches set ${change} where reference = '${reference}'`;

/** Returns a change of the voucher with a serial number, which is a query. */
export const voucher = (serial: string, change: string) =>
  `update vouchers set ${change} where serial_number = (${serial})`;

/** Accounts without entries, which are not a difference. */
export const UNUSED_ACCOUNTS = `with made as (
    insert into accounts (kind, merchant_id, currency, decimals)
    select unnest(array['SETTLEMENT', 'FLOAT']::account_kind[]), merchant_id, 'GBP', 2 from accounts
      where id = (${A_FLOAT})
    returning *
  )
  insert into floats (account_id, merchant_id, currency, decimals)
  select id, merchant_id, currency, decimals from made where kind = 'FLOAT'`;

/** Changes of the journal, of the balances of vouchers and floats, and of updates. */
export const TAMPERINGS: Tamperings = {
  'a float with a higher balance': [
    `update floats set balance_minor = balance_minor + 1 where account_id = (${A_FLOAT})`,
    'float-balances totals',
  ],
  'a voucher with a higher balance': [
    voucher(ONE_VOUCHER, 'balance_minor = balance_minor + 1'),
    'voucher-balances totals',
  ],
  'a redemption under the id of another hour': [
    `alter table journal drop constraint journal_id_near_time;
      update journal set id = id_at(id, occurred_at - interval '2 hours') where reference = 'sale-3'`,
    'slices uses references',
  ],
  'a missing redemption': [
    `delete from journal where reference = 'sale-3'`,
    'voucher-balances uses references totals',
  ],
  'a redemption of another amount': [
    entry('sale-3', 'amount_minor = amount_minor + 1'),
    'voucher-balances references totals',
  ],
  'money on a voucher that does not exist': [
    entry('activation-1', 'credit_account = 999999999999999, serial_number = 999999999999999'),
    'voucher-balances activations references',
  ],
  'money of another currency': [
    entry('sale-3', `currency = 'EUR'`),
    'voucher-balances journal-entries totals',
  ],
  'money of another currency, later in the alphabet': [
    entry('sale-3', `currency = 'ZAR'`),
    'voucher-balances journal-entries references totals',
  ],
  'a voucher with all of its money in another currency': [
    `update journal set currency = 'EUR' where serial_number = (${OF_ACTIVATION})`,
    'voucher-balances journal-entries',
  ],
  'a top-up that did not go to a float': [
    `update journal set credit_account = (${A_SETTLEMENT}) where kind = 'TOP_UP'`,
    'float-balances journal-entries totals',
  ],
  'a reservation that did not go to a reserve': [
    `update journal set credit_account = (${A_SETTLEMENT}) where kind = 'RESERVATION'
      and batch_id = (select id from batches where reference = 'now')`,
    'journal-entries',
  ],
  'an activation that did not go to a voucher': [
    entry('activation-1', `credit_account = (${A_SETTLEMENT}), serial_number = null`),
    'voucher-balances journal-entries activations references totals',
  ],
  'a redemption settled in another currency': [
    entry('sale-3', `credit_account = (${EURO_SETTLEMENT})`),
    'journal-entries',
  ],
  'a redemption that went to a float': [
    entry('sale-3', `credit_account = (${A_FLOAT})`),
    'float-balances journal-entries totals',
  ],
  'a reservation of another merchant': [
    `update journal set merchant_id = merchant_id + 1 where kind = 'RESERVATION'`,
    'journal-entries',
  ],
  'a reversal that went to a float': [
    entry('CANCEL-sale-0', `credit_account = (${A_FLOAT}), serial_number = null`),
    'float-balances voucher-balances journal-entries redemption-updates',
  ],
  'a replacement that went to a float': [
    `update journal set credit_account = (${A_FLOAT}), serial_number = debit_account,
        merchant_id = ${OF_FLOAT}
      where id = (select max(id::text)::uuid from journal where kind = 'REPLACEMENT')`,
    'float-balances voucher-balances journal-entries activations replacement-entries',
  ],
  'an account that does not exist': [entry('sale-3', 'credit_account = 9999999999'), 'journal-entries'],
  'an account that does not exist, outside the range of reserves': [
    entry('sale-3', 'credit_account = 4999999999'),
    'journal-entries totals',
  ],
  'an entry of zero': [
    `alter table journal drop constraint journal_amount_positive;
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        occurred_at)
      select id_at(gen_random_uuid(), occurred_at), kind, debit_account, credit_account, 0, currency,
        merchant_id, occurred_at from journal
      where kind = 'TOP_UP'`,
    'journal-entries top-ups',
  ],
  'an entry from an account to itself': [
    `alter table journal drop constraint journal_accounts_differ;
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, serial_number,
        occurred_at)
      select id_at(gen_random_uuid(), now()), 'REPLACEMENT', serial_number, serial_number, 1, 'USD',
        serial_number, now()
      from vouchers where serial_number = (${ONE_VOUCHER})`,
    'journal-entries activations replacement-entries',
  ],
  'a redemption that names another voucher': [
    entry('sale-3', 'serial_number = serial_number + 1'),
    'journal-entries uses references',
  ],
  'a use that names no other before it': [entry('sale-3', 'previous_use_id = gen_random_uuid()'), 'uses'],
  'a voucher that names none of its uses as the last one': [
    `update vouchers set last_use_id = null
      where serial_number = (select serial_number from journal where reference = 'sale-3')`,
    'uses',
  ],
  'a voucher that names a use of another as its last one': [
    `update vouchers set last_use_id = (select id from journal where reference = 'sale-3')
      where serial_number = (select min(serial_number) from vouchers where last_use_id is null)`,
    'uses',
  ],
  'a redemption for another merchant': [
    entry('sale-3', 'merchant_id = merchant_id + 1'),
    'journal-entries references',
  ],
  'an active voucher without an activation': [
    `update vouchers set value_minor = 500, activated_at = now(), payer_id = 1
      where activated_at is null and closed is null
        and batch_id = (select id from batches where reference = 'open')`,
    'activations',
  ],
  'a voucher for which another merchant paid': [
    voucher(ONE_VOUCHER, 'payer_id = payer_id + 1'),
    'journal-entries',
  ],
  'an inactive voucher with an activation': [
    `update vouchers set value_minor = null, activated_at = null
      where serial_number = (select serial_number from journal where reference = 'activation-1')`,
    'activations',
  ],
  'a voucher activated twice': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, occurred_at)
      select id_at(gen_random_uuid(), occurred_at), kind, debit_account, credit_account, amount_minor,
        currency, merchant_id, serial_number, occurred_at
      from journal where reference = 'activation-1'`,
    'float-balances voucher-balances activations',
  ],
  'a voucher with another value than was activated': [
    voucher(ONE_VOUCHER, 'value_minor = value_minor + 1'),
    'activations',
  ],
  'a replacement with another value': [
    `update vouchers set value_minor = value_minor + 1 where serial_number = (select max(replaced_by)
        from vouchers
      where activated_at is not null)`,
    'activations',
  ],
  'an update without its reversal': [
    `delete from journal where reference = 'CANCEL-sale-0'`,
    'voucher-balances update-entries totals',
  ],
  'an update without its original': [
    `delete from journal where reference = 'sale-1'`,
    'voucher-balances uses redemption-updates references totals',
  ],
  'a reversal of another amount': [
    entry('CANCEL-sale-0', 'amount_minor = amount_minor - 1'),
    'voucher-balances redemption-updates totals',
  ],
  'a reversal that debits another account': [
    entry('CANCEL-sale-0', `debit_account = (${EURO_SETTLEMENT})`),
    'journal-entries redemption-updates',
  ],
  'a reversal that credits another voucher': [
    entry('CANCEL-sale-0', 'credit_account = credit_account + 1'),
    'voucher-balances journal-entries redemption-updates',
  ],
  'an update that went to another settlement': [
    entry('NEW-sale-0', `credit_account = (${EURO_SETTLEMENT})`),
    'journal-entries redemption-updates',
  ],
  'an update of another voucher': [
    entry('NEW-sale-0', 'debit_account = debit_account + 1'),
    'voucher-balances journal-entries redemption-updates',
  ],
  'an update at another time than its reversal': [
    entry('NEW-sale-0', `occurred_at = occurred_at + interval '1 millisecond'`),
    'redemption-updates',
  ],
  'an update in another currency': [
    entry('NEW-sale-0', `currency = 'EUR'`),
    'voucher-balances journal-entries redemption-updates totals',
  ],
  'an update of an entry that is not a redemption': [
    entry('sale-1', `kind = 'EXPIRY'`),
    'journal-entries uses redemption-updates references',
  ],
  'an update of another kind': [entry('NEW-sale-0', `kind = 'EXPIRY'`), 'journal-entries update-entries'],
  'an update of an update': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, reference, original_id, occurred_at)
      select id_at(gen_random_uuid(), occurred_at), 'REDEMPTION_REVERSAL'::entry_kind, credit_account,
        debit_account, amount_minor, currency, merchant_id, serial_number, 'CANCEL-NEW-sale-0', id,
        occurred_at from journal where reference = 'NEW-sale-0'
      union all
      select id_at(gen_random_uuid(), occurred_at), kind, debit_account, credit_account, amount_minor,
        currency, merchant_id, serial_number, 'NEW-NEW-sale-0', id, occurred_at
      from journal where reference = 'NEW-sale-0'`,
    'redemption-updates',
  ],
  'an update under another reference': [entry('NEW-sale-0', `reference = 'NEW-other'`), 'redemption-updates'],
  'a reversal without an original': [
    entry('CANCEL-sale-1', 'original_id = null'),
    'redemption-updates update-entries',
  ],
};
