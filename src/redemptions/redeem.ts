import { type Context, isSharded } from '../context.ts';
import { AGAIN, type Operation } from '../db/operation.ts';
import { type HotStatement, plainArray, textArray } from '../db/sql.ts';
import type { LookUp } from '../keyring/ring.ts';
import { checkReference, claimReference, findVoucher } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { ensureAccounts } from '../ledger/journal.ts';
import type { Outcome, Transaction } from '../ledger/transactions.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { toPositiveUnits } from '../money.ts';
import type { RefusalCode } from '../refusal.ts';
import { lookUp } from '../vouchers/look-up.ts';

/** Decides and books a list of redemptions: sql/006-redeem.sql, the heart of the program. */
export const REDEEM: HotStatement = {
  name: 'redeem',
  text: 'select * from redeem($1, $2, $3, $4, $5, $6, $7, $8, $9)',
};

export type Redeem = {
  /** The code: 12 digits. */
  readonly code: string;
  /** The PIN: 4 digits. */
  readonly pin: string;
  /** The amount in major units, as in the JSON. */
  readonly amount: number;
  readonly reference?: string | undefined;
};

type Request = Redeem &
  LookUp & {
    readonly context: Context;
    /** The id of the transaction; on several shards, that of its claim. */
    readonly id: string;
    readonly amountUnits: bigint;
  };

type Row = {
  readonly ord: number;
  /**
   * `account`: the merchant has no settlement account in this currency yet. `void`: another request has taken
   * the claim over.
   */
  readonly outcome: RefusalCode | 'ok' | 'replay' | 'account' | 'void';
  readonly id: string;
  readonly occurred_at: Date;
  readonly serial_number: bigint;
  readonly amount_minor: bigint;
  readonly decimals: number;
  readonly currency: string;
};

const redemptions: Operation<Request, Row, Row> = {
  merchantOf: ({ context }) => context.merchant.id,
  keysOf({ codeKey, reference, context }) {
    return reference === undefined ? [codeKey] : [codeKey, `${context.merchant.id} ${reference}`];
  },
  async run(db, requests, bucket) {
    const { context } = requests.at(-1) as Request;
    const rows = await db.hot<Row>(
      REDEEM,
      [
        bucket,
        plainArray(requests.map((request) => request.context.merchant.id)),
        plainArray(requests.map(({ codeKey }) => codeKey)),
        plainArray(requests.map(({ pinKey }) => pinKey)),
        plainArray(requests.map(({ amountUnits }) => amountUnits)),
        textArray(requests.map(({ reference }) => reference ?? null)),
        plainArray(requests.map(({ id }) => id)),
        isSharded(context.service),
        context.service.clock(),
      ],
      bucket,
    );
    const found: (Row | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
    for (const row of rows) found[row.ord - 1] = row;
    return found;
  },
  answer: (_, row) => row,
};

/**
 * Redeems an amount from a voucher: the whole amount or nothing. The same request again under its reference
 * is a replay.
 * @throws Refusal `18`, `13`, `03`, `94`, `14`, `75`, `55`, `44`, `43`, `54`, `40`, `47`, `42`, `51`;
 *   `91` under overload
 */
export async function redeem(context: Context, request: Redeem): Promise<Outcome> {
  if (request.reference !== undefined) checkReference(request.reference);
  const amountUnits = toPositiveUnits(request.amount);
  await permitAmount(context, 'redeem', amountUnits);
  const id = newId(context.now);
  const asked = { operation: 'redeem', amountUnits, reference: request.reference ?? null } as const;
  return lookUp(
    context,
    request,
    async (keys) => {
      const wanted = { ...request, ...keys, context, amountUnits, id };
      const row = await (isSharded(context.service) ? claimAndBook(wanted) : book(wanted));
      if (row === '94') return row;
      const { outcome } = row;
      if (outcome === 'ok' || outcome === 'replay')
        return { transaction: toRedemption(request, row), replayed: outcome === 'replay' };
      return outcome as RefusalCode;
    },
    asked,
  );
}

/** Books a redemption, or finds the reason for its decline. A missing settlement account is created first. */
async function book(request: Request): Promise<Row> {
  const { service, merchant } = request.context;
  const bucket = service.buckets.ofSlot(service.keys.slotOf(request.code));
  for (;;) {
    const row = await service.batcher.add(redemptions, bucket, request);
    if (row.outcome !== 'account') return row;
    await ensureAccounts(service.db, merchant.id, row.currency);
  }
}

/**
 * On several shards: claims the reference in its bucket, then books under the claim's id in the bucket of the
 * voucher.
 */
async function claimAndBook(request: Request): Promise<Row | '94'> {
  const { context, reference, code, codeKey, amountUnits } = request;
  const { service, merchant, now } = context;
  if (reference === undefined) return book(request);
  const bucket = service.buckets.ofSlot(service.keys.slotOf(code));
  const voucher = await findVoucher(service, bucket, { codeKey, serialNumber: null });
  const serialNumber = voucher?.serial_number ?? null;
  const claim = {
    merchantId: merchant.id,
    operation: 'redeem',
    reference,
    serialNumber,
    fingerprint: String(amountUnits),
  } as const;
  const voided = new Set<string>();
  for (let { id } = request; ; id = newId(now)) {
    const claimed = await claimReference(service, { ...claim, id }, voided);
    if (claimed === 'used') return '94';
    // An unknown code takes the same path as any other, so that the time reveals nothing.
    const row = await book({ ...request, id: claimed ?? id });
    if (row.outcome !== 'void') return row;
    voided.add(claimed ?? id);
  }
}

function toRedemption({ reference, code }: Redeem, row: Row): Transaction {
  return {
    transactionId: row.id,
    type: 'REDEMPTION',
    amount: { minor: row.amount_minor, decimals: row.decimals },
    timestamp: row.occurred_at,
    reference: reference ?? null,
    code,
    serialNumber: row.serial_number,
    refundStatus: null,
    note: null,
  };
}
