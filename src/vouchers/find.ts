import Type, { type Static, type TObject, type TString } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { checkLookupReference } from '../ledger/claims.ts';
import { maskCode } from '../ledger/transaction.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, readCursor, writeCursor } from '../page.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound, requireRow } from '../problem.ts';
import { ProductCode } from '../products/products.ts';
import {
  AMOUNT_MAX,
  End,
  LookupReference,
  MerchantId,
  Start,
  Titled,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import { toEnd, toStart } from '../zone.ts';
import { VOUCHER_STATES, VoucherSchema } from './show.ts';

/** Finds vouchers for the operator: by code, by masked code, by their transactions, and by batch. */

const FoundSchema = Type.Pick(VoucherSchema, [
  ...(['serialNumber', 'voucherCode', 'state', 'merchantId', 'batch', 'product', 'currency'] as const),
  ...(['balance', 'value', 'activatedAt', 'expiresAt', 'blockedAt', 'replacedBy'] as const),
]);

export type FoundVoucher = Static<typeof FoundSchema>;

type Row = Omit<FoundVoucher, 'voucherCode'> & { readonly voucherCode: Buffer };

/** The state of a voucher (sql/005-rules.sql). */
export const stateAt = (now: Date) => sql`
voucher_state(v.closed, v.blocked_at, v.expires_at, v.activated_at, v.balance_minor, ${now}::timestamptz)`;

const columnsAt = (now: Date) => sql`
v.serial_number::text as "serialNumber", ${stateAt(now)} as state, b.merchant_id::text as "merchantId",
b.transaction_id as batch, p.code as product, b.currency, v.balance_minor as balance, v.value_minor as value,
v.activated_at as "activatedAt", v.expires_at as "expiresAt", v.blocked_at as "blockedAt",
v.replaced_by::text as "replacedBy", v.sealed as "voucherCode"`;

const OWNERS = sql`
join batches b on b.id = v.batch_id and b.status = 'COMPLETED'
join products p on p.id = b.product_id`;

const toFound = (keys: KeyRing, row: Row): FoundVoucher => ({
  ...row,
  voucherCode: maskCode(keys.open(BigInt(row.serialNumber), row.voucherCode).code),
});

const FOUND_MAX = 200;

type Ranges = ReturnType<KeyRing['rangesOfMask']>;

/**
 * Lists vouchers by ranges of the keys of their codes. Materialized: otherwise the planner might read all
 * vouchers in the order of the list.
 */
export function listByCodeRanges(ranges: Ranges, now: Date): Sql {
  const within = ranges
    .map(({ first, last }) => sql`r.code_key between ${first}::uuid and ${last}::uuid`)
    .reduce((one, other) => sql`${one} or ${other}`);
  return sql`
with found as materialized (select r.* from vouchers r where ${within})
select ${columnsAt(now)} from found v ${OWNERS} order by v.serial_number limit ${FOUND_MAX}`;
}

async function findByRanges({ readDb, keys, clock }: Service, ranges: Ranges): Promise<FoundVoucher[]> {
  return (await readDb.query<Row>(listByCodeRanges(ranges, clock()))).map((row) => toFound(keys, row));
}

/** Finds a voucher by its code. @param code 12 digits */
function findByCode(service: Service, code: string): Promise<FoundVoucher[]> {
  const codeKeys = [...service.keys.olderCodeKeys(code), service.keys.codeKey(code)];
  return findByRanges(
    service,
    codeKeys.map((key) => ({ first: key, last: key })),
  );
}

/**
 * Finds vouchers by a masked code. They are next to each other in the index of codes, so that no part of a
 * code has to be stored.
 * @param masked such as `4829****7641`
 */
async function findByMask(service: Service, masked: string): Promise<FoundVoucher[]> {
  const found = await findByRanges(service, service.keys.rangesOfMask(masked.replaceAll('*', '')));
  return found.filter(({ voucherCode }) => voucherCode === masked);
}

async function findBySerials(
  { readDb, keys, clock }: Service,
  serials: readonly string[],
): Promise<FoundVoucher[]> {
  if (serials.length === 0) return [];
  const rows = await readDb.query<Row>(sql`
select ${columnsAt(clock())} from vouchers v ${OWNERS}
where v.serial_number = any (${plainArray(serials)}::bigint[]) order by v.serial_number`);
  return rows.map((row) => toFound(keys, row));
}

/** What one page of a list looks through at most: a page may have fewer vouchers than its limit. */
const SCAN_MAX = 5_000;
const BATCHES_MAX = 1_000;

type Filters = Static<TObject<typeof FILTERS>>;
/** From the first moment to the last one; null for an open end. */
type Expiry = { readonly from: Date | null; readonly to: Date | null };
type Batch = { readonly id: number; readonly quantity: number };
type Place = readonly [batchId: number, serialNumber: string];

const SERIAL_MAX = '9223372036854775807';
const START: Place = [2 ** 31 - 1, SERIAL_MAX];

/**
 * Lists batches that match, newest first, from the one with an id. Nearly all are completed, so that the
 * index of the status would find all of them.
 */
export function listBatchesOf({ merchantId, product }: Filters, batchId: number | null, from: number): Sql {
  return sql`
select id, quantity from batches
where id <= ${from} and status not in ('PROCESSING', 'CANCELED')
  ${batchId === null ? sql`` : sql`and id = ${batchId}`}
  ${merchantId === undefined ? sql`` : sql`and merchant_id = ${toId(merchantId, 'merchantId')}`}
  ${product === undefined ? sql`` : sql`and product_id = (select id from products where code = ${product})`}
order by id desc limit ${BATCHES_MAX}`;
}

/** Returns the first batches that together have at most a number of vouchers, but at least one batch. */
function firstOf(batches: readonly Batch[], most: number): readonly Batch[] {
  let vouchers = 0;
  const end = batches.findIndex(({ quantity }) => {
    vouchers += quantity;
    return vouchers > most;
  });
  return end === -1 ? batches : batches.slice(0, Math.max(1, end));
}

type Listed = Row & { readonly batchId: number };
/** `scanned` is the number of vouchers that were read, and the other two the place of the last one. */
type Scanned = { scanned: number; lastBatch: number; lastSerial: string } & (Listed | { serialNumber: null });

/**
 * Lists the vouchers of batches before a place, newest first. It reads at most a number of them, and returns
 * those that match.
 */
export function listVoucherRows(
  batchIds: readonly number[],
  [batchId, serialNumber]: Place,
  filters: Filters & { readonly expiry?: Expiry },
  now: Date,
  most: { readonly scanned: number; readonly listed: number },
): Sql {
  // The vouchers of one batch are read along the index. Those of several are few, and are sorted.
  const ofBatches =
    batchIds.length === 1 ? sql`r.batch_id = ${batchIds[0]}` : sql`r.batch_id = any (${batchIds}::int[])`;
  const state = filters.state ?? null;
  const balance = sql`v.balance_minor / 10::numeric ^ b.decimals`;
  const { from = null, to = null } = filters.expiry ?? {};
  return sql`
with scanned as materialized (
  select r.* from vouchers r
  where ${ofBatches} and (r.batch_id, r.serial_number) < (${batchId}, ${serialNumber}::bigint)
  order by r.batch_id desc, r.serial_number desc limit ${most.scanned}
), seen as (
  select batch_id, serial_number, (count(*) over ())::int as count
  from scanned order by batch_id, serial_number limit 1
)
select s.batch_id as "lastBatch", s.serial_number::text as "lastSerial", s.count as scanned, f.*
from seen s
left join lateral (
  select v.batch_id as "batchId", ${columnsAt(now)} from scanned v ${OWNERS}
  where (${state}::text is null or ${stateAt(now)} = ${state})
    and ${balance} between coalesce(${filters.balanceMin}::numeric, 0)
      and coalesce(${filters.balanceMax}::numeric, 'infinity')
    and v.expires_at between coalesce(${from}::timestamptz, '-infinity')
      and coalesce(${to}::timestamptz, 'infinity')
  order by v.batch_id desc, v.serial_number desc limit ${most.listed}
) f on true`;
}

/** Returns the id of a batch. @throws Problem if no batch has this transaction id */
export async function requireBatchId(db: Queries, transactionId: string): Promise<number> {
  const find = sql`select id from batches where transaction_id = ${transactionId}`;
  return (await requireRow<{ id: number }>(db, find, `batch ${transactionId}`)).id;
}

const COLUMNS = ['serialNumber', 'voucherCode', 'state', 'balance', 'expiresAt', 'merchantId', 'batch'];

/**
 * The limit of searches by code per minute. A search reveals whether a code exists, and support needs no
 * more.
 */
const LOOK_UPS_MAX = 30;

const State = Type.Optional(Word(VOUCHER_STATES, { description: 'Only vouchers in this state.' }));

const Balance = (title: string, description: string) =>
  Type.Optional(Type.Number({ title, minimum: 0, maximum: AMOUNT_MAX, description, examples: [25] }));

const Expiry = (title: string, moment: TString) => Type.Optional(Titled(title, moment));

const FILTERS = {
  merchantId: Type.Optional(MerchantId),
  product: Type.Optional(ProductCode),
  batch: Type.Optional(TransactionId),
  state: State,
  balanceMin: Balance('Balance from', 'Only vouchers with at least this balance.'),
  balanceMax: Balance('Balance to', 'Only vouchers with at most this balance.'),
  expiresFrom: Expiry('Expires from', Start('The first expiry.')),
  expiresTo: Expiry('Expires to', End('The last expiry.')),
};

const PAGED = { ...PAGE, ...FILTERS };

/** Returns a page of vouchers: those of the newest batch first, and in a batch the last ones. */
async function page(caller: Caller, { cursor, limit = 50, ...given }: Static<TObject<typeof PAGED>>) {
  const { readDb, keys, clock } = caller.service;
  const { batch, state, balanceMin, balanceMax, expiresFrom, expiresTo } = given;
  const sought = [state, balanceMin, balanceMax, expiresFrom, expiresTo];
  const isSought = sought.some((each) => each !== undefined);
  const expiry = {
    from: expiresFrom ? await toStart(caller, expiresFrom, 'expiresFrom') : null,
    to: expiresTo ? await toEnd(caller, expiresTo, 'expiresTo') : null,
  };
  const filters = { ...given, expiry };
  const batchId = batch === undefined ? null : await requireBatchId(readDb, batch);
  let place = cursor === undefined ? START : (readCursor(cursor) as unknown as Place);
  const batches = await readDb.query<Batch>(listBatchesOf(filters, batchId, place[0]));
  const found: Listed[] = [];
  let rest: readonly Batch[] = batches;
  let left = isSought ? SCAN_MAX : limit;
  while (rest.length > 0 && left > 0 && found.length < limit) {
    const some = firstOf(rest, left);
    const ids = some.map(({ id }) => id);
    const most = { scanned: left, listed: limit - found.length };
    const rows = await readDb.query<Scanned>(listVoucherRows(ids, place, filters, clock(), most));
    found.push(...rows.filter((row) => row.serialNumber !== null));
    const [seen] = rows;
    if (seen?.scanned === left) place = [seen.lastBatch, seen.lastSerial];
    else rest = rest.slice(some.length);
    left -= seen?.scanned ?? 0;
  }
  const last = found.at(-1);
  const oldest = batches.length === BATCHES_MAX ? batches.at(-1) : undefined;
  let next: Place | undefined = oldest && [oldest.id, '0'];
  if (rest.length > 0) next = place;
  if (last && found.length === limit) next = [last.batchId, last.serialNumber];
  const items = found.map(({ batchId: _, ...row }) => toFound(keys, row));
  return { items, nextCursor: next ? writeCursor(next) : null };
}

const list = reading({
  name: 'voucher.list',
  summary: 'List vouchers, those of the newest batch first',
  description:
    'With a state, a balance or an expiry, a page may contain fewer vouchers than its limit, or none, and still have a ' +
    '`nextCursor`: each page looks through a bounded number of vouchers.',
  path: '/vouchers',
  input: PAGED,
  output: Page(FoundSchema),
  columns: COLUMNS,
  roles: SEE_VOUCHERS,
  run: page,
});

const FIND = {
  ...PAGE,
  code: Type.Optional(
    Type.String({
      pattern: '^[0-9]{12}$',
      description: 'The full code, 12 digits, without the PIN.',
      stdin: true,
    }),
  ),
  masked: Type.Optional(
    Type.String({
      pattern: '^[0-9]{4}\\*{4}[0-9]{4}$',
      description: 'A masked code.',
      examples: ['4829****7641'],
    }),
  ),
  reference: Type.Optional(LookupReference("A merchant's reference, with merchantId.")),
  merchantId: Type.Optional(MerchantId),
  transactionId: Type.Optional(TransactionId),
  batch: Type.Optional(TransactionId),
  state: State,
};

type Found = Static<TObject<typeof FIND>>;

const find = changing({
  name: 'voucher.find',
  title: 'Find by code',
  summary: 'Find vouchers by code, masked code, reference, transaction or batch',
  description: 'Each look-up of a code is recorded in the audit. Each token or user has 30 a minute.',
  path: '/vouchers/find',
  input: FIND,
  output: Page(FoundSchema),
  columns: COLUMNS,
  roles: SEE_VOUCHERS,
  approval: alone('It shows no code, and each search by a code is recorded.'),
  async run(caller, input) {
    const { code, masked, reference, transactionId, batch, state, merchantId } = input;
    const given = [code, masked, reference, transactionId, batch].filter((each) => each !== undefined);
    if (given.length !== 1)
      throw invalid(
        'code',
        'required',
        'or one of `masked`, `reference`, `transactionId` and `batch` is required, and only one',
      );
    if (merchantId !== undefined && reference === undefined)
      throw invalid('merchantId', 'dependent', 'needs `reference`');
    if (state !== undefined && batch === undefined && transactionId === undefined && reference === undefined)
      throw invalid('state', 'dependent', 'needs `batch`');
    if (code !== undefined || masked !== undefined) return byCode(caller, code, masked);
    if (batch !== undefined) return page(caller, input);
    const named = await byDeed(caller, input);
    if (named.batch !== undefined) return page(caller, { ...input, batch: named.batch });
    const items = await findBySerials(caller.service, named.serials);
    return { items: state ? items.filter((each) => each.state === state) : items, nextCursor: null };
  },
});

/** Finds the vouchers of a code, with an entry in the audit. @throws Problem `too-many-requests` */
async function byCode(caller: Caller, code: string | undefined, masked: string | undefined) {
  const { service } = caller;
  const items = await (code === undefined ? findByMask(service, masked ?? '') : findByCode(service, code));
  const after = {
    by: code === undefined ? 'masked code' : 'code',
    found: items.map(({ serialNumber }) => serialNumber),
  };
  const subject = items.length === 1 ? `voucher ${items[0]?.serialNumber}` : 'vouchers';
  const change = { action: 'voucher.find', subject, after, perMinute: LOOK_UPS_MAX };
  await service.db.transaction((tx) => audit(tx, caller, change));
  return { items, nextCursor: null };
}

/** Finds what a reference or a transaction names: single vouchers, or a batch. */
async function byDeed({ service: { readDb } }: Caller, { reference, merchantId, transactionId }: Found) {
  if (reference === undefined) return byTransaction(readDb, transactionId as string);
  if (merchantId === undefined) throw invalid('merchantId', 'required', 'is required with `reference`');
  checkLookupReference(reference);
  const rows = await readDb.query<{ operation: string; serial: string | null; id: string }>(sql`
select operation, serial_number::text as serial, id from claims
where merchant_id = ${toId(merchantId, 'merchantId')} and reference = ${reference}
  and operation in ('redeem', 'activate', 'generate')`);
  return {
    serials: [...new Set(rows.flatMap(({ serial }) => serial ?? []))],
    batch: rows.find(({ operation }) => operation === 'generate')?.id,
  };
}

async function byTransaction(db: Queries, id: string) {
  const [row] = await db.query<{ serial: string | null }>(sql`
select serial_number::text as serial from journal where id = ${id}::uuid`);
  if (row?.serial) return { serials: [row.serial], batch: undefined };
  const [batch] = await db.query(sql`select from batches where transaction_id = ${id}`);
  if (!batch) throw notFound(`transaction ${id}`);
  return { serials: [], batch: id };
}

export const OPERATIONS = tableOf(list, find);
