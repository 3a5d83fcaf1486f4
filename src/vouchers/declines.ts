import type { Context, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, textArray } from '../db/sql.ts';
import { idAt, newId } from '../ledger/id.ts';
import type { RefusalCode } from '../refusal.ts';
import { DAY_MS, isoDay } from '../time.ts';
import {
  addDeclineCounts,
  commitWithoutWaiting,
  dropOldDeclines,
  insertDeclines,
  listCurrencies,
  listDeclineRows,
  listVoucherDeclines,
  sumDeclineCounts,
} from './queries.ts';

/**
 * Stores declines: requests that named a voucher and were refused. They are kept for 90 days for support, and
 * never contain a code or a PIN. Tills do not wait for them: they are collected, and written in bulk a moment
 * later. A crash loses at most that moment.
 */

/** The content of a request that named a voucher. */
export type Asked = {
  readonly operation: 'activate' | 'balance' | 'redeem';
  /** In ten-thousandths of a major unit; null if the request has no amount. */
  readonly amountUnits: bigint | null;
  readonly reference: string | null;
};

type Decline = Asked & {
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
  waiting: Decline[];
  /** By day and code: the declines that wait, and those that were dropped. */
  counts: Map<string, number>;
  dropped: number;
  timer: NodeJS.Timeout | undefined;
};

const nothing = (): Collected => ({ waiting: [], counts: new Map(), dropped: 0, timer: undefined });

const collections = new WeakMap<Service, Collected>();

function collectionOf(service: Service): Collected {
  let collected = collections.get(service);
  if (!collected) {
    collected = nothing();
    collections.set(service, collected);
  }
  return collected;
}

/** Adds a decline. It needs no statement and does not wait. */
export function recordDecline(
  { service, merchant, keyId, now }: Context,
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
  // Its time is read from the id. Another id may be ahead, since a clock was.
  const id = idAt(newId(now), now);
  collected.waiting.push({ ...asked, ...named, id, merchantId: merchant.id, keyId, code });
}

/**
 * Writes the declines collected so far. If they cannot be written, they are lost: nothing depends on them.
 */
export async function flushDeclines(service: Service): Promise<void> {
  const collected = collectionOf(service);
  clearTimeout(collected.timer);
  const { waiting, counts, dropped } = collected;
  Object.assign(collected, nothing());
  if (dropped > 0) service.log.warn({ dropped }, 'declines were not kept: too many at once');
  if (waiting.length === 0) return;
  try {
    const days = [...counts.keys()].map((each) => each.split(' '));
    await service.db.transaction(async (tx) => {
      await tx.query(commitWithoutWaiting);
      await tx.query(insertDeclines(columnsOf(service, waiting)));
      await tx.query(
        addDeclineCounts(
          textArray(days.map(([day = '']) => day)),
          textArray(days.map(([, code = '']) => code)),
          plainArray([...counts.values()]),
        ),
      );
    });
  } catch (error) {
    service.log.warn({ declines: waiting.length, error: (error as Error).message }, 'declines were not kept');
  }
}

function columnsOf({ keys }: Service, declines: readonly Decline[]) {
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

export type DeclineInfo = {
  readonly id: string;
  readonly at: Date;
  readonly serialNumber: bigint | null;
  readonly merchantId: number;
  /** The API key of the request. */
  readonly keyId: string;
  readonly operation: Asked['operation'];
  readonly code: RefusalCode;
  /** In major units. */
  readonly amount: number | null;
  readonly reference: string | null;
};

type Row = {
  id: string;
  serial_number?: bigint | null;
  merchant_id: number;
  key_id: string;
  operation: Asked['operation'];
  code: RefusalCode;
  amount_units: bigint | null;
  reference: string | null;
};

function toInfo(row: Row): DeclineInfo {
  return {
    id: row.id,
    at: new Date(Number.parseInt(row.id.replace('-', '').slice(0, 12), 16)),
    serialNumber: row.serial_number ?? null,
    merchantId: row.merchant_id,
    keyId: row.key_id,
    operation: row.operation,
    code: row.code,
    amount: row.amount_units === null ? null : Number(row.amount_units) / 10_000,
    reference: row.reference,
  };
}

/** Lists the newest declines of a voucher, newest first. */
export async function declinesOf(db: Queries, serialNumber: bigint, limit: number): Promise<DeclineInfo[]> {
  return (await db.query<Row>(listVoucherDeclines(serialNumber, limit))).map(toInfo);
}

/**
 * Returns a page of declines, newest first, before an id, with the currencies of the vouchers. A request
 * names no currency: its amount is in that of the voucher, which is null if the code is unknown.
 */
export async function pageOfDeclines(
  db: Queries,
  filter: {
    readonly merchantId: number | null;
    readonly serialNumber: bigint | null;
    readonly without: readonly string[];
  },
  before: string,
  limit: number,
): Promise<(DeclineInfo & { readonly currency: string | null })[]> {
  const { merchantId, serialNumber, without } = filter;
  const rows = await db.query<Row>(listDeclineRows(merchantId, serialNumber, without, before, limit));
  const declines = rows.map(toInfo);
  const serials = [...new Set(declines.flatMap(({ serialNumber }) => serialNumber ?? []))];
  const vouchers = await db.query<{ serial_number: bigint; currency: string }>(
    listCurrencies(plainArray(serials)),
  );
  const currencies = new Map(vouchers.map((each) => [each.serial_number, each.currency]));
  return declines.map((each) => ({ ...each, currency: currencies.get(each.serialNumber ?? 0n) ?? null }));
}

/** Counts declines from one UTC day to another, by code, the most frequent first. */
export function countDeclines(
  db: Queries,
  from: string,
  to: string,
): Promise<{ code: RefusalCode; declines: bigint }[]> {
  return db.query(sumDeclineCounts(from, to));
}

/** Drops declines that are older than 90 days, month by month. */
export async function dropDeclines({ db, clock }: Service): Promise<void> {
  const keptFrom = new Date(clock().getTime() - KEEP_DAYS * DAY_MS);
  while ((await db.query<{ month: string | null }>(dropOldDeclines(keptFrom)))[0]?.month);
}
