import { A_SETTLEMENT, batch, entry, ONE_VOUCHER, type Tamperings, voucher } from './tamperings.ts';

const FIRST_OF_NOW = `
  select min(serial_number) from vouchers where batch_id = (select id from batches where reference = 'now')`;
const THIRD_OF_NOW = `
  select serial_number from vouchers where batch_id = (select id from batches where reference = 'now')
  order by serial_number limit 1 offset 2`;
const LAST_OF_LATER = `
  select max(serial_number) from vouchers
  where activated_at is null and closed is null
    and batch_id = (select id from batches where reference = 'later')`;
const reserveOf = (reference: string) =>
  `select reserve_of(id) from batches where reference = '${reference}'`;

/** Changes of batches, of their reserves, and of replaced vouchers. */
export const TAMPERINGS_OF_BATCHES: Tamperings = {
  'one voucher less than ordered': [
    `delete from vouchers where serial_number = (select max(serial_number) from vouchers
        where activated_at is null
      and closed is null and batch_id = (select id from batches where reference = 'open'))`,
    'batches',
  ],
  'one voucher more than ordered': [batch('open', 'produced = 2, quantity = 2'), 'batches'],
  'a batch that records more vouchers than were produced': [batch('waiting', 'produced = 5'), 'batches'],
  'vouchers of a batch that does not exist': [
    `update vouchers set batch_id = 999 where batch_id = (select id from batches where reference = 'open')`,
    'batches totals',
  ],
  'a batch that ended too early': [
    `alter table batches drop constraint batches_complete_is_complete;
      update batches set status = 'COMPLETED', ended_at = now() where reference = 'waiting'`,
    'batches',
  ],
  'an incomplete batch with more vouchers than ordered': [
    `alter table batches drop constraint batches_produced_bounds;
      update batches set status = 'PROCESSING', ended_at = null, quantity = 2 where reference = 'open'`,
    'batches',
  ],
  'a batch of another currency': [
    batch('later', `currency = 'EUR'`),
    'voucher-balances journal-entries totals',
  ],
  // The reserve of its batch is still right.
  'a canceled voucher that still holds money': [
    `alter table vouchers drop constraint vouchers_closed_holds_nothing;
      update vouchers set balance_minor = 1 where serial_number = (select max(serial_number) from vouchers
      where closed = 'CANCELED')`,
    'voucher-balances totals',
  ],
  'a missing reservation': [
    `delete from journal where kind = 'RESERVATION' and batch_id = (select id from batches
      where reference = 'now')`,
    'float-balances reserves totals',
  ],
  'a complete batch whose reserve was released': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        batch_id, occurred_at)
      select id_at(gen_random_uuid(), now()), 'RELEASE', credit_account, debit_account, amount_minor,
        currency, merchant_id, batch_id, now()
      from journal where kind = 'RESERVATION' and batch_id = (select id from batches
        where reference = 'later')`,
    'float-balances reserves totals',
  ],
  'a canceled batch whose reserve was not released': [
    `delete from journal where kind = 'RELEASE'`,
    'float-balances reserves totals',
  ],
  'a release of another kind': [
    `update journal set kind = 'TOP_UP' where kind = 'RELEASE'`,
    'journal-entries reserves top-ups',
  ],
  'a void that did not go to a reserve': [
    `update journal set credit_account = (${A_SETTLEMENT})
      where id = (select max(id::text)::uuid from journal where kind = 'VOID')`,
    'journal-entries reserve-shares',
  ],
  'an activation that was paid from the reserve of another batch': [
    entry('activation-0', `debit_account = (${reserveOf('now')})`),
    'journal-entries reserve-shares',
  ],
  // All of its vouchers are active: its reserve should be empty, and is.
  'a batch without the entries of its reserve': [
    `delete from journal where (${reserveOf('euro')}) in (debit_account, credit_account)`,
    'float-balances voucher-balances activations reserve-shares reserves',
  ],
  'money in the reserve of a canceled batch': [
    entry('activation-1', `debit_account = (${reserveOf('canceled')})`),
    'float-balances journal-entries reserve-shares totals',
  ],
  'a release that went to a settlement': [
    `update journal set credit_account = (${A_SETTLEMENT}) where kind = 'RELEASE'`,
    'float-balances journal-entries totals',
  ],
  'money from the reserve of a batch without vouchers': [
    entry('activation-1', `debit_account = (${reserveOf('waiting')})`),
    'float-balances journal-entries totals',
  ],
  'money from the reserve of a batch that does not exist': [
    entry('activation-0', 'debit_account = reserve_of(999)'),
    'journal-entries reserve-shares',
  ],
  'a replacement that was activated again': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, occurred_at)
      select id_at(gen_random_uuid(), now()), j.kind, j.debit_account, v.replaced_by, j.amount_minor,
        j.currency, j.merchant_id, v.replaced_by, now()
      from journal j cross join vouchers v where j.reference = 'activation-1'
        and v.serial_number = (${FIRST_OF_NOW})`,
    'float-balances voucher-balances journal-entries activations',
  ],
  'a replaced voucher that is open': [
    `update vouchers set closed = null where serial_number = (select min(serial_number) from vouchers
      where closed = 'REPLACED')`,
    'reserve-shares batches replacements replacement-entries set-by-operators',
  ],
  'a replaced voucher without a balance that is open': [
    voucher(THIRD_OF_NOW, 'closed = null'),
    'reserve-shares batches replacements set-by-operators',
  ],
  'a canceled voucher in a complete batch': [
    `update vouchers set closed = 'CANCELED' where serial_number = (select max(serial_number) from vouchers
        where activated_at is null
      and closed is null and batch_id = (select id from batches where reference = 'open'))`,
    'batches',
  ],
  'an inactive voucher whose price went nowhere': [
    voucher(LAST_OF_LATER, 'payer_id = null'),
    'reserve-shares',
  ],
  'an inactive voucher that was canceled without its price': [
    voucher(LAST_OF_LATER, `payer_id = null, closed = 'CANCELED'`),
    'reserve-shares batches',
  ],
  'a voucher whose price went to the reserve of another batch': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, batch_id, occurred_at)
      select id_at(gen_random_uuid(), now()), 'RESERVATION', debit_account, credit_account, 2000, currency,
        merchant_id, (${LAST_OF_LATER}), batch_id, now()
      from journal where kind = 'RESERVATION' and credit_account = (${reserveOf('now')})`,
    'float-balances journal-entries reserve-shares totals',
  ],
  'a batch that released more than lapsed': [
    batch('later', 'lapsed = 1, swept_at = now()'),
    'reserve-shares reserves',
  ],
  // The third had no balance, so that no entry shows its replacement.
  'two vouchers replaced by the same one': [
    voucher(
      THIRD_OF_NOW,
      `replaced_by = (select replaced_by from vouchers where serial_number = (${FIRST_OF_NOW}))`,
    ),
    'activations replacements set-by-operators',
  ],
  'a voucher replaced by one of another batch': [
    `update vouchers set batch_id = (select id from batches where reference = 'waiting')
      where serial_number = (select max(replaced_by) from vouchers)`,
    'journal-entries reserve-shares batches replacements',
  ],
  'a replacement entry between vouchers that were not replaced': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, serial_number,
        occurred_at)
      select id_at(gen_random_uuid(), now()), 'REPLACEMENT', min(serial_number), max(serial_number), 1, 'USD',
        max(serial_number), now()
      from vouchers where balance_minor > 100 and closed is null`,
    'voucher-balances activations replacement-entries',
  ],
  'a replacement that went to another voucher': [
    `update journal set credit_account = (${ONE_VOUCHER}), serial_number = (${ONE_VOUCHER})
      where id = (select max(id::text)::uuid from journal where kind = 'REPLACEMENT')`,
    'voucher-balances activations replacement-entries',
  ],
  'a voucher without a balance, replaced by one that does not exist': [
    voucher(THIRD_OF_NOW, 'replaced_by = 999999999999999'),
    'activations replacements set-by-operators',
  ],
  'a voucher without a balance, replaced by none': [
    voucher(THIRD_OF_NOW, 'replaced_by = null'),
    'activations replacements set-by-operators',
  ],
  'a replaced voucher that holds money again': [
    `alter table vouchers drop constraint vouchers_closed_holds_nothing;
      update vouchers set balance_minor = 1 where serial_number = (${THIRD_OF_NOW})`,
    'voucher-balances replacements totals',
  ],
  'a voucher replaced by none': [
    `update vouchers set replaced_by = null where serial_number = (select min(serial_number) from vouchers
      where closed = 'REPLACED')`,
    'activations replacements set-by-operators',
  ],
};
