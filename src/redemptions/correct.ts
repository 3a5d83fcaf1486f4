import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { toSum, unitOf } from '../money.ts';
import { ABOVE_LIMIT, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import { Line, minorOf, requireDecimals, TransactionId } from '../schema.ts';
import { showTransaction, type Transaction, TransactionSchema } from '../transactions/transactions.ts';

/** The correction of a redemption by the operator, on behalf of its merchant. */

type Redemption = {
  readonly id: string;
  readonly bucket: number;
  readonly merchantId: number;
  readonly serialNumber: bigint;
  readonly amount: bigint;
  readonly currency: string;
};

/** Returns a redemption by its transaction id. @throws Refusal `60` */
export async function getRedemption({ service }: Operator, transactionId: string): Promise<Redemption> {
  const [redemption] = await service.db.query<Redemption>(sql`
select id, bucket, merchant_id as "merchantId", serial_number as "serialNumber", amount_minor as amount, currency
from journal where id = ${transactionId}::uuid and kind = 'REDEMPTION' and original_id is null`);
  if (!redemption)
    throw new Refusal('60', { message: 'Redemption not found: no redemption has this transaction id' });
  return redemption;
}

/** The reversal, and the redemption that replaces the first one (null after a full reversal). */
type Corrected = {
  readonly transactionId: string;
  readonly newId: string | null;
  /** Whether an earlier request has made the same correction. */
  readonly replayed: boolean;
};

/**
 * Corrects the amount of a redemption on a merchant's behalf, like the merchant's own update: once, and in
 * one step. The same correction again returns the first result.
 * @param amountMinor 0 reverses it in full
 * @throws Refusal `30` without a reason; `44`, `43`, `54`, `58`, `51`
 */
export async function correctRedemption(
  operator: Operator,
  redemption: Redemption,
  amountMinor: bigint,
): Promise<Corrected> {
  const { service, actor } = operator;
  if (actor.reason === null)
    throw new Refusal('30', { message: 'Invalid request: a correction needs a reason (--reason)' });
  const { id, currency, amount } = redemption;
  const decimals = requireDecimals(currency);
  const merchant = `merchant ${redemption.merchantId}`;
  const difference = amountMinor - amount;
  const sum = (minor: bigint) => toSum(currency, minor);
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const made = await update(operator, tx, redemption, amountMinor * unitOf(decimals));
      const { outcome, transactionId, newId } = made;
      const replayed = outcome === '58' && made.amount === amountMinor;
      const corrected = { transactionId, newId, replayed };
      if (replayed) return corrected;
      if (outcome !== 'ok') throw new Refusal(outcome as RefusalCode);
      await audit(tx, operator, {
        action: 'redemption.correct',
        subject: `voucher ${redemption.serialNumber}`,
        before: { redemption: id, amount: sum(amount) },
        after: { amount: sum(amountMinor), transactionId },
        moved: [{ currency, minor: difference < 0n ? -difference : difference, subjects: [merchant] }],
      });
      return corrected;
    }),
  );
}

type Row = {
  readonly outcome: RefusalCode | 'ok' | 'again';
  readonly transactionId: string;
  readonly newId: string | null;
  readonly amount: bigint;
};

/** Updates the redemption like its merchant (sql/009-update-redemption.sql), in this transaction. */
async function update(
  { service }: Operator,
  tx: Queries,
  { id, bucket, merchantId }: Redemption,
  amountUnits: bigint,
): Promise<Row> {
  const now = service.clock();
  const [row] = await tx.query<Row>(sql`
select outcome, reversal_id as "transactionId", new_id as "newId", new_minor as amount
from update_redemptions(${bucket}, array[${merchantId}::int], array[null::text], null,
  array[${id}::uuid], array[${amountUnits}::bigint], array[${newId(now)}::uuid], array[${newId(now)}::uuid],
  array[${newId(now)}::uuid], null, ${now})`);
  if (!row) throw new Error('a correction has no outcome');
  return row;
}

const correct = changing({
  name: 'redemption.correct',
  summary: 'Correct a redemption on behalf of its merchant, once: another amount, or 0 for a full reversal',
  path: '/redemptions/:transactionId/correct',
  input: {
    transactionId: TransactionId,
    amount: Type.Number({
      minimum: 0,
      description: 'The right amount of the redemption, in major units; 0 reverses it.',
      examples: [7.5],
    }),
    reason: Line(500, 'Why, for the audit.', 'The cashier mistyped the amount.'),
  },
  output: Type.Object({
    original: TransactionSchema,
    reversal: TransactionSchema,
    replacement: Type.Unsafe<Transaction | null>({ ...TransactionSchema, type: ['object', 'null'] }),
  }),
  roles: MONEY,
  approval: twoPeople({
    why: 'It takes money from a merchant, or gives it more.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Correct a redemption by {merchant} of voucher {voucher}: {before} → {after}',
    async of(asked) {
      const { transactionId } = asked.input;
      const { before, after } = changeIn(asked);
      const { merchantId, serialNumber } = await getRedemption(asked.caller, transactionId);
      return {
        ...{ merchant: await merchantNamed(asked, merchantId), voucher: String(serialNumber) },
        ...{ before: before['amount'], after: after['amount'], link: `/transactions/${transactionId}` },
      };
    },
  },
  risk: 'step-up',
  async run(caller, { transactionId, amount }) {
    const { service } = caller;
    const redemption = await getRedemption(caller, transactionId);
    const amountMinor = amount === 0 ? 0n : minorOf(amount, redemption.currency, 'amount');
    const { transactionId: reversalId, newId } = await correctRedemption(caller, redemption, amountMinor);
    return {
      original: await showTransaction(service, transactionId),
      reversal: await showTransaction(service, reversalId),
      replacement: newId === null ? null : await showTransaction(service, newId),
    };
  },
});

export const OPERATIONS = tableOf(correct);
