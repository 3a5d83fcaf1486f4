import type { Queries } from '../db/pool.ts';
import type { Money } from '../money.ts';
import { Refusal } from '../refusal.ts';
import {
  findDocuments,
  findSettlement,
  listAllDisputes,
  listDisputes,
  listDue,
  listPayouts,
  listSettlementRows,
  type SettlementFilter,
  type SettlementRow,
} from './queries.ts';
import { listStoredLines } from './terms.queries.ts';

/** The debt to a merchant for an interval of days, and its payment. Days are those of the books. */
export type Settlement = {
  readonly id: number;
  readonly merchantId: number;
  readonly merchant: string;
  readonly state: SettlementRow['state'];
  /** Merchant, year and number, such as `5-2026-0001`; null for a draft. */
  readonly number: string | null;
  readonly currency: string;
  /** The interval includes both days. */
  readonly firstDay: string;
  readonly lastDay: string;
  readonly startsAt: Date;
  readonly endsAt: Date;
  readonly zone: string;
  /** The balance of the settlement account before the first day. */
  readonly carried: Money;
  /** The balance at the end of the last day. */
  readonly closing: Money;
  /** The unpaid amount of earlier settlements at that time. */
  readonly outstanding: Money;
  /** The amount to pay: 0 if it is below the least payout, and is therefore carried over. */
  readonly payable: Money;
  readonly dueOn: string;
  readonly closingHash: string;
  readonly madeBy: string;
  readonly madeAt: Date;
  readonly approvedBy: string | null;
  readonly approvedAt: Date | null;
  readonly contentHash: string | null;
  /** The payout file that pays it. */
  readonly fileId: number | null;
  /** The merchant's disputes that nobody has answered. */
  readonly openDisputes: number;
};

/** A sum of journal rows. A positive amount increases the debt to the merchant. */
export type Line = {
  /** Null if the line belongs to no product. */
  readonly product: string | null;
  readonly productName: string | null;
  /** The kind in the journal. `EARLIER_REVERSAL` means reversals of redemptions before the first day. */
  readonly kind: string;
  readonly rows: number;
  readonly amount: Money;
};

export type Payout = {
  readonly transactionId: string;
  readonly kind: 'PAYOUT' | 'PAYOUT_RETURN';
  readonly amount: Money;
  readonly bankReference: string;
  readonly valueDate: string;
  readonly occurredAt: Date;
};

export type Dispute = {
  readonly id: number;
  readonly line: string | null;
  readonly comment: string;
  readonly by: string;
  readonly at: Date;
  readonly state: 'OPEN' | 'ANSWERED';
  readonly answer: string | null;
  readonly answeredBy: string | null;
  readonly answeredAt: Date | null;
};

const NUMBER_DIGITS = 4;

/** Returns the number of a settlement as text. */
export function numberText(merchantId: number, year: number, number: number): string {
  return `${merchantId}-${year}-${String(number).padStart(NUMBER_DIGITS, '0')}`;
}

function toSettlement(row: SettlementRow): Settlement {
  const money = (minor: bigint) => ({ minor, decimals: row.decimals });
  const { year, number } = row;
  return {
    id: row.id,
    merchantId: row.merchant_id,
    merchant: row.merchant,
    state: row.state,
    number: year === null || number === null ? null : numberText(row.merchant_id, year, number),
    currency: row.currency,
    firstDay: row.first_day,
    lastDay: row.last_day,
    startsAt: row.starts_at,
    endsAt: row.ends_at,
    zone: row.zone,
    carried: money(row.carried_minor),
    closing: money(row.closing_minor),
    outstanding: money(row.outstanding_minor),
    payable: money(row.payable_minor),
    dueOn: row.due_on,
    closingHash: row.closing_hash.toString('hex'),
    madeBy: row.made_by,
    madeAt: row.made_at,
    approvedBy: row.approved_by,
    approvedAt: row.approved_at,
    contentHash: row.content_hash?.toString('hex') ?? null,
    fileId: row.file_id,
    openDisputes: row.open_disputes,
  };
}

