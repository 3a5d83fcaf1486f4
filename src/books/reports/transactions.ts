import type { Service } from '../../context.ts';
import { type Sql, sql } from '../../db/sql.ts';
import { maskCode } from '../../ledger/transactions.ts';
import { decimalsOf, toText } from '../../money.ts';
import { daysOf, type Lines, openScope, productOf, type Wanted } from './report.ts';

/** The number of rows that are read at a time. */
const PAGE = 500;

type Row = {
  readonly id: string | null;
  readonly occurred_at: Date;
  readonly kind: string;
  readonly serial_number: bigint;
  readonly sealed: Buffer;
  readonly product_id: number;
  readonly amount_minor: bigint;
  readonly currency: string;
  readonly reference: string | null;
  readonly original_id: string | null;
  /** Null for an activation by generation, which belongs to no settlement. */
  readonly booked_at: Date | null;
};

type Settled = { currency: string; starts_at: Date; ends_at: Date; number: string };

const COLUMNS = {
  transactionId: 'text',
  time: 'time',
  localTime: 'text',
  kind: 'word',
  serialNumber: 'text',
  voucherCode: 'text',
  product: 'text',
  amount: 'money',
  currency: 'text',
  reference: 'text',
  originalId: 'text',
  settlement: 'text',
} as const;

type TransactionLine = Readonly<Record<keyof typeof COLUMNS, string | null>>;

/**
 * The transactions of a merchant in an interval, oldest first, without a limit. First come the merchant's
 * own transactions in the order of their ids, then the vouchers that it generated active, batch by batch.
 * Each is shown with the approved settlement that includes it. Rows are read page by page, and never contain
 * a full code or a PIN.
 * @throws Refusal `30` for days that are not in the books
 */
export async function* streamTransactions(service: Service, wanted: Wanted): AsyncGenerator<TransactionLine> {
  const { db, keys } = service;
  const days = await daysOf(service, wanted);
  const { startsAt, endsAt, zone, names } = await db.transaction(
    async (tx) => (await openScope(service, tx, wanted, days)).scope,
  );
  const local = localTime(zone);
  const merchantId = Number(wanted.merchantId);
  const settled = await db.query<Settled>(listSettledIntervals(merchantId, startsAt, endsAt));
  const settlementOf = ({ kind, currency, booked_at: at }: Row): string | null => {
    if (at === null || kind === 'ACTIVATION') return null;
    const isIn = (each: Settled) => each.currency === currency && each.starts_at <= at && at < each.ends_at;
    return settled.find(isIn)?.number ?? null;
  };
  const toLine = (row: Row): TransactionLine => {
    const minor = row.kind === 'REDEMPTION_REVERSAL' ? -row.amount_minor : row.amount_minor;
    return {
      transactionId: row.id,
      time: row.occurred_at.toISOString(),
      localTime: local(row.occurred_at),
      kind: row.kind,
      serialNumber: String(row.serial_number),
      voucherCode: maskCode(keys.open(row.serial_number, row.sealed).code),
      product: productOf(names, row.product_id),
      amount: toText({ minor, decimals: decimalsOf(row.currency) ?? 2 }),
      currency: row.currency,
      reference: row.reference,
      originalId: row.original_id,
      settlement: settlementOf(row),
    };
  };
  for (let after: string | null = null; ; ) {
    const rows: Row[] = await db.query<Row>(listMerchantRows(merchantId, startsAt, endsAt, after, PAGE));
    for (const row of rows) yield toLine(row);
    const last = rows.at(-1)?.id;
    if (!last || rows.length < PAGE) break;
    after = last;
  }
  for (const { id } of await db.query<{ id: number }>(listGeneratedBatches(merchantId, startsAt, endsAt))) {
    for (let after = 0n; ; ) {
      const rows = await db.query<Row>(listGeneratedRows(id, startsAt, endsAt, after, PAGE));
      for (const row of rows) if (row.id !== null) yield toLine(row);
      const last = rows.at(-1)?.serial_number;
      if (last === undefined || rows.length < PAGE) break;
      after = last;
    }
  }
}

