import { type HotStatement, type Sql, sql } from '../db/sql.ts';

/** Decides and books a list of activations: sql/007-activate.sql. */
export const ACTIVATE: HotStatement = {
  name: 'activate',
  text: 'select * from activate($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)',
};

/** The functions of sql/010-balance.sql. */
export const READ_BALANCES: HotStatement = {
  name: 'read-balances',
  text: 'select * from read_balances($1, $2, $3, $4, $5, $6)',
};

export const CHECK_PINS: HotStatement = {
  name: 'check-pins',
  text: 'select * from check_pins($1, $2, $3, $4)',
};

export function readHistory(bucket: number, merchantId: number, serialNumber: bigint, entries: number): Sql {
  return sql`select * from read_history(${bucket}, ${merchantId}, ${serialNumber}, ${entries})`;
}

/** Entries of a voucher's history that are shown to the operator. */
const HISTORY = 100;

/** A voucher as the operator sees it (sql/019-operator.sql). One of an incomplete batch cannot be seen. */
export function findVoucher(bucket: number, serialNumber: bigint): Sql {
  return sql`select * from show_voucher(${bucket}, ${serialNumber})`;
}

export function listVoucherEntries(bucket: number, serialNumber: bigint): Sql {
  return sql`select * from list_voucher_entries(${bucket}, ${serialNumber}, ${HISTORY})`;
}

/** Locks a voucher until the transaction ends. */
export function lockVoucher(bucket: number, serialNumber: bigint): Sql {
  return sql`select * from lock_voucher(${bucket}, ${serialNumber})`;
}

export function setBlock(bucket: number, serialNumber: bigint, blockedAt: Date | null): Sql {
  return sql`select set_voucher_block(${bucket}, ${serialNumber}, ${blockedAt})`;
}

export function resetPin(bucket: number, serialNumber: bigint): Sql {
  return sql`select reset_voucher_pin(${bucket}, ${serialNumber})`;
}

export function setExpiry(bucket: number, serialNumber: bigint, expiresAt: Date): Sql {
  return sql`select set_voucher_expiry(${bucket}, ${serialNumber}, ${expiresAt})`;
}

export function drawNumber(): Sql {
  return sql`select nextval('voucher_numbers') as number`;
}

/** Which of these code keys are taken. */
export function findCodeKeys(codeKeys: string): Sql {
  return sql`select from find_code_keys(${codeKeys}::uuid[])`;
}

export type Replacement = {
  readonly serialNumber: bigint;
  readonly codeKey: string;
  readonly pinKey: string;
  readonly sealed: Buffer;
  /** The id of the movement from the old voucher to the new one. */
  readonly entryId: string;
};

/** `done` is false if the new code exists. */
export function replaceBy(bucket: number, replaced: bigint, by: Replacement, now: Date): Sql {
  return sql`
select replace_voucher(${bucket}, ${replaced}, ${by.serialNumber}, ${by.codeKey}::uuid, ${by.pinKey}::uuid,
  ${by.sealed}::bytea,
  ${by.entryId}::uuid, ${now}) as done`;
}
