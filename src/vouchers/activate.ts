import type { Context } from '../context.ts';
import { AGAIN, gather } from '../db/gather.ts';
import { plainArray, textArray } from '../db/sql.ts';
import { ensureAccounts } from '../ledger/accounts.ts';
import { newId } from '../ledger/id.ts';
import { checkReference } from '../ledger/reference.ts';
import type { Outcome, Transaction } from '../ledger/transactions.ts';
import { permitAmount } from '../merchants/permit.ts';
import { toPositiveUnits } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { ACTIVATE } from './activate.queries.ts';
import { lookUp } from './look-up.ts';

export type Activate = {
  /** By code (12 digits) and PIN (4 digits), or by serial number: then only what the merchant generated itself. */
  readonly voucher: { readonly code: string; readonly pin: string } | { readonly serialNumber: number };
  /** In major units; left out: the batch's value, else 5000. */
  readonly value?: number | undefined;
  readonly reference?: string | undefined;
};

type Request = {
  readonly context: Context;
  readonly id: string;
  /** Of the event that tells of a float which this activation makes low. */
  readonly lowId: string;
  readonly codeKey: string | null;
  readonly pinKey: string | null;
  readonly serialNumber: number | null;
  readonly valueUnits: bigint | null;
  readonly reference: string | undefined;
};

type Row = {
  ord: number;
  outcome: RefusalCode | 'ok' | 'replay' | 'again' | 'account';
  prior_id: string | null;
  prior_at: Date | null;
  serial_number: bigint;
  amount_minor: bigint;
  decimals: number;
  currency: string;
  sealed: Buffer;
};

const activateGathered = gather<Request, Outcome | RefusalCode>({
  callerOf: ({ context }) => context.merchant.id,
  keysOf({ codeKey, serialNumber, reference, context }) {
    const voucher = codeKey ?? String(serialNumber);
    return reference === undefined ? [voucher] : [voucher, `${context.merchant.id} ${reference}`];
  },
  async run(db, requests) {
    const now = requests[requests.length - 1]?.context.now;
    const rows = await db.hot<Row>(ACTIVATE, [
      plainArray(requests.map(({ context }) => context.merchant.id)),
      plainArray(requests.map(({ codeKey }) => codeKey)),
      plainArray(requests.map(({ pinKey }) => pinKey)),
      plainArray(requests.map(({ serialNumber }) => serialNumber)),
      plainArray(requests.map(({ valueUnits }) => valueUnits)),
      textArray(requests.map(({ reference }) => reference ?? null)),
      plainArray(requests.map(({ id }) => id)),
      now,
      plainArray(requests.map(({ lowId }) => lowId)),
    ]);
    const answers: (Outcome | RefusalCode | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
    for (const row of rows) {
      const request = requests[row.ord - 1] as Request;
      if (row.outcome === 'account') await ensureAccounts(db, request.context.merchant.id, row.currency);
      else if (row.outcome === 'ok')
        answers[row.ord - 1] = { transaction: toActivation(request, row, request.id, now as Date), replayed: false };
      else if (row.outcome === 'replay') {
        const transaction = toActivation(request, row, row.prior_id as string, row.prior_at as Date);
        answers[row.ord - 1] = { transaction, replayed: true };
      } else if (row.outcome !== 'again') answers[row.ord - 1] = row.outcome;
    }
    return answers;
  },
});

function toActivation({ context, reference }: Request, row: Row, transactionId: string, timestamp: Date): Transaction {
  return {
    transactionId,
    type: 'ACTIVATION',
    amount: { minor: row.amount_minor, decimals: row.decimals },
    timestamp,
    reference: reference ?? null,
    code: context.service.keys.open(row.serial_number, row.sealed).code,
    serialNumber: row.serial_number,
    refundStatus: null,
    note: null,
  };
}

/**
 * Activates a voucher, so that it carries its value.
 * @throws Refusal `18`, `13`, `03`, `61`, `94`, `14`, `75`, `55`, `44`, `43`, `54`, `41`, `47`, `50`; `91` under overload
 */
export async function activate(context: Context, { voucher, value, reference }: Activate): Promise<Outcome> {
  if (reference !== undefined) checkReference(reference);
  const valueUnits = value === undefined ? null : toPositiveUnits(value);
  await permitAmount(context, 'activate', valueUnits);
  const { service, now } = context;
  const request = { context, id: newId(now), lowId: newId(now), valueUnits, reference };
  // A serial number is no secret: an unknown one is no guess.
  if ('serialNumber' in voucher) {
    const { serialNumber } = voucher;
    const outcome = await activateGathered(service.db, { ...request, serialNumber, codeKey: null, pinKey: null });
    if (typeof outcome === 'string') throw new Refusal(outcome);
    return outcome;
  }
  return lookUp(context, voucher, ({ codeKey, pinKey }) =>
    activateGathered(service.db, { ...request, serialNumber: null, codeKey, pinKey }),
  );
}