export const transactions = {
  report: 'R8',
  name: 'transactions',
  title: 'Transactions',
  use: 'For a merchant, each day: every transaction, for its own bookkeeping.',
  ofMerchant: 'always',
  columns: COLUMNS,
  lines: streamTransactions,
} as const satisfies Lines;

/** Lists the settlements of a merchant that overlap an interval, without drafts. */
function listSettledIntervals(merchantId: number, from: Date, to: Date): Sql {
  return sql`
select currency, starts_at, ends_at,
  settlement_number(merchant_id, year, number) as number
from settlements
where merchant_id = ${merchantId} and state <> 'DRAFT' and ends_at > ${from} and starts_at < ${to}`;
}

/**
 * Lists a page of a merchant's own transactions that were booked in an interval, after an id, oldest first.
 */
function listMerchantRows(
  merchantId: number,
  from: Date,
  to: Date,
  after: string | null,
  count: number,
): Sql {
  // Each part reads its own index. Late rows are few.
  return sql`
select j.id, j.occurred_at, j.kind::text as kind, j.serial_number, v.sealed, b.product_id, j.amount_minor,
  j.currency, j.reference, j.original_id, j.booked_at
from (
  (
    select r.*, r.occurred_at as booked_at from journal r
    where r.merchant_id = ${merchantId} and r.batch_id is null
      and r.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL')
      and r.id > greatest(${after}::uuid, id_floor(${from}::timestamptz, '-1 hour'))
      and r.id < id_floor(${to}::timestamptz, '1 hour') and r.occurred_at >= ${from} and r.occurred_at < ${to}
      and not exists (select from book_late_rows l where l.id = r.id)
    order by r.id limit ${count}
  )
  union all
  (
    select r.*, r.occurred_at from journal r
    where r.merchant_id = ${merchantId} and r.kind = 'CASH_OUT'
      and r.id > greatest(${after}::uuid, id_floor(${from}::timestamptz, '-1 hour'))
      and r.id < id_floor(${to}::timestamptz, '1 hour') and r.occurred_at >= ${from} and r.occurred_at < ${to}
      and not exists (select from book_late_rows l where l.id = r.id)
    order by r.id limit ${count}
  )
  union all
  (
    select r.*, l.slice_at from book_late_rows l join journal r on r.id = l.id
    where l.slice_at >= ${from} and l.slice_at < ${to} and r.merchant_id = ${merchantId}
      and r.batch_id is null and r.kind in ('ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL', 'CASH_OUT')
      and (${after}::uuid is null or r.id > ${after}::uuid)
    order by r.id limit ${count}
  )
) j
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
order by j.id limit ${count}`;
}

/**
 * Lists the batches of a merchant whose vouchers were activated by generation, possibly booked within an
 * interval.
 */
function listGeneratedBatches(merchantId: number, from: Date, to: Date): Sql {
  return sql`
select id from batches
where merchant_id = ${merchantId} and value_minor is not null and activation = 'immediate'
  and status = 'COMPLETED' and (ended_at >= ${from} and accepted_at < ${to} or id in (
    select r.batch_id from book_late_rows l join journal r on r.id = l.id
    where l.slice_at >= ${from} and l.slice_at < ${to}
  ))
order by accepted_at, id`;
}

/**
 * Lists a page of the activations of a batch after a serial number. One that was booked outside of the
 * interval has no id.
 */
function listGeneratedRows(batchId: number, from: Date, to: Date, after: bigint, count: number): Sql {
  return sql`
select case when coalesce(l.slice_at, j.occurred_at) >= ${from}
    and coalesce(l.slice_at, j.occurred_at) < ${to} then j.id end as id,
  j.occurred_at, j.kind::text as kind, v.serial_number, v.sealed, b.product_id, j.amount_minor, j.currency,
  b.reference, j.original_id, null::timestamptz as booked_at
from (
  select * from vouchers
  where batch_id = ${batchId} and serial_number > ${after} order by serial_number limit ${count}
) v
join batches b on b.id = v.batch_id
left join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
left join book_late_rows l on l.id = j.id
order by v.serial_number`;
}

/** Returns a function that formats times in a zone, such as `2026-01-31 12:00:00`. */
function localTime(zone: string): (time: Date) => string {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  return (time) => format.format(time);
}
