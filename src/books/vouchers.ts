import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Context, Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { none } from '../figure.ts';
import type { CodeAndPin } from '../keyring/ring.ts';
import { checkReference } from '../ledger/claims.ts';
import { merchantNamed, permit, requireMerchant } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { ABOVE_LIMIT, type Asked, type Caller, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { Refusal } from '../refusal.ts';
import {
  AMOUNT_MAX,
  Amount,
  Line,
  MerchantId,
  Money,
  minorOf,
  Nullable,
  Reference,
  SerialNumber,
  Text,
} from '../schema.ts';
import { readByPin } from '../vouchers/balance.ts';
import { recordDecline } from '../vouchers/declines.ts';
import { ofVoucher, showVoucher } from '../vouchers/show.ts';
import { type Booked, Booking, moveOnVoucher, type VoucherMove } from './once.ts';

/** The operator's movements to and from single vouchers. */

/**
 * Changes the balance of a voucher by a signed amount, never to a given balance: ADJUSTMENT, from goodwill to
 * the voucher or back.
 * @throws Refusal `30` without a reason; `18`, `94`, `14`, `44`, `54`, `40`, `51`, `13`
 */
export async function adjustVoucher(
  operator: Operator,
  wanted: { readonly serialNumber: bigint; readonly deltaMinor: bigint; readonly reference: string },
): Promise<Booked> {
  if (operator.actor.reason === null)
    throw new Refusal('30', { message: 'Invalid request: an adjustment needs a reason' });
  return moveOnVoucher(operator, {
    ...wanted,
    ...{ kind: 'ADJUSTMENT', operation: 'adjust', merchantId: 0, account: 'GOODWILL' },
    fingerprint: String(wanted.deltaMinor),
    change: { action: 'voucher.adjust' },
  });
}

type CashOut = {
  readonly serialNumber: bigint;
  /** Null pays out the whole balance. */
  readonly amountMinor: bigint | null;
  /** The merchant that paid the cash, or null for the operator. */
  readonly merchantId: number | null;
  readonly reference: string;
};

/**
 * Books a remainder that was paid out in cash: CASH_OUT, from the voucher to the settlement account of the
 * merchant that paid, or to funding.
 * @throws Refusal `18`, `94`, `14`, `44`, `43`, `54`, `40`, `42`, `51`
 */
export function cashOut(operator: Operator, wanted: CashOut): Promise<Booked> {
  return moveOnVoucher(operator, cashOutOf(wanted));
}

function cashOutOf({ amountMinor, ...wanted }: CashOut): VoucherMove {
  const { merchantId } = wanted;
  return {
    ...wanted,
    ...{ kind: 'CASH_OUT', operation: 'cash-out', merchantId: merchantId ?? 0 },
    account: merchantId === null ? 'FUNDING' : 'SETTLEMENT',
    deltaMinor: amountMinor === null ? null : -amountMinor,
    fingerprint: `${amountMinor ?? 'all'} ${merchantId ?? 'operator'}`,
    change: {
      action: 'voucher.cash-out',
      after: merchantId === null ? { paidBy: 'the operator' } : { merchantId },
    },
  };
}

/**
 * Books the whole balance of a voucher as paid out in cash at the till of the context's merchant, if the
 * product allows it for a balance this low (`cashOutBelow`).
 * @throws Refusal `18`, `03`, `14`, `75`, `55`, `94`, `47`, `61`, `44`, `43`, `54`, `40`, `42`
 */
export async function cashOutAtTill(
  operator: Operator,
  context: Context,
  { reference, ...voucher }: CodeAndPin & { readonly reference: string },
): Promise<Booked> {
  checkReference(reference);
  permit(context, 'redeem');
  const { id: merchantId } = context.merchant;
  const asked = { operation: 'cash-out', amountUnits: null, reference } as const;
  const { serialNumber } = await readByPin(context, voucher, asked);
  try {
    return await moveOnVoucher(operator, {
      ...cashOutOf({ serialNumber, amountMinor: null, merchantId, reference }),
      check: (tx, { batchId, balance }) => checkCashOut(tx, batchId, merchantId, balance),
    });
  } catch (error) {
    if (error instanceof Refusal) recordDecline(context, asked, error.code, { serialNumber });
    throw error;
  }
}

/** Checks the rules of a voucher's product for a cash-out at a till. @throws Refusal `47`, `61` */
async function checkCashOut(tx: Queries, batchId: number, merchantId: number, balance: bigint) {
  const [terms] = await tx.query<{ isAccepted: boolean; below: bigint | null; currency: string }>(sql`
select b.scope = 'network' or b.merchant_id = ${merchantId} as "isAccepted",
  p.cash_out_below_minor as below, b.currency
from batches b join products p on p.id = b.product_id where b.id = ${batchId}`);
  if (!terms?.isAccepted) throw new Refusal('47');
  const { below, currency } = terms;
  if (below !== null && balance < below) return;
  const message =
    below === null
      ? 'Amount outside limits: this product is not paid out in cash at a till'
      : `Amount outside limits: a till pays out a balance below ${toSum(currency, below)}`;
  throw new Refusal('61', { message: `${message}; ask the operator` });
}

/**
 * Books the balance of a voucher as paid to a state: ESCHEAT, from the voucher to funding.
 * @throws Refusal `18`, `94`, `14`, `44`, `40`, `42`
 */
export function escheatVoucher(
  operator: Operator,
  wanted: { readonly serialNumber: bigint; readonly reference: string },
): Promise<Booked> {
  return moveOnVoucher(operator, {
    ...wanted,
    ...{ kind: 'ESCHEAT', operation: 'escheat', merchantId: 0, account: 'FUNDING', deltaMinor: null },
    change: { action: 'voucher.escheat' },
  });
}

const NeededReason = Line(500, 'Why, for the audit.', 'The card was charged twice.');

export const BookedOnVoucher = Type.Object({
  serialNumber: SerialNumber,
  currency: Text,
  balance: Money(none('The movements of its history add up to it.'), 'The balance of the voucher now.'),
  ...Booking,
});

/** Returns the balance of a voucher before and after a change. */
async function ofBalance(asked: Asked<{ readonly serialNumber: string; readonly reference: string }>) {
  const { serialNumber, reference } = asked.input;
  const { before, after } = changeIn(asked);
  const found = { before: before['balance'], after: after['balance'], reference };
  return { ...(await ofVoucher(asked, serialNumber)), ...found };
}

/** Returns the balance of a voucher now. */
export async function balanceOf({ service }: Caller, serialNumber: string) {
  const { currency, balance } = await showVoucher(service, BigInt(serialNumber));
  return { serialNumber, currency, balance };
}

const adjust = changing({
  name: 'voucher.adjust',
  summary: 'Correct the balance of a voucher by a signed amount, with a reason',
  path: '/vouchers/:serialNumber/adjust',
  input: {
    serialNumber: SerialNumber,
    amount: Type.Number({
      minimum: -AMOUNT_MAX,
      maximum: AMOUNT_MAX,
      description: 'In major units; below zero takes away.',
      examples: [5],
    }),
    reference: Reference,
    reason: NeededReason,
  },
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({
    why: 'It makes money, or takes it away.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Change the balance of voucher {voucher} of {merchant}: {before} → {after}',
    of: ofBalance,
  },
  risk: 'step-up',
  async run(caller, { serialNumber, amount, reference }) {
    const { currency } = await showVoucher(caller.service, BigInt(serialNumber));
    const minor = minorOf(Math.abs(amount), currency, 'amount');
    const deltaMinor = amount < 0 ? -minor : minor;
    const booked = await adjustVoucher(caller, { serialNumber: BigInt(serialNumber), deltaMinor, reference });
    return { ...(await balanceOf(caller, serialNumber)), ...booked };
  },
});

const payCash = changing({
  name: 'voucher.cash-out',
  summary: 'Book the rest of a voucher that was paid out in cash',
  path: '/vouchers/:serialNumber/cash-out',
  input: {
    serialNumber: SerialNumber,
    amount: Type.Optional(Amount('In major units; left out: all that is left.')),
    merchantId: Type.Optional(
      Nullable(MerchantId, { description: 'The merchant that paid; left out: the operator.' }),
    ),
    reference: Reference,
  },
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({
    why: 'Money leaves the operator.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Book voucher {voucher} of {merchant} as paid out in cash by {paidBy}: {before} → {after}',
    async of(asked) {
      const paidBy = await merchantNamed(asked, asked.input.merchantId);
      return { ...(await ofBalance(asked)), paidBy };
    },
  },
  risk: 'step-up',
  async run(caller, { serialNumber: serial, amount, merchantId: paidBy, reference }) {
    const merchantId = paidBy ? (await requireMerchant(caller, paidBy, 'merchantId')).id : null;
    const serialNumber = BigInt(serial);
    const { currency } = await showVoucher(caller.service, serialNumber);
    const amountMinor = amount === undefined ? null : minorOf(amount, currency, 'amount');
    const booked = await cashOut(caller, { serialNumber, amountMinor, merchantId, reference });
    return { ...(await balanceOf(caller, serial)), ...booked };
  },
});

const escheat = changing({
  name: 'voucher.escheat',
  title: 'Hand over',
  summary: 'Book the balance of a voucher as paid to a state',
  path: '/vouchers/:serialNumber/escheat',
  input: { serialNumber: SerialNumber, reference: Reference },
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book the balance of voucher {voucher} of {merchant} as paid to a state: {before} → {after}',
    of: ofBalance,
  },
  async run(caller, { serialNumber, reference }) {
    const booked = await escheatVoucher(caller, { serialNumber: BigInt(serialNumber), reference });
    return { ...(await balanceOf(caller, serialNumber)), ...booked };
  },
});

export const OPERATIONS = tableOf(adjust, payCash, escheat);
