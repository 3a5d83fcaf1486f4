import { A_SETTLEMENT, ONE_VOUCHER, type Tampering } from './tamperings.ts';

const FIRST_OF_NOW = `
  select min(serial_number) from vouchers where batch_id = (select id from batches where reference = 'now')`;
const THIRD_OF_NOW = `
  select serial_number from vouchers where batch_id = (select id from batches where reference = 'now')
  order by serial_number limit 1 offset 2`;
const reserveOf = (reference: string) =>
  `select reserve_of(id) from batches where reference = '${reference}'`;

/** To batches and their reserves, and to vouchers that were replaced. */
export const TAMPERINGS_OF_BATCHES: readonly Tampering[] = [
  [
    'a voucher less than ordered',
    `
      delete from vouchers where serial_number = (select max(serial_number) from vouchers
        where activated_at is null
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
    'more produced than ordered, and not at its end',
    `alter table batches drop constraint batches_produced_bounds;
      update batches set status = 'PROCESSING', ended_at = null, quantity = 2 where reference = 'open'`,
    ['batches'],
  ],
  [
    'a batch of another currency',
    `update batches set currency = 'EUR' where reference = 'later'`,
    ['voucher-balances', 'journal-entries', 'totals'],
  ],
  [
    'a voucher that was taken back and still holds money',
    // Owed to nobody: the reserve of its batch is as it should be.
    `
      update vouchers set balance_minor = 1 where serial_number = (select max(serial_number) from vouchers
      where closed = 'CANCELED')`,
    ['voucher-balances', 'totals'],
  ],
  [
    'a reservation that is gone',
    `
      delete from journal where kind = 'RESERVATION' and batch_id = (select id from batches
      where reference = 'now')`,
    ['float-balances', 'reserves', 'totals'],
  ],
  [
    'a batch paid back that is in force',
    `
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        batch_id, occurred_at)
      select gen_random_uuid(), 'RELEASE', credit_account, debit_account, amount_minor, currency,
        merchant_id, batch_id, now()
      from journal where kind = 'RESERVATION' and batch_id = (select id from batches
        where reference = 'later')`,
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
    ['journal-entries', 'reserves', 'top-ups'],
  ],
  [
    'a voucher that was taken back to no reserve',
    `update journal set credit_account = (${A_SETTLEMENT})
      where id = (select max(id::text)::uuid from journal where kind = 'VOID')`,
    ['journal-entries', 'reserve-shares'],
  ],
  [
    'an activation that was paid from the reserve of another batch',
    `update journal set debit_account = (${reserveOf('now')}) where reference = 'activation-0'`,
    ['journal-entries', 'reserve-shares'],
  ],
  [
    'a batch without the entries of its reserve',
    // All of its vouchers are active: nothing is due to be there, and nothing is.
    `delete from journal where (${reserveOf('euro')}) in (debit_account, credit_account)`,
    ['float-balances', 'voucher-balances', 'activations', 'reserve-shares', 'reserves'],
  ],
  [
    'money in the reserve of a canceled batch',
    `update journal set debit_account = (${reserveOf('canceled')}) where reference = 'activation-1'`,
    ['float-balances', 'journal-entries', 'reserve-shares', 'totals'],
  ],
  [
    'a release that went to a settlement',
    `update journal set credit_account = (${A_SETTLEMENT}) where kind = 'RELEASE'`,
    ['float-balances', 'journal-entries', 'totals'],
  ],
  [
    'money out of the reserve of a batch without a voucher',
    `update journal set debit_account = (${reserveOf('waiting')}) where reference = 'activation-1'`,
    ['float-balances', 'journal-entries', 'totals'],
  ],
  [
    'money from the reserve of no batch',
    `update journal set debit_account = reserve_of(999) where reference = 'activation-0'`,
    ['journal-entries', 'reserve-shares'],
  ],
  [
    'a replacement that was activated once more',
    `
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, occurred_at)
      select gen_random_uuid(), j.kind, j.debit_account, v.replaced_by, j.amount_minor, j.currency,
        j.merchant_id, v.replaced_by, now()
      from journal j cross join vouchers v where j.reference = 'activation-1'
        and v.serial_number = (${FIRST_OF_NOW})`,
    ['float-balances', 'voucher-balances', 'journal-entries', 'activations'],
  ],
  [
    'a replaced voucher that is open',
    `
      update vouchers set closed = null where serial_number = (select min(serial_number) from vouchers
      where closed = 'REPLACED')`,
    ['reserve-shares', 'batches', 'replacements', 'replacement-entries'],
  ],
  [
    'a replaced voucher that is open, and had nothing left',
    `update vouchers set closed = null where serial_number = (${THIRD_OF_NOW})`,
    ['reserve-shares', 'batches', 'replacements'],
  ],
  [
    'a canceled voucher in a batch that is in force',
    `
      update vouchers set closed = 'CANCELED' where serial_number = (select max(serial_number) from vouchers
        where activated_at is null
      and closed is null and batch_id = (select id from batches where reference = 'open'))`,
    ['batches'],
  ],
  [
    'two vouchers replaced by the same one',
    // The third had nothing left that an entry would tell of.
    `
      update vouchers set replaced_by = (select replaced_by from vouchers
        where serial_number = (${FIRST_OF_NOW}))
      where serial_number = (${THIRD_OF_NOW})`,
    ['activations', 'replacements'],
  ],
  [
    'a voucher replaced by one of another batch',
    `update vouchers set batch_id = (select id from batches where reference = 'waiting')
      where serial_number = (select max(replaced_by) from vouchers)`,
    ['journal-entries', 'reserve-shares', 'batches', 'replacements'],
  ],
  [
    'a replacement that neither of its vouchers knows of',
    `
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, serial_number,
        occurred_at)
      select gen_random_uuid(), 'REPLACEMENT', min(serial_number), max(serial_number), 1, 'USD',
        max(serial_number), now()
      from vouchers where balance_minor > 100 and closed is null`,
    ['voucher-balances', 'activations', 'replacement-entries'],
  ],
  [
    'a replacement that went to another voucher',
    `update journal set credit_account = (${ONE_VOUCHER}), serial_number = (${ONE_VOUCHER})
      where id = (select max(id::text)::uuid from journal where kind = 'REPLACEMENT')`,
    ['voucher-balances', 'activations', 'replacement-entries'],
  ],
  [
    'a voucher that had nothing left, replaced by one that does not exist',
    `update vouchers set replaced_by = 999999999999999 where serial_number = (${THIRD_OF_NOW})`,
    ['activations', 'replacements'],
  ],
  [
    'a voucher that had nothing left, replaced by none',
    `update vouchers set replaced_by = null where serial_number = (${THIRD_OF_NOW})`,
    ['activations', 'replacements'],
  ],
  [
    'a replaced voucher that holds money again',
    `update vouchers set balance_minor = 1 where serial_number = (${THIRD_OF_NOW})`,
    ['voucher-balances', 'replacements', 'totals'],
  ],
  [
    'a voucher replaced by none',
    `
      update vouchers set replaced_by = null where serial_number = (select min(serial_number) from vouchers
      where closed = 'REPLACED')`,
    ['activations', 'replacements'],
  ],
];
