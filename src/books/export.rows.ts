import type { Database, Queries } from '../db/pool.ts';
import { readLong } from '../db/session.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import { kindOf } from '../ledger/kinds.ts';
import { Problem } from '../problem.ts';
import { addDays } from '../time.ts';
import { type BookDay, bookedBetween } from './days.ts';
import { listSlices, type Slice } from './seal.ts';

/**
 * The data that exports are made of: closed days, their balances, and their movements, summed or row by row.
 */

export type ClosedDay = BookDay & {
  readonly closedAt: Date;
  readonly hash: string;
  /** The number of the day: 1 for the first day that was closed. */
  readonly number: number;
};

/** An account as exports name it. 0 means no merchant or no product. */
export type Account = {
  readonly kind: string;
  readonly currency: string;
  /** The owner of a float or a settlement account, or the issuer of a voucher or a reserve. */
  readonly merchantId: number;
  readonly productId: number;
};

export type Movement = {
  /** The id of the journal row; null for a sum. */
  readonly id: string | null;
  readonly occurredAt: Date | null;
  /** The time of the row, or for a late row that of the slice in which it is booked. */
  readonly bookedAt: Date | null;
  readonly kind: string;
  readonly debit: Account;
  readonly credit: Account;
  readonly rows: number;
  readonly amountMinor: bigint;
  readonly currency: string;
  readonly serialNumber: bigint | null;
  readonly reference: string | null;
  readonly originalId: string | null;
};

export type Balance = Account & { readonly balanceMinor: bigint };

/**
 * Returns the days of an interval that ends before `to`. If the interval begins before the books, the result
 * begins with their first day.
 * @throws Problem `conflict` that names the first day that is not closed
 */
export async function closedDays(db: Queries, from: string, to: string): Promise<ClosedDay[]> {
  const days = await db.query<ClosedDay>(sql`
select day::text, starts_at as "startsAt", ends_at as "endsAt", zone, closed_at as "closedAt",
  encode(hash, 'hex') as hash, (day - (select min(day) from book_closings)) + 1 as number
from book_closings where day >= ${from}::date and day < ${to}::date order by book_closings.day`);
  const [first] = days;
  let expected = first?.number === 1 && first.day > from ? first.day : from;
  for (const { day } of days) {
    if (day !== expected) break;
    expected = addDays(expected, 1);
  }
  if (expected < to)
    throw new Problem('conflict', `${expected} is not closed: only closed days can be exported`);
  return days;
}

/** The merchant and the product of the accounts of a movement or a balance. */
type Owners = {
  readonly currency: string;
  readonly merchantId: number;
  readonly issuerId: number;
  readonly productId: number;
};

const OWNERS = sql`
currency, merchant_id as "merchantId", issuer_id as "issuerId", product_id as "productId"`;

/** Returns the account of a kind: vouchers and reserves belong to their issuer, by product. */
function accountOf(kind: string, { currency, merchantId, issuerId, productId }: Owners): Account {
  if (kind === 'FLOAT' || kind === 'SETTLEMENT') return { kind, currency, merchantId, productId: 0 };
  if (kind === 'VOUCHER' || kind === 'RESERVE') return { kind, currency, merchantId: issuerId, productId };
  return { kind, currency, merchantId: 0, productId: 0 };
}

/** Returns the nonzero balances at the end of a day, credit minus debit; none before the first closed day. */
export async function balancesAt(db: Queries, day: string): Promise<Balance[]> {
  const rows = await db.query<Owners & { readonly kind: string; readonly balanceMinor: bigint }>(sql`
select account_kind as kind, ${OWNERS}, balance_minor as "balanceMinor"
from book_balances where day = ${day}::date and balance_minor <> 0
order by currency, account_kind, merchant_id, issuer_id, product_id`);
  return rows.map((row) => ({ ...accountOf(row.kind, row), balanceMinor: row.balanceMinor }));
}

type MovementRow = Omit<Movement, 'debit' | 'credit'> &
  Owners & { readonly debitKind: string; readonly creditKind: string };

const toMovement = (row: MovementRow): Movement => ({
  ...row,
  debit: accountOf(row.debitKind, row),
  credit: accountOf(row.creditKind, row),
});

/** Returns the movements of a day, summed by kind and accounts. */
export async function sumsOf(db: Queries, { day }: ClosedDay): Promise<Movement[]> {
  const rows = await db.query<MovementRow>(sql`
select null::uuid as id, null::timestamptz as "occurredAt", null::timestamptz as "bookedAt", kind::text,
  debit_kind as "debitKind", credit_kind as "creditKind", ${OWNERS}, rows::float8 as rows,
  amount_minor as "amountMinor", null::bigint as "serialNumber", null::text as reference,
  null::uuid as "originalId"
from book_movements where day = ${day}::date
order by currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id`);
  return rows.map(toMovement);
}

/** The rows that are read at once. */
const PAGE = 2_000;
const ID_BYTES = 16;

type RowsWanted = {
  /** Only movements on this merchant's floats and settlement accounts. Without it, all movements. */
  readonly merchantId?: number | undefined;
  /** Only movements on floats and settlement accounts, account by account. */
  readonly byAccount?: boolean;
};