/** Returns a settlement. @throws Refusal `60` */
export async function getSettlement(db: Queries, id: number): Promise<Settlement> {
  const [row] = await db.query<SettlementRow>(findSettlement(id));
  if (!row) throw new Refusal('60', { message: `Not found: there is no settlement ${id}` });
  return toSettlement(row);
}

/** Returns a settlement that its merchant may see; undefined for a draft. */
export async function findVisibleSettlement(db: Queries, id: number): Promise<Settlement | undefined> {
  const [row] = await db.query<SettlementRow>(findSettlement(id));
  return row && row.state !== 'DRAFT' ? toSettlement(row) : undefined;
}

/**
 * Returns a page of settlements, newest first.
 * @param before the page begins before this id; null: the first page
 */
export async function pageOfSettlements(
  db: Queries,
  filter: SettlementFilter,
  before: number | null,
  count: number,
): Promise<Settlement[]> {
  return (await db.query<SettlementRow>(listSettlementRows(filter, before, count))).map(toSettlement);
}

/**
 * Returns the ids of the settlements that have to be paid by a day: approved, or returned by the bank, and in
 * no payout file.
 */
export async function dueSettlements(db: Queries, by: string): Promise<number[]> {
  return (await db.query<{ id: number }>(listDue(by))).map(({ id }) => id);
}

type StoredLine = {
  product: string | null;
  name: string | null;
  kind: string;
  is_earlier: boolean;
  rows: bigint;
  amount_minor: bigint;
};

export async function linesOf(db: Queries, { id, payable }: Settlement): Promise<Line[]> {
  return (await db.query<StoredLine>(listStoredLines(id))).map((row) => ({
    product: row.product,
    productName: row.name,
    kind: row.is_earlier ? 'EARLIER_REVERSAL' : row.kind,
    rows: Number(row.rows),
    amount: { minor: row.amount_minor, decimals: payable.decimals },
  }));
}

type PayoutRow = {
  id: string;
  kind: Payout['kind'];
  amount_minor: bigint;
  bank_reference: string;
  value_date: string;
  occurred_at: Date;
};

export async function payoutsOf(db: Queries, { id, payable }: Settlement): Promise<Payout[]> {
  return (await db.query<PayoutRow>(listPayouts(id))).map((row) => ({
    transactionId: row.id,
    kind: row.kind,
    amount: { minor: row.amount_minor, decimals: payable.decimals },
    bankReference: row.bank_reference,
    valueDate: row.value_date,
    occurredAt: row.occurred_at,
  }));
}

type DisputeRow = {
  id: number;
  line: string | null;
  comment: string;
  made_by: string;
  made_at: Date;
  answer: string | null;
  answered_by: string | null;
  answered_at: Date | null;
};

const toDispute = (row: DisputeRow): Dispute => ({
  id: row.id,
  line: row.line,
  comment: row.comment,
  by: row.made_by,
  at: row.made_at,
  state: row.answer === null ? 'OPEN' : 'ANSWERED',
  answer: row.answer,
  answeredBy: row.answered_by,
  answeredAt: row.answered_at,
});

export async function disputesOf(db: Queries, { id }: Settlement): Promise<Dispute[]> {
  return (await db.query<DisputeRow>(listDisputes(id))).map(toDispute);
}

/**
 * Returns a page of disputes, newest first.
 * @param before the page begins before this id; null: the first page
 */
export async function pageOfDisputes(
  db: Queries,
  filter: { readonly merchantId: number | null; readonly open: boolean },
  before: number | null,
  count: number,
): Promise<(Dispute & { settlementId: number; merchantId: number })[]> {
  type Row = DisputeRow & { settlement_id: number; merchant_id: number };
  return (await db.query<Row>(listAllDisputes(filter, before, count))).map((row) => {
    return { ...toDispute(row), settlementId: row.settlement_id, merchantId: row.merchant_id };
  });
}

/** Returns the documents of a settlement as they were frozen at its approval; undefined for a draft. */
export async function documentsOf(
  db: Queries,
  { id }: Settlement,
): Promise<{ csv: string; pdf: Buffer } | undefined> {
  const [row] = await db.query<{ csv: string; pdf: Buffer }>(findDocuments(id));
  return row;
}
