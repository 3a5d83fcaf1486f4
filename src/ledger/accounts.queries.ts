import { type Sql, sql } from '../db/sql.ts';

/**
 * A merchant's accounts in a currency, and the operator's own (merchant 0); those that exist stay as they
 * are.
 */
export function insertAccounts(merchantId: number, currency: string, decimals: number): Sql {
  return sql`
insert into accounts (kind, merchant_id, currency, decimals)
select k.kind, case when k.kind in ('FLOAT', 'SETTLEMENT') then ${merchantId}::int else 0 end, ${currency},
  ${decimals}
from unnest(enum_range(null::account_kind)) as k (kind)
where k.kind <> 'RESERVE' and (${merchantId}::int > 0 or k.kind not in ('FLOAT', 'SETTLEMENT'))
on conflict do nothing`;
}

export function insertFloat(merchantId: number, currency: string): Sql {
  return sql`
insert into floats (account_id, merchant_id, currency, decimals)
select id, merchant_id, currency, decimals from accounts
where merchant_id = ${merchantId} and currency = ${currency} and kind = 'FLOAT'
on conflict do nothing`;
}

export type AccountKind =
  | 'FUNDING'
  | 'TRANSIT'
  | 'FLOAT'
  | 'SETTLEMENT'
  | 'FEES'
  | 'VAT'
  | 'GOODWILL'
  | 'UNCLAIMED'
  | 'BREAKAGE';

/** @param merchantId 0 for the operator's own */
export function findAccount(merchantId: number, currency: string, kind: AccountKind): Sql {
  return sql`
select id from accounts
where merchant_id = ${merchantId} and currency = ${currency} and kind = ${kind}::account_kind`;
}

/** A movement between two accounts that are not vouchers (sql/012-vouchers.sql). */
export type Posting = {
  readonly id: string;
  readonly kind: 'TOP_UP' | 'RESERVATION' | 'RELEASE' | 'HOLD' | 'HOLD_RELEASE';
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  readonly merchantId: number;
  readonly batchId?: number;
  readonly reference?: string | undefined;
  readonly now: Date;
};

export function insertPosting(posting: Posting): Sql {
  const { id, kind, debit, credit, amountMinor, merchantId, batchId, reference, now } = posting;
  return sql`
select post(${id}, ${kind}::entry_kind, ${debit}, ${credit}, ${amountMinor}, ${merchantId},
  ${batchId ?? null}, ${reference ?? null},
  ${now})`;
}

/** Takes an amount from a float, for a hold; `done` is false if the float is too low. */
export function debitFloat(accountId: bigint, amountMinor: bigint, lowId: string, now: Date): Sql {
  return sql`select debit_float(${accountId}, ${amountMinor}, ${lowId}, ${now}) as done`;
}

export function updateFloat(accountId: bigint, amountMinor: bigint): Sql {
  return sql`
update floats set balance_minor = balance_minor + ${amountMinor} where account_id = ${accountId}
returning account_id`;
}
