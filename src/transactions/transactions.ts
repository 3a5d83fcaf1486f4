import Type, { type Static } from 'typebox';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, raw, type Sql, sql } from '../db/sql.ts';
import { ENTRY, none } from '../figure.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { checkLookupReference } from '../ledger/claims.ts';
import { idFloor, LAST_ID } from '../ledger/id.ts';
import { listOf, MovementWord, reversalsOf, TRANSACTION_KINDS } from '../ledger/kinds.ts';
import { maskCode } from '../ledger/transaction.ts';
import { listing } from '../listing.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { notFound, requireRow } from '../problem.ts';
import {
  End,
  LookupReference,
  MerchantId,
  Money,
  Nullable,
  NullableText,
  SerialNumber,
  Start,
  Text,
  Time,
  Titled,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import { toSpan } from '../zone.ts';
import { findCashiers } from './cashiers.ts';

/** Transactions as operators see them: every movement of money in the journal, of all merchants. */

export const TransactionSchema = Type.Object({
  transactionId: TransactionId,
  kind: Titled('Type', MovementWord),
  amount: Money(ENTRY, 'Negative for a reversal or a refund.'),
  currency: Text,
  timestamp: Titled('Time', Time),
  merchantId: Nullable(MerchantId),
  keyId: Nullable(Text, {
    description:
      'The API key that asked for it; null: the operator, a person of the merchant, or Scrip itself.',
  }),
  bookedBy: Nullable(Text, {
    description: "The merchant's person or token that booked it in the portal; null: nobody there.",
  }),
  reference: NullableText,
  serialNumber: Nullable(SerialNumber),
  voucherCode: Nullable(Text, { title: 'Code', description: 'The code, masked.' }),
  originalTransactionId: Nullable(Text, {
    description: 'The redemption that this one corrected or refunded, or the activation that it voided.',
  }),
  refundStatus: Nullable(Word(['CANCELLED', 'NEW']), {
    title: 'Update',
    'x-labels': { CANCELLED: 'Corrected', NEW: 'Correction' },
  }),
});

export type Transaction = Static<typeof TransactionSchema>;

/** One transaction, with what can still be done about it. */
export const ShownSchema = Type.Object({
  ...TransactionSchema.properties,
  refundable: Nullable(
    Money(none('What a redemption took, less its refunds: they are in the history of its voucher.')),
    { description: 'What can still be refunded of a redemption; null for others.' },
  ),
  correctedBy: Nullable(TransactionId, {
    description:
      'What corrected this redemption, the new one or else the reversal, or this top-up; null: nothing did.',
  }),
});

type Row = Omit<Transaction, 'voucherCode' | 'bookedBy'> & { readonly voucherCode: Buffer | null };

/** The columns of a row `r` of the journal. The code of its voucher is sealed. */
const columnsOf = (sealed: Sql, isCanceled: Sql) => sql`
r.id as "transactionId", r.kind,
case when r.kind in ${listOf(reversalsOf('REDEMPTION'))} then -r.amount_minor else r.amount_minor end
  as amount, r.currency,
r.occurred_at as timestamp, r.merchant_id::text as "merchantId", r.key_id as "keyId", r.reference,
r.serial_number::text as "serialNumber", ${sealed} as "voucherCode",
r.original_id as "originalTransactionId",
case when ${isCanceled} then 'CANCELLED' when r.original_id is not null and r.kind = 'REDEMPTION' then 'NEW'
end as "refundStatus"`;

async function toTransactions(
  { readDb, keys }: Pick<Service, 'readDb' | 'keys'>,
  rows: readonly Row[],
): Promise<Transaction[]> {
  const cashiers = await findCashiers(
    readDb,
    rows.map(({ transactionId }) => transactionId),
  );
  return rows.map((row) => ({
    ...row,
    voucherCode: maskedCodeOf(keys, row),
    bookedBy: cashiers.get(row.transactionId) ?? null,
  }));
}

function maskedCodeOf(keys: KeyRing, { serialNumber, voucherCode: sealed }: Row): string | null {
  if (serialNumber === null || sealed === null) return null;
  return maskCode(keys.open(BigInt(serialNumber), sealed).code);
}

/** Returns a transaction. @throws Problem if there is none */
export async function showTransaction(service: Service, id: string): Promise<Transaction> {
  const find = sql`select ${columnsOf(sql`r.sealed`, sql`r.canceled`)} from show_transaction(${id}::uuid) r`;
  const row = await requireRow<Row>(service.readDb, find, `transaction ${id}`);
  const [transaction] = (await toTransactions(service, [row])) as [Transaction];
  return transaction;
}

/**
 * Returns what can still be refunded of a redemption, as `refund_redemption` decides it
 * (sql/009-update-redemption.sql), in minor units; null for other transactions.
 */
async function findRefundable({ readDb, buckets }: Service, shown: Transaction): Promise<bigint | null> {
  const { transactionId: id, kind, serialNumber, originalTransactionId } = shown;
  if (kind !== 'REDEMPTION' || originalTransactionId !== null || serialNumber === null) return null;
  const bucket = buckets.ofSerial(BigInt(serialNumber));
  const [row] = await readDb.query<{ left: bigint }>(sql`
with recursive cards as (
  select serial_number, replaced_by, closed from vouchers
  where bucket = ${bucket} and serial_number = ${serialNumber}::bigint
  union all
  select v.serial_number, v.replaced_by, v.closed from cards c
  join vouchers v on v.bucket = ${bucket} and v.serial_number = c.replaced_by
)
select case when exists (select from cards where replaced_by is null and closed is not null) then 0
  else coalesce(u.new_minor, r.amount_minor) - coalesce((
    select sum(j.amount_minor) from journal j join cards c on j.serial_number = c.serial_number
    where j.bucket = ${bucket} and j.kind = 'REFUND' and j.original_id = ${id}::uuid
  ), 0) end::bigint as left
from journal r left join redemption_updates u on u.bucket = ${bucket} and u.original_id = r.id
where r.bucket = ${bucket} and r.id = ${id}::uuid`);
  return row?.left ?? null;
}

/** Returns the transaction that corrected a redemption or a top-up, as both can be once. */
async function findCorrection({ readDb, buckets }: Service, shown: Transaction): Promise<string | null> {
  const { transactionId: id, kind, serialNumber, merchantId, timestamp } = shown;
  const query =
    kind === 'TOP_UP'
      ? sql`
select id from journal
where merchant_id = ${Number(merchantId)} and kind = 'FLOAT_CORRECTION' and original_id = ${id}::uuid
  and id >= id_floor(${timestamp}::timestamptz, '-2 hours')`
      : sql`
select coalesce(new_id, reversal_id) as id from redemption_updates
where bucket = ${buckets.ofSerial(BigInt(serialNumber ?? 0))} and original_id = ${id}::uuid`;
  const [row] = await readDb.query<{ id: string }>(query);
  return row?.id ?? null;
}

/** Returns a transaction, and what has become of it. @throws Problem if there is none */
async function showWhole(service: Service, id: string): Promise<Static<typeof ShownSchema>> {
  const shown = await showTransaction(service, id);
  const [refundable, correctedBy] = await Promise.all([
    findRefundable(service, shown),
    findCorrection(service, shown),
  ]);
  return { ...shown, refundable, correctedBy };
}

/** The fields that the list of a merchant shows. */
const OF_MERCHANT = sql`
and r.batch_id is null and r.kind in ${listOf(TRANSACTION_KINDS)}`;

/** The rows of a voucher: the chain of its uses, and all others (sql/001-core.sql). */
const rowsOfVoucher = (bucket: number, serial: string) => sql`
uses as (
  select r.* from vouchers v join journal r on r.bucket = ${bucket} and r.id = v.last_use_id
  where v.bucket = ${bucket} and v.serial_number = ${serial}::bigint
  union all
  select r.* from uses u cross join lateral (
    select * from journal j where j.bucket = ${bucket} and j.id = u.previous_use_id limit 1
  ) r
), rows as (
  select * from uses
  union all
  select r.* from journal r
  where r.bucket = ${bucket} and r.serial_number = ${serial}::bigint
    and (r.kind <> 'REDEMPTION' or r.original_id is not null)
)`;

const list = listing({
  name: 'transaction.list',
  summary: 'List transactions, newest first',
  description:
    'With `merchantId`: its activations, redemptions and reversals; those of a generation are in its batch.',
  path: '/transactions',
  roles: SEE_VOUCHERS,
  item: TransactionSchema,
  columns: ['transactionId', 'kind', 'amount', 'timestamp', 'merchantId', 'serialNumber', 'reference'],
  filters: {
    merchantId: Type.Optional(MerchantId),
    serialNumber: Type.Optional(SerialNumber),
    from: Type.Optional(Start('The first of them.')),
    to: Type.Optional(End('The last of them.')),
  },
  // The ids ascend with the time, on each shard.
  sorts: { id: sql`r.id`, isNewestFirst: true, keys: { timestamp: null } },
  async rows(caller, { merchantId, serialNumber, from, to }, _after, count, order) {
    const { readDb, buckets } = caller.service;
    const span = await toSpan(caller, { from, to });
    const end = span.until ? idFloor(span.until) : LAST_ID;
    // Each filter uses an index: on the merchant, on the voucher, or on the ids. Without a subquery, each
    // shard joins its own newest rows. A voucher's rows are on one shard.
    const ofMerchant = merchantId === undefined ? sql`` : sql`and r.merchant_id = ${toId(merchantId)}`;
    const bucket = serialNumber === undefined ? undefined : buckets.ofSerial(BigInt(serialNumber));
    const at = (alias: string) => (bucket === undefined ? sql`` : sql`and ${raw(alias)}.bucket = ${bucket}`);
    const rows = await readDb.query<Row>(sql`
${bucket === undefined ? sql`` : sql`with recursive ${rowsOfVoucher(bucket, String(serialNumber))}`}
select ${columnsOf(sql`v.sealed`, sql`u.original_id is not null`)}
from ${bucket === undefined ? sql`journal` : sql`rows`} r
left join redemption_updates u on u.bucket = r.bucket and u.original_id = r.id ${at('u')}
left join vouchers v on v.bucket = r.bucket and v.serial_number = r.serial_number ${at('v')}
where r.id >= ${idFloor(span.from ?? new Date(0))}::uuid and r.id < ${end}::uuid and ${order.after}
  ${ofMerchant} ${merchantId !== undefined && serialNumber === undefined ? OF_MERCHANT : sql``}
order by ${order.by} limit ${count}`);
    return toTransactions(caller.service, rows);
  },
  position: ({ transactionId }) => [transactionId],
});

const show = reading({
  name: 'transaction.show',
  summary: 'Get a transaction',
  path: '/transactions/:transactionId',
  input: { transactionId: TransactionId },
  output: ShownSchema,
  roles: SEE_VOUCHERS,
  run: ({ service }, { transactionId }) => showWhole(service, transactionId),
});

const find = reading({
  name: 'transaction.find',
  summary: "Find a merchant's transaction by reference: redemption, else activation, cash-out or top-up",
  method: 'POST',
  path: '/transactions/find',
  command: 'transaction show',
  input: {
    reference: LookupReference("The merchant's reference."),
    merchantId: MerchantId,
  },
  output: ShownSchema,
  roles: SEE_VOUCHERS,
  async run(caller, { reference, merchantId }) {
    checkLookupReference(reference);
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    return showWhole(caller.service, await findByReference(caller.service.readDb, id, reference));
  },
});

/** Returns the id of a merchant's transaction under a reference. @throws Problem if there is none */
export async function findByReference(db: Queries, merchantId: number, reference: string): Promise<string> {
  const [first] = await db.query<{ id: string }>(sql`
select id from claims
where merchant_id = ${merchantId} and reference = ${reference}
  and operation in ('redeem', 'activate', 'cash-out', 'top-up')
  and (operation <> 'redeem' or serial_number is not null) -- it was not given up
order by case operation when 'redeem' then 1 when 'activate' then 2 when 'cash-out' then 3 else 4 end
limit 1`);
  if (!first) throw notFound(`transaction with this reference of merchant ${merchantId}`);
  return first.id;
}

/** What a reference of a merchant can name. An order is a batch. */
const NAMED = ['redeem', 'activate', 'generate', 'cash-out', 'top-up'] as const;
const NAMED_MAX = 50;

const search = reading({
  name: 'transaction.search',
  summary: 'Find what a reference names, at every merchant',
  description: `At most ${NAMED_MAX}. The transaction of \`generate\` is that of a batch.`,
  method: 'POST',
  path: '/transactions/search',
  input: { reference: LookupReference('The reference.') },
  output: Type.Object({
    items: Type.Array(
      Type.Object({
        operation: Word(NAMED),
        merchantId: MerchantId,
        serialNumber: Nullable(SerialNumber),
        transactionId: TransactionId,
      }),
    ),
  }),
  roles: SEE_VOUCHERS,
  async run({ service: { readDb } }, { reference }) {
    checkLookupReference(reference);
    // One look into the index of references for each merchant.
    const items = await readDb.query<Named>(sql`
select c.operation, c.merchant_id::text as "merchantId", c.serial_number::text as "serialNumber",
  c.id as "transactionId"
from merchants m join claims c on c.merchant_id = m.id
where c.reference = ${reference} and c.operation = any (${plainArray(NAMED)}::operation[])
  and (c.operation <> 'redeem' or c.serial_number is not null) -- it was not given up
order by c.id desc limit ${NAMED_MAX}`);
    return { items };
  },
});

type Named = {
  readonly operation: (typeof NAMED)[number];
  readonly merchantId: string;
  readonly serialNumber: string | null;
  readonly transactionId: string;
};

export const transactions = { list, show, find };

export const OPERATIONS = tableOf(list, show, find, search);
