import { type Sql, sql } from '../db/sql.ts';

/** Entries of a voucher's history that are shown. */
const HISTORY = 100;

/** A voucher as the operator sees it. Those of a batch that is not completed cannot be seen, by the operator either. */
export function findVoucher(serialNumber: bigint): Sql {
  return sql`
select v.serial_number, v.sealed, v.value_minor, v.balance_minor, v.activated_at, v.expires_at, v.blocked_at, v.closed,
  v.replaced_by, v.wrong_pins, v.pin_locked_until = 'infinity' as pin_locked_for_good,
  nullif(v.pin_locked_until, 'infinity') as pin_locked_until,
  b.merchant_id, b.transaction_id, b.reference, b.currency, b.decimals, p.code as product
from vouchers v
join batches b on b.id = v.batch_id and b.status = 'COMPLETED'
join products p on p.id = b.product_id
where v.serial_number = ${serialNumber}`;
}

export function listVoucherEntries(serialNumber: bigint): Sql {
  return sql`
select id, kind, amount_minor, occurred_at, merchant_id, coalesce(reference, '') as reference
from journal where serial_number = ${serialNumber} order by id desc limit ${HISTORY}`;
}

/** Locks a voucher, so that what is decided of it holds until the transaction ends. */
export function lockVoucher(serialNumber: bigint): Sql {
  return sql`
select v.serial_number, v.batch_id, v.balance_minor, v.expires_at, v.closed, v.blocked_at, v.wrong_pins, b.currency
from vouchers v join batches b on b.id = v.batch_id and b.status = 'COMPLETED'
where v.serial_number = ${serialNumber} for update of v`;
}

export function setBlocked(serialNumber: bigint, blockedAt: Date | null): Sql {
  return sql`
update vouchers set version = version + 1,
  blocked_at = case when ${blockedAt}::timestamptz is not null then coalesce(blocked_at, ${blockedAt}::timestamptz) end
where serial_number = ${serialNumber}`;
}

export function resetPinGuard(serialNumber: bigint): Sql {
  return sql`
update vouchers set wrong_pins = 0, pin_locked_until = null, version = version + 1 where serial_number = ${serialNumber}`;
}

export function setExpiry(serialNumber: bigint, expiresAt: Date): Sql {
  return sql`update vouchers set expires_at = ${expiresAt}, version = version + 1 where serial_number = ${serialNumber}`;
}

export function nextSerial(): Sql {
  return sql`select nextval('voucher_serials') as serial_number`;
}

/** Which of these keys of codes are taken. */
export function findCodeKeys(codeKeys: string): Sql {
  return sql`select from vouchers where code_key = any (${codeKeys}::uuid[])`;
}

/** A voucher that takes over what another one is, under a new code and PIN: nothing comes back where the code exists. */
export function insertReplacement(
  serialNumber: bigint,
  replaced: bigint,
  secrets: { readonly codeKey: string; readonly pinKey: string; readonly sealed: Buffer },
): Sql {
  return sql`
insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, value_minor, balance_minor, activated_at, expires_at)
select ${serialNumber}, v.batch_id, ${secrets.codeKey}::uuid, ${secrets.pinKey}::uuid, ${secrets.sealed}::bytea, v.value_minor,
  v.balance_minor, v.activated_at, v.expires_at
from vouchers v where v.serial_number = ${replaced}
on conflict on constraint vouchers_code_unique do nothing
returning serial_number`;
}

export function closeReplaced(serialNumber: bigint, replacedBy: bigint): Sql {
  return sql`
update vouchers set closed = 'REPLACED', replaced_by = ${replacedBy}, balance_minor = 0, version = version + 1
where serial_number = ${serialNumber}`;
}

export function insertReplacementEntry(
  id: string,
  from: bigint,
  to: bigint,
  amount: { readonly minor: bigint; readonly currency: string },
  now: Date,
): Sql {
  return sql`
insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, serial_number, occurred_at)
values (${id}, 'REPLACEMENT', ${from}, ${to}, ${amount.minor}, ${amount.currency}, ${to}, ${now})`;
}
