import { type Sql, sql } from '../db/sql.ts';

/** Lists the closed days of an interval that ends before `to`, in order. */
export function listClosings(from: string, to: string): Sql {
  return sql`
select day::text, starts_at, ends_at, zone, closed_at, hash,
  (day - (select min(day) from book_closings)) + 1 as number
from book_closings where day >= ${from}::date and day < ${to}::date order by day`;
}

/** Lists the balances of all accounts at the end of a day, credit minus debit. */
export function listBalances(day: string): Sql {
  return sql`
select account_kind, currency, merchant_id, issuer_id, product_id, balance_minor
from book_balances where day = ${day}::date and balance_minor <> 0
order by currency, account_kind, merchant_id, issuer_id, product_id`;
}

/** Sums the movements of a closed day. 0 means no merchant or no product. */
export function listMovements(day: string): Sql {
  return sql`
select null::uuid as id, null::timestamptz as occurred_at, null::timestamptz as booked_at, kind::text,
  currency, debit_kind, credit_kind,
  merchant_id, issuer_id, product_id, rows, amount_minor, null::bigint as serial_number,
  null::text as reference, null::uuid as original_id
from book_movements where day = ${day}::date
order by currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id`;
}

/**
 * Opens a cursor over the rows that were booked in an interval, in the order of time and id. Account numbers
 * of reserves begin at 5,000,000,000, those of vouchers at 10,000,000,000.
 * @param merchantId returns only rows on this merchant's float and settlement account; null: all rows
 * @param byAccount returns only rows on floats and settlement accounts, account by account
 */
export function openRows(startsAt: Date, endsAt: Date, merchantId: number | null, byAccount: boolean): Sql {
  const order = byAccount
    ? 'r.currency, r.merchant_id, r.account_kind, r.booked_at, r.id'
    : 'r.booked_at, r.id';
  const text = `
declare export_rows no scroll cursor for
select * from (
  select j.id, j.occurred_at, j.booked_at, j.kind::text as kind, j.currency, 1::bigint as rows,
    j.amount_minor, j.serial_number, j.reference, j.original_id,
    case when d.kind in ('FLOAT', 'SETTLEMENT') then d.kind::text else c.kind::text end as account_kind,
    case
      when j.debit_account >= 10000000000 then 'VOUCHER'
      when j.debit_account >= 5000000000 then 'RESERVE'
      else d.kind::text
    end as debit_kind,
    case
      when j.credit_account >= 10000000000 then 'VOUCHER'
      when j.credit_account >= 5000000000 then 'RESERVE'
      else c.kind::text
    end as credit_kind,
    coalesce(nullif(greatest(d.merchant_id, c.merchant_id), 0), j.merchant_id, 0) as merchant_id,
    coalesce(n.merchant_id, 0) as issuer_id, coalesce(n.product_id, 0) as product_id
  from book_rows j
  left join accounts d on d.id = j.debit_account
  left join accounts c on c.id = j.credit_account
  left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
  left join batches n on n.id = coalesce(v.batch_id, j.batch_id)
  where j.place >= id_floor($1::timestamptz, '-1 hour')
    and j.place < id_floor($2::timestamptz, '1 hour')
    and j.booked_at >= $1 and j.booked_at < $2
    and (not $3::boolean or d.kind in ('FLOAT', 'SETTLEMENT') or c.kind in ('FLOAT', 'SETTLEMENT'))
    and ($4::integer is null or $4 in (d.merchant_id, c.merchant_id))
) r
order by ${order}`;
  // The protocol allows no parameters in a cursor's declaration. The values are times, a number and a
  // boolean.
  const values = [
    literal(startsAt),
    literal(endsAt),
    String(byAccount),
    merchantId === null ? 'null' : String(merchantId),
  ];
  return {
    text: text.replace(/\$(\d)/g, (_all, at: string) => values[Number(at) - 1] as string),
    values: [],
  };
}

const literal = (time: Date) => `'${time.toISOString()}'::timestamptz`;

export const fetchRows = sql`fetch 2000 from export_rows`;
export const closeRows = sql`close export_rows`;

/** Lets an export run longer than a request: it reads whole days, and waits for the reader of its output. */
export const allowLongExport: readonly Sql[] = [
  sql`set transaction read only`,
  sql`set local statement_timeout = '2h'`,
  sql`set local idle_in_transaction_session_timeout = '2h'`,
  sql`set local enable_bitmapscan = on`,
];

export type GlAccountRow = {
  account_kind: string;
  merchant_id: number;
  product_id: number;
  account: string;
  tax_code: string | null;
};

export function listGlAccounts(): Sql {
  return sql`
select g.account_kind, g.merchant_id, g.product_id, p.code as product, g.account, g.tax_code
from gl_accounts g left join products p on p.id = g.product_id
order by g.account_kind, g.merchant_id, g.product_id`;
}

/** Stores an account number. 0 means all merchants or all products. */
export function upsertGlAccount(row: GlAccountRow): Sql {
  const { account_kind, merchant_id, product_id, account, tax_code } = row;
  return sql`
insert into gl_accounts (account_kind, merchant_id, product_id, account, tax_code)
values (${account_kind}, ${merchant_id}, ${product_id}, ${account}, ${tax_code})
on conflict (account_kind, merchant_id, product_id) do update set
  account = excluded.account, tax_code = excluded.tax_code`;
}
