import type { Context } from '../context.ts';
import { AGAIN, gather } from '../db/gather.ts';
import { plainArray, textArray } from '../db/sql.ts';
import { ensureAccounts } from '../ledger/accounts.ts';
import { newId } from '../ledger/id.ts';
import { checkReference } from '../ledger/reference.ts';
import type { Outcome, Transaction } from '../ledger/transactions.ts';
import { permitAmount } from '../merchants/permit.ts';
import { decimalsOf, toPositiveUnits } from '../money.ts';
import type { RefusalCode } from '../refusal.ts';
import { lookUp } from '../vouchers/look-up.ts';
import { REDEEM } from './redeem.queries.ts';

export type Redeem = {
  /** 12 digits. */
  readonly code: string;
  /** 4 digits. */
  readonly pin: string;
  /** In major units, as the JSON number says. */
  readonly amount: number;
  readonly reference?: string | undefined;
};

type Request = Redeem & {
  readonly context: Context;
  readonly id: string;
  readonly codeKey: string;
  readonly pinKey: string;
  readonly amountUnits: bigint;
};

type Row = {
  ord: number;
  outcome: RefusalCode | 'ok' | 'replay' | 'again' | 'account';
  id: string;
  occurred_at: Date;
  serial_number: bigint;
  amount_minor: bigint;
  currency: string;
};

const redeemGathered = gather<Request, Outcome | RefusalCode>({
  callerOf: ({ context }) => context.merchant.id,
  keysOf({ codeKey, reference, context }) {
    return reference === undefined ? [codeKey] : [codeKey, `${context.merchant.id} ${reference}`];
  },
  async run(db, requests) {
    const rows = await db.hot<Row>(REDEEM, [
      plainArray(requests.map(({ context }) => context.merchant.id)),
      plainArray(requests.map(({ codeKey }) => codeKey)),
      plainArray(requests.map(({ pinKey }) => pinKey)),
      plainArray(requests.map(({ amountUnits }) => amountUnits)),
      textArray(requests.map(({ reference }) => reference ?? null)),
      plainArray(requests.map(({ id }) => id)),
      requests.at(-1)?.context.now,
    ]);
    const answers: (Outcome | RefusalCode | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
    for (const row of rows) {
      const position = row.ord - 1;
      const request = requests[position] as Request;
      if (row.outcome === 'account') await ensureAccounts(db, request.context.merchant.id, row.currency);
      else if (row.outcome === 'ok') answers[position] = { transaction: toRedemption(request, row), replayed: false };
      else if (row.outcome === 'replay')
        answers[position] = { transaction: toRedemption(request, row), replayed: true };
      else if (row.outcome !== 'again') answers[position] = row.outcome;
    }
    return answers;
  },
});

function toRedemption({ reference, code }: Request, row: Row): Transaction {
  return {
    transactionId: row.id,
    type: 'REDEMPTION',
    amount: { minor: row.amount_minor, decimals: decimalsOf(row.currency) ?? 0 },
    timestamp: row.occurred_at,
    reference: reference ?? null,
    code,
    serialNumber: row.serial_number,
    refundStatus: null,
    note: null,
  };
}

/**
 * Redeems an amount from a voucher: the whole amount or nothing. The same request under its reference again is a replay.
 * @throws Refusal `18`, `13`, `03`, `94`, `14`, `75`, `55`, `44`, `43`, `54`, `40`, `47`, `42`, `51`; `91` under overload
 */
export async function redeem(context: Context, request: Redeem): Promise<Outcome> {
  if (request.reference !== undefined) checkReference(request.reference);
  const amountUnits = toPositiveUnits(request.amount);
  await permitAmount(context, 'redeem', amountUnits);
  const { service, now } = context;
  const id = newId(now);
  return lookUp(context, request, ({ codeKey, pinKey }) =>
    redeemGathered(service.db, { ...request, context, amountUnits, id, codeKey, pinKey }),
  );
}