/**
 * Returns the rows of a day in the order of time and id, page by page. The seals of the day say which rows
 * these are. Closed days do not change, so no snapshot is held while the reader takes a page.
 */
export async function* rowsOf(
  db: Database,
  day: ClosedDay,
  { merchantId, byAccount = false }: RowsWanted = {},
): AsyncGenerator<Movement> {
  const pages = byAccount ? pagesByAccount(db, day, merchantId) : pagesOfSlices(db, day);
  for await (const ids of pages) yield* (await inOrder<MovementRow>(db, day, ids, listRows)).map(toMovement);
}

/** Returns rows by their ids, in any order. */
const listRows = (ids: string) => sql`
select j.id, j.occurred_at as "occurredAt", j.booked_at as "bookedAt", j.kind::text as kind, j.currency,
  1 as rows, j.amount_minor as "amountMinor", j.serial_number as "serialNumber", j.reference,
  j.original_id as "originalId", ${kindOf(sql`j.debit_account`, sql`d.kind::text`)} as "debitKind",
  ${kindOf(sql`j.credit_account`, sql`c.kind::text`)} as "creditKind",
  coalesce(nullif(greatest(d.merchant_id, c.merchant_id), 0), j.merchant_id, 0) as "merchantId",
  coalesce(n.merchant_id, 0) as "issuerId", coalesce(n.product_id, 0) as "productId"
from book_rows j
left join accounts d on d.id = j.debit_account
left join accounts c on c.id = j.credit_account
left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
left join batches n on n.id = coalesce(v.batch_id, j.batch_id)
where j.id = any (${ids}::uuid[])`;

/** Returns the texts of rows that are hashed, by their ids and in any order. */
const listLines = (ids: string) => sql`select id, line from book_rows where id = any (${ids}::uuid[])`;

/** Reads rows, and puts them into the order of their ids. */
async function inOrder<Row extends { readonly id: string | null }>(
  db: Database,
  { day }: ClosedDay,
  ids: readonly string[],
  list: (ids: string) => Sql,
): Promise<Row[]> {
  const byId = new Map((await db.query<Row>(list(plainArray(ids)))).map((row) => [row.id, row]));
  return ids.map((id) => {
    const row = byId.get(id);
    if (!row) throw new Error(`row ${id} of ${day} is missing: see scrip books verify`);
    return row;
  });
}

async function* pagesOfSlices(db: Database, day: ClosedDay): AsyncGenerator<string[]> {
  for (const slice of await db.query<Slice>(listSlices(day))) yield* pagesOf(db, slice);
}

/** Returns the ids of a slice from its listing, in the order of time and id. */
async function* pagesOf(db: Database, { startsAt, rows }: Slice): AsyncGenerator<string[]> {
  for (let skipped = 0; skipped < rows; skipped += PAGE) {
    const page = await db.query<{ id: string }>(sql`
select encode(substring(s.listing from 20 * i.at + 1 for 16), 'hex')::uuid as id
from book_seals s, generate_series(${skipped}::integer, ${skipped}::integer + ${PAGE}::integer - 1) as i (at)
where s.starts_at = ${startsAt} and i.at < s.rows order by i.at`);
    yield page.map(({ id }) => id);
  }
}

/** Returns the texts of the rows of a slice, as they were hashed. */
export async function* textsOf(db: Database, day: ClosedDay, slice: Slice): AsyncGenerator<string> {
  for await (const ids of pagesOf(db, slice))
    for (const { line } of await inOrder<{ id: string; line: string }>(db, day, ids, listLines)) yield line;
}

/**
 * Returns the ids of the rows that were booked on floats and settlement accounts, account by account, in the
 * order of time and id.
 */
async function* pagesByAccount(
  db: Database,
  { startsAt, endsAt }: ClosedDay,
  merchantId: number | null = null,
): AsyncGenerator<string[]> {
  const accounts = await db.transaction(async (tx) => {
    // The statement reads a whole day.
    await readLong(tx, '2h');
    // Of a large day, ids as text would take too much memory.
    return tx.query<{ ids: Buffer }>(sql`
select string_agg(uuid_send(r.id), ''::bytea order by r.booked_at, r.id) as ids
from (
  select j.id, j.booked_at, j.currency, coalesce(d.merchant_id, c.merchant_id) as merchant_id,
    coalesce(d.kind, c.kind) as kind
  from book_rows j
  left join accounts d on d.id = j.debit_account and d.kind in ('FLOAT', 'SETTLEMENT')
  left join accounts c on c.id = j.credit_account and c.kind in ('FLOAT', 'SETTLEMENT')
  where coalesce(d.id, c.id) is not null and ${bookedBetween(startsAt, endsAt)}
    and (${merchantId}::integer is null or ${merchantId} in (d.merchant_id, c.merchant_id))
) r
group by r.currency, r.merchant_id, r.kind order by r.currency, r.merchant_id, r.kind::text`);
  });
  for (const { ids: bytes } of accounts)
    for (let at = 0; at < bytes.length; at += PAGE * ID_BYTES) {
      const hex = bytes.toString('hex', at, at + PAGE * ID_BYTES);
      const ids = hex.matchAll(/(.{8})(.{4})(.{4})(.{4})(.{12})/g);
      yield Array.from(ids, ([, ...parts]) => parts.join('-'));
    }
}
