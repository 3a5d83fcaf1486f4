import { A_FLOAT, entry, ONE_VOUCHER, type Tamperings, voucher } from './tamperings.ts';

/** Changes of the records beside the journal: references, updates, holds, voids and buckets. */
export const TAMPERINGS_OF_RECORDS: Tamperings = {
  // Without its claim a redemption no longer uses its reference up: a retry would be a second payment.
  'a redemption without its claim': [`delete from claims where reference = 'sale-3'`, 'references'],
  'an updated redemption without its claim': [`delete from claims where reference = 'sale-0'`, 'references'],
  'a batch without its claim': [
    `delete from claims where reference = 'now' and operation = 'generate'`,
    'references',
  ],
  'a top-up without its claim': [
    `delete from claims where ctid = (select min(ctid) from claims where operation = 'top-up')`,
    'references',
  ],
  'a claim for a transaction that was never booked': [
    `insert into claims (id, merchant_id, operation, reference, fingerprint)
      select gen_random_uuid(), merchant_id, operation, 'another', fingerprint from claims
        where reference = 'sale-3'`,
    'references',
  ],
  'a claim that names another transaction': [
    `update claims set id = gen_random_uuid() where reference = 'sale-3'`,
    'references',
  ],
  'a claim of another operation': [
    `update claims set operation = 'activate' where reference = 'sale-3'`,
    'references',
  ],
  'a claim that names another voucher': [
    `update claims set serial_number = serial_number + 1 where reference = 'sale-3'`,
    'references',
  ],
  'a claim for another amount': [
    `update claims set fingerprint = '110000' where reference = 'sale-3'`,
    'references',
  ],
  'a claim for a tenth of the amount': [
    `update claims set fingerprint = left(fingerprint, -1) where reference = 'sale-3'`,
    'references',
  ],
  'a claim in no bucket': [`update claims set bucket = 7 where reference = 'sale-3'`, 'buckets'],
  'a refund of more than was redeemed': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, original_id, occurred_at)
      select id_at(gen_random_uuid(), occurred_at), 'REFUND', credit_account, debit_account, amount_minor + 1,
        currency, merchant_id, serial_number, id, occurred_at from journal where reference = 'sale-3';
      update vouchers v set balance_minor = balance_minor + r.amount_minor from journal r
      where r.kind = 'REFUND' and v.serial_number = r.serial_number`,
    'refunds',
  ],
  'a refund from the settlement account of another merchant': [
    `insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        serial_number, original_id, occurred_at)
      select id_at(gen_random_uuid(), j.occurred_at), 'REFUND', a.id, j.debit_account, 1, j.currency,
        a.merchant_id, j.serial_number, j.id, j.occurred_at
      from journal j
      join accounts a on a.kind = 'SETTLEMENT' and a.currency = j.currency and a.id <> j.credit_account
      where j.reference = 'sale-3' limit 1;
      update vouchers v set balance_minor = balance_minor + r.amount_minor from journal r
      where r.kind = 'REFUND' and v.serial_number = r.serial_number`,
    'refunds',
  ],
  'an update that is not recorded': [
    `delete from redemption_updates where original_id = (select id from journal where reference = 'sale-0')`,
    'redemption-updates',
  ],
  'an update of another amount than was booked': [
    `update redemption_updates set new_minor = new_minor + 1 where new_id is not null`,
    'redemption-updates',
  ],
  'a partial reversal recorded as a full one': [
    `update redemption_updates set new_id = null, new_minor = 0 where new_id is not null`,
    'redemption-updates',
  ],
  'a full reversal recorded as a partial one': [
    `update redemption_updates set new_id = gen_random_uuid(), new_minor = 1 where new_id is null`,
    'update-entries',
  ],
  'an update of a transaction that is not a redemption': [
    `insert into redemption_updates (original_id, reversal_id, new_minor, updated_at)
      select id, gen_random_uuid(), 0, now() from journal where reference = 'activation-1'`,
    'redemption-updates update-entries',
  ],
  'an update whose new redemption names no original': [
    entry('NEW-sale-0', 'original_id = null, reference = null'),
    'uses update-entries',
  ],
  'an update in another bucket than its redemption': [
    `update redemption_updates set bucket = 7`,
    'redemption-updates update-entries',
  ],
  'held money that is not in transit': [
    `insert into float_holds (id, account_id, merchant_id, amount_minor, bucket, serial_number, held_at,
        entry_id)
      select gen_random_uuid(), id, merchant_id, 1, 0, (${ONE_VOUCHER}), now(), gen_random_uuid()
        from accounts where id = (${A_FLOAT})`,
    'holds',
  ],
  'money in transit without a hold': [
    `insert into accounts (kind, merchant_id, currency, decimals) values ('TRANSIT', 0, 'USD', 2)
        on conflict do nothing;
      update floats set balance_minor = balance_minor - 1 where account_id = (${A_FLOAT});
      insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
        occurred_at)
      select id_at(gen_random_uuid(), now()), 'HOLD', f.id, t.id, 1, 'USD', f.merchant_id, now()
      from accounts f, accounts t where f.id = (${A_FLOAT}) and t.kind = 'TRANSIT' and t.currency = 'USD'`,
    'holds',
  ],
  'a booked transaction that was voided': [
    `insert into voids (id) select id from journal where reference = 'sale-3'`,
    'voids',
  ],
  'a voucher in another bucket than that of its serial number': [
    voucher(ONE_VOUCHER, 'bucket = 7'),
    'voucher-balances journal-entries activations reserve-shares buckets',
  ],
  'a bucket without its row': ['delete from buckets', 'buckets'],
  'a top-up that is not in the audit': [
    `delete from audit where sequence = (select max(sequence) from audit where action = 'float.top-up')`,
    'top-ups',
  ],
  'a redemption that was not announced': [
    `insert into webhook_endpoints (merchant_id, url, secret, events, created_at, enabled_at)
      select merchant_id, 'https://shop.example', '', '{voucher.redeemed}', now(), now() - interval '1 hour'
      from accounts where id = (${A_FLOAT})`,
    'deliveries set-by-operators',
  ],
};
