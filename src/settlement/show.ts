import Type, { type Static } from 'typebox';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { balance, type Figure, fieldOf, moved, NUMBER, none, opening, sumOf, when } from '../figure.ts';
import { COMMISSION, kindsOn, MovementWord, movementOf } from '../ledger/kinds.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { ProductCode } from '../products/products.ts';
import { columnsOf } from '../row.ts';
import {
  Day,
  Money,
  Nullable,
  Opening,
  PERCENT_PPM,
  Percent,
  Text,
  Time,
  Titled,
  TransactionId,
  Word,
} from '../schema.ts';
import { DisputeSchema, disputesOf } from './disputes.ts';
import {
  getSettlement,
  OF_ACCOUNT,
  type Settlement,
  SettlementId,
  SettlementSchema,
  unpaidBefore,
} from './settlements.ts';

/**
 * A settlement with all that belongs to it: the way from the redemptions to the payout (its lines, and the
 * steps that sum them), payouts and disputes.
 */

const LINE = when(
  { kind: COMMISSION },
  none('Commission is booked once a day, for all products together: see its step.'),
  moved({ ...OF_ACCOUNT, setsApart: 'true', kind: '{kind}', product: '{product}' }),
);

const LineSchema = Type.Object({
  line: Opening(
    NUMBER,
    Type.Integer({ title: 'Number', description: 'Its number, from 1, by which two people can name it.' }),
  ),
  product: Nullable(ProductCode),
  kind: Type.String({
    description: 'As in the journal. `EARLIER_REVERSAL`: reversals of redemptions before the first day.',
  }),
  rows: Opening(LINE, Type.Integer({ title: 'Entries' })),
  amount: Money(LINE, 'Positive: it increases the debt to the merchant.'),
});

export type Line = Static<typeof LineSchema> & { readonly productName: string | null };

export async function linesOf(db: Queries, { id }: Settlement): Promise<Line[]> {
  return db.query(sql`
select row_number() over (order by l.product_id, l.kind, l.is_earlier)::integer as line,
  p.code as product, p.name as "productName",
  case when l.is_earlier then 'EARLIER_REVERSAL' else l.kind::text end as kind, l.rows::float8 as rows,
  l.amount_minor as amount
from settlement_lines l left join products p on p.id = l.product_id
where l.settlement_id = ${id} order by line`);
}

/**
 * The steps and their labels, in their order. Those up to `PAID_EARLIER` add up to `CLOSING`; with `CLOSING`,
 * the rest but `PAYABLE` add up to `PAYABLE`.
 */
export const STEPS = {
  CARRIED: 'Carried over',
  REDEEMED: 'Redemptions',
  REVERSED: 'Reversals',
  EARLIER_REVERSAL: 'Reversals of earlier periods',
  COMMISSION: 'Commission',
  COMMISSION_VAT: 'VAT on the commission',
  OTHER: 'Other movements',
  PAID_EARLIER: 'Paid under earlier settlements',
  CLOSING: 'Closing balance',
  OUTSTANDING: 'To be paid under earlier settlements',
  CARRIED_ON: 'Carried over to the next settlement',
  PAYABLE: 'Payable',
} as const;
type StepKind = keyof typeof STEPS;
const KINDS = Object.keys(STEPS) as StepKind[];

/** Returns the step of a line. All other movements belong to `OTHER`. */
export function stepOf(kind: string): StepKind {
  return kind === 'EARLIER_REVERSAL' ? kind : (movementOf(kind).step ?? 'OTHER');
}

const LINES = [...kindsOn('SETTLEMENT'), 'EARLIER_REVERSAL'];

/** The steps that sum the entries of some kinds. */
const SUMMED = KINDS.flatMap((step) => {
  const kinds = LINES.filter((kind) => stepOf(kind) === step);
  const entries = moved({ ...OF_ACCOUNT, setsApart: 'true', kind: kinds.join() });
  return kinds.length === 0 ? [] : when({ kind: [step] }, entries, []);
});

const STEP: Figure = [
  ...SUMMED,
  ...when({ kind: ['CARRIED'] }, opening(OF_ACCOUNT), []),
  ...when(
    { kind: ['CLOSING'] },
    balance(OF_ACCOUNT),
    none('It follows from earlier settlements, or from the steps before it.'),
  ),
];

