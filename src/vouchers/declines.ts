import Type, { type Static } from 'typebox';
import { type Context, inOrder, kept, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, sql, textArray } from '../db/sql.ts';
import { idAt, LAST_ID, newId } from '../ledger/id.ts';
import { listing, listingAll } from '../listing.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { type Caller, tableOf } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { invalid } from '../problem.ts';
import type { RefusalCode } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  checkDay,
  Day,
  Major,
  MerchantId,
  Nullable,
  NullableText,
  SerialNumber,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { DAY_MS, isoDay } from '../time.ts';

/**
 * Stores declines: requests that named a voucher and were refused. They are kept for 90 days for support, and
 * never contain a code or a PIN. Tills do not wait for them: they are collected, and written in bulk a moment
 * later. A crash loses at most that moment.
 */

/** The operations that are declined. */
const DECLINED = ['activate', 'balance', 'cash-out', 'redeem'] as const;

/** The content of a request that named a voucher. */
export type Asked = {
  readonly operation: (typeof DECLINED)[number];
  /** In ten-thousandths of a major unit; null if the request has no amount. */
  readonly amountUnits: bigint | null;
  readonly reference: string | null;
};

type Kept = Asked & {
  readonly id: string;
  readonly merchantId: number;
  readonly keyId: string;
  readonly code: RefusalCode;
  readonly serialNumber: bigint | null;
  /** The full code stays in this process until its keyed hash is written. */
  readonly voucherCode: string | null;
};

const FLUSH_MS = 1_000;
/** The most declines that wait to be written. A mass of guesses may cause more: those are only counted. */
const WAITING_MAX = 5_000;
const KEEP_DAYS = 90;

type Collected = {
  waiting: Kept[];
  /** By day and code: the declines that wait, and those that were dropped. */
  counts: Map<string, number>;
  dropped: number;
  timer: NodeJS.Timeout | undefined;
};

const nothing = (): Collected => ({ waiting: [], counts: new Map(), dropped: 0, timer: undefined });

const collectionOf = kept(nothing);

/** Adds a decline to those that are written later. */
export function recordDecline(
  { service, merchant, keyId, now, requestId }: Context,
  asked: Asked,
  code: RefusalCode,
  voucher: { readonly code: string } | { readonly serialNumber: bigint },
): void {
  const collected = collectionOf(service);
  const counted = `${isoDay(now.getTime())} ${code}`;
  collected.counts.set(counted, (collected.counts.get(counted) ?? 0) + 1);
  // The timer does not keep the process alive: when the service closes, it writes the remaining declines.
  collected.timer ??= setTimeout(() => void flushDeclines(service), FLUSH_MS).unref();
  if (collected.waiting.length >= WAITING_MAX) {
    collected.dropped++;
    return;
  }
  const named =
    'code' in voucher
      ? { voucherCode: voucher.code, serialNumber: null }
      : { voucherCode: null, serialNumber: voucher.serialNumber };
  // The time of the decline is read from its id. Another id may be ahead, since a clock was.
  const id = requestId ?? idAt(newId(now), now);
  collected.waiting.push({ ...asked, ...named, id, merchantId: merchant.id, keyId, code });
}

/**
 * Writes the declines collected so far, after those that are being written already. If they cannot be
 * written, they are lost: nothing depends on them.
 */
export const flushDeclines = inOrder(async (service) => {
  const collected = collectionOf(service);
  clearTimeout(collected.timer);
  const { waiting, counts, dropped } = collected;
  Object.assign(collected, nothing());
  if (dropped > 0) service.log.warn({ dropped }, 'declines were not kept: too many at once');
  if (waiting.length === 0) return;
  try {
    const days = [...counts.keys()].map((each) => each.split(' '));
    await service.db.transaction(async (tx) => {
      // The transaction may end before it is on disk, so that commits of tills do not wait for its flush.
      await tx.query(sql`set local synchronous_commit = off`);
      await tx.query(insertDeclines(arraysOf(service, waiting)));
      await tx.query(sql`
insert into decline_counts as c (day, code, declines)
select u.day, u.code, u.declines
from unnest(${textArray(days.map(([day = '']) => day))}::date[],
  ${textArray(days.map(([, code = '']) => code))}::text[], ${plainArray([...counts.values()])}::bigint[])
  as u (day, code, declines)
order by u.day, u.code
on conflict (day, code) do update set declines = c.declines + excluded.declines`);
    });
  } catch (error) {
    service.log.warn({ declines: waiting.length, error: (error as Error).message }, 'declines were not kept');
  }
});

