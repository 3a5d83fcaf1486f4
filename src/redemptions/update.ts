import type { Context } from '../context.ts';
import { AGAIN, gather } from '../db/gather.ts';
import { plainArray, textArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { checkLookupReference, checkReference } from '../ledger/reference.ts';
import { type RedemptionUpdate, type TransactionRow, toTransaction } from '../ledger/transactions.ts';
import { permitAmount } from '../merchants/permit.ts';
import { toUnits } from '../money.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import type { KeyRing } from '../secrets.ts';
import { FIND_UPDATE, UPDATE_REDEMPTION } from './update.queries.ts';

type Update = { readonly context: Context; readonly reference: string };
type Request = Update & { readonly amountUnits: bigint; readonly reversalId: string; readonly newId: string };

type Row = {
  ord: number;
  outcome: RefusalCode | 'ok' | 'again';
  original_id: string;
  original_minor: bigint;
  original_at: Date;
  original_reference: string | null;
  serial_number: bigint;
  sealed: Buffer;
  decimals: number;
  reversal_id: string;
  updated_at: Date;
  new_id: string | null;
  new_minor: bigint;
};

function toUpdate(keys: KeyRing, reference: string, row: Row): RedemptionUpdate {
  const { decimals, serial_number, sealed, original_id, updated_at } = row;
  const common = { decimals, serial_number, sealed };
  const named = (prefix: string) => (row.original_reference === null ? null : prefix + row.original_reference);
  const made = { ...common, original_id, occurred_at: updated_at, canceled: false };
  const original: TransactionRow = {
    ...common,
    id: original_id,
    kind: 'REDEMPTION',
    amount_minor: row.original_minor,
    occurred_at: row.original_at,
    reference: row.original_reference,
    original_id: null,
    canceled: true,
  };
  const reversal: TransactionRow = {
    ...made,
    id: row.reversal_id,
    kind: 'REDEMPTION_REVERSAL',
    amount_minor: row.original_minor,
    reference: named('CANCEL-'),
  };
  const renewed: TransactionRow | null =
    row.new_id === null
      ? null
      : { ...made, id: row.new_id, kind: 'REDEMPTION', amount_minor: row.new_minor, reference: named('NEW-') };
  return {
    original: toTransaction(keys, original),
    cancellation: toTransaction(keys, reversal),
    replacement: renewed && toTransaction(keys, renewed),
    reference,
  };
}

const updateGathered = gather<Request, RedemptionUpdate | RefusalCode>({
  callerOf: ({ context }) => context.merchant.id,
  keysOf: ({ context, reference }) => [`${context.merchant.id} ${reference}`],
  async run(db, requests) {
    const rows = await db.hot<Row>(UPDATE_REDEMPTION, [
      plainArray(requests.map(({ context }) => context.merchant.id)),
      textArray(requests.map(({ reference }) => reference)),
      plainArray(requests.map(({ amountUnits }) => amountUnits)),
      plainArray(requests.map(({ reversalId }) => reversalId)),
      plainArray(requests.map((request) => request.newId)),
      requests[requests.length - 1]?.context.now,
    ]);
    const answers: (RedemptionUpdate | RefusalCode | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
    for (const row of rows) {
      const { context, reference } = requests[row.ord - 1] as Request;
      if (row.outcome === 'ok') answers[row.ord - 1] = toUpdate(context.service.keys, reference, row);
      else if (row.outcome !== 'again') answers[row.ord - 1] = row.outcome;
    }
    return answers;
  },
});

const findGathered = gather<Update, RedemptionUpdate | undefined>({
  callerOf: ({ context }) => context.merchant.id,
  keysOf: () => [],
  async run(db, requests) {
    const rows = await db.hot<Row>(FIND_UPDATE, [
      plainArray(requests.map(({ context }) => context.merchant.id)),
      textArray(requests.map(({ reference }) => reference)),
    ]);
    const found = new Map(rows.map((row) => [row.ord, row]));
    return requests.map(({ context, reference }, index) => {
      const row = found.get(index + 1);
      return row && toUpdate(context.service.keys, reference, row);
    });
  },
});

/**
 * Updates a redemption of the merchant, once: the original is canceled and reversed, and a new redemption of `amountUsed`
 * stands in its place, or none where that is 0. All of it or nothing.
 * @param request.reference of the redemption, or its transaction id where it has none
 * @param request.amountUsed in major units, 0 or more
 * @throws Refusal `18`, `13`, `03`, `60`, `44`, `43`, `54`, `58` (with the first update as its data), `51`
 */
export async function updateRedemption(
  context: Context,
  { reference, amountUsed }: { readonly reference: string; readonly amountUsed: number },
): Promise<RedemptionUpdate> {
  checkReference(reference);
  const amountUnits = toUnits(amountUsed);
  if (amountUnits < 0n) throw new Refusal('13');
  await permitAmount(context, 'update-redemption', amountUnits);
  const { db } = context.service;
  const reversalId = newId(context.now);
  const answer = await updateGathered(db, { context, reference, amountUnits, reversalId, newId: newId(context.now) });
  if (answer === '58') throw new Refusal('58', { data: await findGathered(db, { context, reference }) });
  if (typeof answer === 'string') throw new Refusal(answer);
  return answer;
}

/**
 * The update of a redemption, by the redemption's reference (or transaction id).
 * @throws Refusal `18`, `60` where there is none
 */
export async function findUpdate(context: Context, reference: string): Promise<RedemptionUpdate> {
  checkLookupReference(reference);
  const found = await findGathered(context.service.db, { context, reference });
  if (!found) throw new Refusal('60');
  return found;
}
