import Type, { type Static } from 'typebox';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { MovementWord } from '../ledger/kinds.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { Day, Money, Text, Time, TransactionId } from '../schema.ts';
import { DisputeSchema, disputesOf } from './disputes.ts';
import { getSettlement, type Settlement, SettlementId, SettlementSchema } from './settlements.ts';
import { LineSchema, linesOf, RateSchema, ratesOf, StepSchema, stepsOf } from './steps.ts';

/** A settlement with all that belongs to it. */

const PayoutSchema = Type.Object({
  transactionId: TransactionId,
  kind: MovementWord,
  amount: Money(),
  bankReference: Text,
  valueDate: Day,
  occurredAt: Time,
});

async function payoutsOf(db: Queries, { id }: Settlement): Promise<Static<typeof PayoutSchema>[]> {
  return db.query(sql`
select id as "transactionId", kind::text, amount_minor as amount, bank_reference as "bankReference",
  value_date::text as "valueDate", occurred_at as "occurredAt"
from settlement_payouts where settlement_id = ${id} order by id`);
}

const Details = Type.Object({
  ...SettlementSchema.properties,
  steps: Type.Array(StepSchema, {
    description: 'The way from the redemptions to the payout, in its order.',
  }),
  rates: Type.Array(RateSchema, { description: 'The commission, by its rates.' }),
  lines: Type.Array(LineSchema),
  payouts: Type.Array(PayoutSchema),
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
      disputes: await disputesOf(readDb, settlement),
    };
  },
});

export const SETTLEMENT_DETAILS = tableOf(showSettlement);