/**
 * Inserts declines, in columns of equal length. A voucher is found by one of two keys of its code, or is
 * given.
 */
export const insertDeclines = (columns: ReturnType<typeof arraysOf>) => sql`
with found as materialized (
  select r.code_key, r.serial_number from vouchers r
  where r.code_key = any (${columns.codeKeys}::uuid[] || ${columns.olderKeys}::uuid[])
)
insert into declines (id, serial_number, merchant_id, key_id, operation, code, amount_units, reference)
select u.id, coalesce(u.serial_number, v.serial_number, o.serial_number), u.merchant_id, u.key_id,
  u.operation, u.code, u.amount_units, u.reference
from unnest(${columns.ids}::uuid[], ${columns.serials}::bigint[], ${columns.codeKeys}::uuid[],
  ${columns.olderKeys}::uuid[], ${columns.merchants}::int[], ${columns.keyIds}::text[],
  ${columns.operations}::text[], ${columns.codes}::text[], ${columns.amounts}::bigint[],
  ${columns.references}::text[])
  as u (id, serial_number, code_key, older_key, merchant_id, key_id, operation, code, amount_units, reference)
left join found v on v.code_key = u.code_key
left join found o on o.code_key = u.older_key
on conflict do nothing`;

function arraysOf({ keys }: Service, declines: readonly Kept[]) {
  const older = (code: string | null) => (code === null ? null : (keys.olderCodeKeys(code).at(-1) ?? null));
  return {
    ids: plainArray(declines.map(({ id }) => id)),
    serials: plainArray(declines.map(({ serialNumber }) => serialNumber)),
    codeKeys: plainArray(
      declines.map(({ voucherCode: code }) => (code === null ? null : keys.codeKey(code))),
    ),
    olderKeys: plainArray(declines.map(({ voucherCode }) => older(voucherCode))),
    merchants: plainArray(declines.map(({ merchantId }) => merchantId)),
    keyIds: textArray(declines.map(({ keyId }) => keyId)),
    operations: textArray(declines.map(({ operation }) => operation)),
    codes: textArray(declines.map(({ code }) => code)),
    amounts: plainArray(declines.map(({ amountUnits }) => amountUnits)),
    references: textArray(declines.map(({ reference }) => reference)),
  };
}

/** Drops declines that are older than 90 days, month by month. */
export async function dropDeclines({ db, clock }: Service): Promise<void> {
  const keptFrom = new Date(clock().getTime() - KEEP_DAYS * DAY_MS);
  const drop = sql`select drop_old_declines(${keptFrom}) as month`;
  while ((await db.query<{ month: string | null }>(drop))[0]?.month);
}

export const DeclineSchema = Type.Object({
  id: Type.String({ description: 'The id of the request, which its answer has as `X-Request-Id`.' }),
  at: Time,
  merchantId: MerchantId,
  keyId: Type.String({ description: 'The API key of the request.' }),
  serialNumber: Nullable(SerialNumber, { description: 'Null where the code is unknown.' }),
  operation: Word(DECLINED),
  code: Type.String({ description: 'The status code of the refusal.' }),
  amount: Nullable(Major()),
  currency: Nullable(Text, {
    description: 'That of the voucher, since a request names none. Null where the code is unknown.',
  }),
  reference: NullableText,
});

export type Decline = Static<typeof DeclineSchema>;

const RowSchema = Type.Omit(DeclineSchema, ['currency']);
type Row = Static<typeof RowSchema>;

/** The time of a decline is in its id. The amount is in major units: a request names no currency. */
const COLUMNS = columnsOf(RowSchema, undefined, {
  at: sql`to_timestamp(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)`,
  amount: sql`(amount_units / 10000.0)::double precision`,
});

/** Lists the newest declines of a voucher, newest first. */
export function declinesOf(db: Queries, serialNumber: bigint, limit: number): Promise<Row[]> {
  return db.query<Row>(sql`
select ${COLUMNS} from declines where serial_number = ${serialNumber} order by id desc limit ${limit}`);
}

/**
 * Adds the currencies of the vouchers, but for 14: the serial number in such a request may be one of another
 * merchant, which is like one that does not exist.
 */
