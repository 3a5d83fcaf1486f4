import type { Service } from '../../context.ts';
import { type Sql, sql } from '../../db/sql.ts';
import { listOf, reversalsOf, TRANSACTION_KINDS } from '../../ledger/kinds.ts';
import { maskCode } from '../../ledger/transaction.ts';
import { daysOf, type Lines, openScope, rendered, type Wanted } from './report.ts';

/** The number of rows that are read at a time. */
const PAGE = 500;

type Row = {
  readonly transactionId: string | null;
  readonly time: Date;
  readonly kind: string;
  readonly serialNumber: bigint;
  readonly sealed: Buffer;
  readonly product: number;
  readonly amount: bigint;
  readonly currency: string;
  readonly reference: string | null;
  readonly originalId: string | null;
  /** Null for an activation by generation, which belongs to no settlement. */
  readonly bookedAt: Date | null;
};

type Settled = { currency: string; startsAt: Date; endsAt: Date; number: string };

const COLUMNS = {
  transactionId: 'text',
  time: 'time',
  localTime: 'text',
  kind: 'word',
  serialNumber: 'text',
  voucherCode: 'text',
  product: 'product',
  amount: 'money',
  currency: 'text',
  reference: 'text',
  originalId: 'text',
  settlement: 'text',
} as const;

/**
 * The transactions of a merchant in an interval, oldest first, without a limit. First come the merchant's
 * own transactions in the order of their ids, then the vouchers that it generated active, batch by batch.
 * Each is shown with the approved settlement that includes it. Rows are read page by page, and never contain
 * a full code or a PIN.
 * @throws Refusal `30` for days that are not in the books
 */
export async function* streamTransactions(service: Service, wanted: Wanted) {
  const { db, keys } = service;
  const days = await daysOf(service, wanted);
  const { startsAt, endsAt, zone, names } = await db.transaction(async (tx) => {
    const { scope } = await openScope(service, tx, wanted, days);
    return { ...scope, names: await scope.names() };
  });
  const local = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
  const merchantId = Number(wanted.merchantId);
  // The settlements that overlap the interval, without drafts.
  const settled = await db.query<Settled>(sql`
select currency, starts_at as "startsAt", ends_at as "endsAt",
  settlement_number(merchant_id, year, number) as number
from settlements
where merchant_id = ${merchantId} and state <> 'DRAFT' and ends_at > ${startsAt} and starts_at < ${endsAt}`);
  const settlementOf = ({ kind, currency, bookedAt: at }: Row): string | null => {
    if (at === null || kind === 'ACTIVATION') return null;
    const isIn = (each: Settled) => each.currency === currency && each.startsAt <= at && at < each.endsAt;
    return settled.find(isIn)?.number ?? null;
  };
  const toLine = (row: Row) => {
    const voucherCode = maskCode(keys.open(row.serialNumber, row.sealed).code);
    const own = { voucherCode, localTime: local.format(row.time), settlement: settlementOf(row) };
    return rendered(COLUMNS, { ...row, ...own, serialNumber: String(row.serialNumber) }, names);
  };
  for (let after: string | null = null; ; ) {
    const rows: Row[] = await db.query<Row>(listMerchantRows(merchantId, startsAt, endsAt, after));
    yield* rows.map(toLine);
    const last = rows.at(-1)?.transactionId;
    if (!last || rows.length < PAGE) break;
    after = last;
  }
  for (const { id } of await db.query<{ id: number }>(listGeneratedBatches(merchantId, startsAt, endsAt))) {
    for (let after = 0n; ; ) {
      const rows = await db.query<Row>(listGeneratedRows(id, startsAt, endsAt, after));
      yield* rows.filter(({ transactionId }) => transactionId !== null).map(toLine);
      const last = rows.at(-1)?.serialNumber;
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

/** What the API of merchants does not list, and their bookkeeping needs. */
const OTHERS = ['CASH_OUT', 'REFUND'] as const;

const COLUMNS_OF_ROW = sql`
  j.occurred_at as time, j.kind::text as kind, v.serial_number as "serialNumber", v.sealed,
  b.product_id as product, j.currency, j.original_id as "originalId",
  case when j.kind in ${listOf(reversalsOf('REDEMPTION'))} then -j.amount_minor else j.amount_minor end
    as amount`;

/** Lists a page of a merchant's own transactions that were booked in an interval, oldest first. */
function listMerchantRows(merchantId: number, from: Date, to: Date, after: string | null): Sql {
  const inInterval = sql`
      and r.id > greatest(${after}::uuid, id_floor(${from}::timestamptz, '-1 hour'))
      and r.id < id_floor(${to}::timestamptz, '1 hour') and r.occurred_at >= ${from} and r.occurred_at < ${to}
      and not exists (select from book_late_rows l where l.id = r.id)`;
  // Each part reads its own index. Late rows are few.
  return sql`
select j.id as "transactionId", ${COLUMNS_OF_ROW}, j.reference, j.booked_at as "bookedAt"
from (
  (
    select r.*, r.occurred_at as booked_at from journal r
    where r.merchant_id = ${merchantId} and r.batch_id is null
      and r.kind in ${listOf(TRANSACTION_KINDS)} ${inInterval}
    order by r.id limit ${PAGE}
  )
  union all
  (
    select r.*, r.occurred_at from journal r
    where r.merchant_id = ${merchantId} and r.kind in ${listOf(OTHERS)} ${inInterval}
    order by r.id limit ${PAGE}
  )
  union all
  (
    select r.*, l.slice_at from book_late_rows l join journal r on r.id = l.id
    where l.slice_at >= ${from} and l.slice_at < ${to} and r.merchant_id = ${merchantId}
      and r.batch_id is null and r.kind in ${listOf([...TRANSACTION_KINDS, ...OTHERS])}
      and (${after}::uuid is null or r.id > ${after}::uuid)
    order by r.id limit ${PAGE}
  )
) j
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
order by j.id limit ${PAGE}`;
}

/**
 * Lists the batches of a merchant whose vouchers were activated by generation, possibly booked within an
 * interval.
 */
const listGeneratedBatches = (merchantId: number, from: Date, to: Date): Sql => sql`
select id from batches
where merchant_id = ${merchantId} and value_minor is not null and activation = 'immediate'
  and status = 'COMPLETED' and (ended_at >= ${from} and accepted_at < ${to} or id in (
    select r.batch_id from book_late_rows l join journal r on r.id = l.id
    where l.slice_at >= ${from} and l.slice_at < ${to}
  ))
order by accepted_at, id`;

/**
 * Lists a page of the activations of a batch after a serial number. One that was booked outside of the
 * interval has no id.
 */
const listGeneratedRows = (batchId: number, from: Date, to: Date, after: bigint): Sql => sql`
select case when coalesce(l.slice_at, j.occurred_at) >= ${from}
    and coalesce(l.slice_at, j.occurred_at) < ${to} then j.id end as "transactionId",
  ${COLUMNS_OF_ROW}, b.reference, null::timestamptz as "bookedAt"
from (
  select * from vouchers
  where batch_id = ${batchId} and serial_number > ${after} order by serial_number limit ${PAGE}
) v
join batches b on b.id = v.batch_id
left join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'ACTIVATION'
  and j.batch_id = v.batch_id
left join book_late_rows l on l.id = j.id
order by v.serial_number`;