const StepSchema = Type.Object({
  kind: Word(KINDS, { 'x-labels': STEPS }),
  amount: Money(STEP, 'Negative: it reduces the payout.'),
});

export function stepsOf(
  { carried, closing, outstanding, payable }: Settlement,
  lines: readonly Line[],
): Static<typeof StepSchema>[] {
  const sums: Partial<Record<StepKind, bigint>> = {
    CARRIED: carried,
    CLOSING: closing,
    OUTSTANDING: -outstanding,
    CARRIED_ON: payable + outstanding - closing,
    PAYABLE: payable,
  };
  for (const { kind, amount } of lines) {
    const step = stepOf(kind);
    sums[step] = (sums[step] ?? 0n) + amount;
  }
  return KINDS.map((kind) => ({ kind, amount: sums[kind] ?? 0n }));
}

const BY_RATE = none('By the rates of the days, which entries do not have; their sums are steps.');

const RateSchema = Type.Object({
  commission: Percent('In percent.'),
  vat: Percent('In percent of the commission.'),
  base: Money(BY_RATE, 'Redemptions less reversals.'),
  fee: Titled('Commission charged', Money(BY_RATE)),
  feeVat: Titled('VAT on it', Money(BY_RATE)),
});

/** The commission that a settlement deducts at one rate, and the VAT on it. */
export type FeeRate = Static<typeof RateSchema>;

export async function ratesOf(
  db: Queries,
  { merchantId, currency, firstDay, lastDay }: Settlement,
): Promise<FeeRate[]> {
  return db.query(sql`
select commission_ppm / ${PERCENT_PPM}::float8 as commission, vat_ppm / ${PERCENT_PPM}::float8 as vat,
  sum(net_minor)::bigint as base, sum(fee_minor)::bigint as fee, sum(vat_minor)::bigint as "feeVat"
from settlement_fees
where day between ${firstDay}::date and ${lastDay}::date and merchant_id = ${merchantId}
  and currency = ${currency}
group by commission_ppm, vat_ppm order by commission_ppm, vat_ppm`);
}

const PayoutSchema = Type.Object({
  transactionId: TransactionId,
  kind: MovementWord,
  amount: Money(fieldOf('transaction.show', 'transactionId')),
  bankReference: Text,
  valueDate: Day,
  occurredAt: Time,
});

async function payoutsOf(db: Queries, { id }: Settlement): Promise<Static<typeof PayoutSchema>[]> {
  return db.query(sql`
select ${columnsOf(PayoutSchema, undefined, { transactionId: sql`id`, kind: sql`kind::text` })}
from settlement_payouts where settlement_id = ${id} order by id`);
}

const OF_EARLIER = fieldOf('settlement.show', 'id');

const EarlierSchema = Type.Object({
  id: SettlementId,
  number: Text,
  payable: Money(OF_EARLIER),
  paid: Money(OF_EARLIER, 'Until the end of this settlement.'),
  outstanding: Money(sumOf('payable', '-paid')),
});

const Details = Type.Object({
  ...SettlementSchema.properties,
  steps: Type.Array(StepSchema, {
    description: 'The way from the redemptions to the payout, in its order.',
  }),
  rates: Type.Array(RateSchema, { description: 'The commission, by its rates.' }),
  lines: Type.Array(LineSchema),
  payouts: Type.Array(PayoutSchema),
  earlier: Type.Array(EarlierSchema, {
    title: 'Earlier settlements',
    description: 'The earlier settlements that were not fully paid at the end.',
  }),
  disputes: Type.Array(DisputeSchema),
});

export const showSettlement = reading({
  name: 'settlement.show',
  summary: 'Get a settlement: the steps from the redemptions to the payout, its lines, payouts and disputes',
  path: '/settlements/:id',
  input: { id: SettlementId },
  output: Details,
  roles: SEE,
  async run({ service: { readDb } }, { id }) {
    const settlement = await getSettlement(readDb, id);
    const lines = await linesOf(readDb, settlement);
    return {
      ...settlement,
      steps: stepsOf(settlement, lines),
      rates: await ratesOf(readDb, settlement),
      lines,
      payouts: await payoutsOf(readDb, settlement),
      earlier: await readDb.query<Static<typeof EarlierSchema>>(
        unpaidBefore(settlement, sql`${settlement.endsAt}::timestamptz`),
      ),
      disputes: await disputesOf(readDb, settlement),
    };
  },
});

export const OPERATIONS = tableOf(showSettlement);