async function withCurrency(db: Queries, declines: readonly Row[]): Promise<Decline[]> {
  const known = declines.filter(({ code }) => code !== '14');
  const serials = [...new Set(known.flatMap(({ serialNumber }) => serialNumber ?? []))];
  const vouchers = await db.query<{ serial: string; currency: string }>(sql`
select v.serial_number::text as serial, b.currency from vouchers v join batches b on b.id = v.batch_id
where v.serial_number = any (${plainArray(serials)}::bigint[])`);
  const currencies = new Map(vouchers.map(({ serial, currency }) => [serial, currency]));
  const currencyOf = ({ code, serialNumber }: Row) =>
    (code === '14' ? undefined : currencies.get(serialNumber ?? '')) ?? null;
  return declines.map((each) => ({ ...each, currency: currencyOf(each) }));
}

/** The answers that show whether a code exists. An opaque merchant gets 14 instead of each. */
const OF_A_GUESS: readonly string[] = ['14', '55', '75'];

/** Returns a decline as an opaque merchant knows it. */
function withoutCode(decline: Decline): Decline {
  if (!OF_A_GUESS.includes(decline.code)) return decline;
  return { ...decline, code: '14', serialNumber: null, currency: null };
}

/**
 * Returns a request of a merchant that was declined, as the caller may know it.
 * @param id the id of the request
 */
export async function findDecline(caller: Caller, id: string): Promise<Decline | undefined> {
  const { readDb } = caller.service;
  const own = caller.principal.merchantId;
  const found = await readDb.query<Row>(sql`
select ${COLUMNS} from declines
where id = ${id}::uuid and (${own}::integer is null or merchant_id = ${own})`);
  const [decline] = await withCurrency(readDb, found);
  return decline && (await isHidden(caller)) ? withoutCode(decline) : decline;
}

/** Whether the caller is of an opaque merchant. */
async function isHidden(caller: Caller): Promise<boolean> {
  const { merchantId } = caller.principal;
  return merchantId !== null && (await requireMerchant(caller, String(merchantId))).opaque;
}

const list = listing({
  name: 'decline.list',
  summary: 'List requests that named a voucher and were declined, newest first; kept 90 days',
  path: '/declines',
  roles: SEE_VOUCHERS,
  item: DeclineSchema,
  columns: ['at', 'merchantId', 'serialNumber', 'operation', 'code', 'amount', 'reference'],
  filters: { merchantId: Type.Optional(MerchantId), serialNumber: Type.Optional(SerialNumber) },
  async rows(caller, { merchantId, serialNumber }, [before = LAST_ID], count) {
    const { readDb } = caller.service;
    const isOpaque = await isHidden(caller);
    // Even the end of a page would show which voucher a guess was about.
    const without = isOpaque && serialNumber !== undefined ? OF_A_GUESS : [];
    const found = await readDb.query<Row>(sql`
select ${COLUMNS} from declines
where id < ${before}::uuid
  ${merchantId === undefined ? sql`` : sql`and merchant_id = ${toId(merchantId, 'merchantId')}`}
  ${serialNumber === undefined ? sql`` : sql`and serial_number = ${serialNumber}::bigint`}
  ${without.length === 0 ? sql`` : sql`and code <> all (${textArray(without)}::text[])`}
order by id desc limit ${count}`);
    const declines = await withCurrency(readDb, found);
    return isOpaque ? declines.map(withoutCode) : declines;
  },
  position: ({ id }) => [id],
});

/** The number of days that are counted by default. */
const COUNTED_DAYS = 30;

const count = listingAll({
  name: 'decline.count',
  summary: 'Count the declined requests by their code, the most frequent first; kept 90 days',
  description: 'Of the last 30 days unless `from` is given. Both days are included, and are those of UTC.',
  path: '/declines/count',
  input: {
    from: Type.Optional({ ...Day, description: 'The first day.' }),
    to: Type.Optional({ ...Day, description: 'The last day; left out: today.' }),
  },
  item: Type.Object({
    code: Type.String({ description: 'The status code of the refusal.' }),
    declines: Count,
  }),
  roles: SEE_VOUCHERS,
  async rows({ service }, input) {
    checkDay(input.from, 'from');
    checkDay(input.to, 'to');
    const { from, to = isoDay(service.clock().getTime()) } = input;
    if (from !== undefined && to < from) throw invalid('to', 'order', 'comes before `from`');
    return service.readDb.query(sql`
select code, sum(declines)::double precision as declines from decline_counts
where day >= coalesce(${from}::date, ${to}::date - ${COUNTED_DAYS - 1}::integer) and day <= ${to}::date
group by code order by sum(declines) desc, code`);
  },
});

export const declines = { list, count };

export const OPERATIONS = tableOf(list, count);
