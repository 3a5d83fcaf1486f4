import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { listing } from '../listing.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { requireRow } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import {
  Id,
  Line,
  MerchantId,
  Nullable,
  NullableText,
  NullableTime,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { getSettlement, SettlementId } from './settlements.ts';

/** Disputes: what a merchant doubts about a settlement, and the answer. Neither changes an amount. */

export const DisputeSchema = Type.Object({
  id: Id('dispute'),
  line: NullableText,
  comment: Text,
  by: Text,
  at: Time,
  state: Word(['OPEN', 'ANSWERED']),
  answer: NullableText,
  answeredBy: NullableText,
  answeredAt: NullableTime,
});
type Dispute = Static<typeof DisputeSchema>;

const COLUMNS = columnsOf(DisputeSchema, 'd', {
  by: sql`d.made_by`,
  at: sql`d.made_at`,
  state: sql`case when d.answer is null then 'OPEN' else 'ANSWERED' end`,
});

/** Returns the disputes about a settlement, oldest first. */
export async function disputesOf(db: Queries, { id }: { readonly id: string }): Promise<Dispute[]> {
  return db.query(sql`
select ${COLUMNS} from settlement_disputes d where d.settlement_id = ${id} order by d.id limit 1000`);
}

/**
 * Records a merchant's dispute about a settlement.
 * @param line the disputed line; null: the whole settlement
 * @returns the id of the dispute
 * @throws Problem; Refusal `58` for a draft, which the merchant has not seen
 */
export async function dispute(
  operator: Operator,
  { settlementId, line, comment }: { settlementId: string; line: string | null; comment: string },
): Promise<string> {
  const { service, actor } = operator;
  return service.db.transaction(async (tx) => {
    const { state } = await getSettlement(tx, settlementId);
    if (state === 'DRAFT')
      throw new Refusal('58', { message: 'the settlement is a draft: draft it again instead' });
    const [made] = await tx.query<{ id: number }>(sql`
insert into settlement_disputes (settlement_id, line, comment, made_by, made_at)
values (${settlementId}, ${line}, ${comment}, ${actor.name}, ${service.clock()}) returning id`);
    const id = made?.id ?? 0;
    const after = { dispute: String(id), line, comment };
    await audit(tx, operator, { action: 'settlement.dispute', subject: `settlement ${settlementId}`, after });
    return String(id);
  });
}

/** Answers a dispute. A dispute is answered once. @throws Problem */
export async function answer(operator: Operator, id: string, text: string): Promise<void> {
  const { service, actor } = operator;
  await service.db.transaction(async (tx) => {
    const answered = sql`
update settlement_disputes set answer = ${text}, answered_by = ${actor.name}, answered_at = ${service.clock()}
where id = ${toId(id)} and answer is null returning settlement_id as "settlementId"`;
    const { settlementId } = await requireRow<{ settlementId: number }>(tx, answered, `open dispute ${id}`);
    const after = { dispute: id, answer: text };
    await audit(tx, operator, { action: 'settlement.answer', subject: `settlement ${settlementId}`, after });
  });
}

const list = listing({
  name: 'settlement.disputes',
  summary: 'List the disputes of merchants, newest first',
  path: '/disputes',
  filters: {
    merchantId: Type.Optional(MerchantId),
    open: Type.Optional(Type.Boolean({ description: 'Only those without an answer.' })),
  },
  item: Type.Object({ ...DisputeSchema.properties, settlementId: SettlementId, merchantId: MerchantId }),
  columns: ['id', 'settlementId', 'merchantId', 'line', 'comment', 'state', 'answer'],
  roles: SEE,
  rows({ service }, { merchantId, open = false }, [before = null], count) {
    const merchant = merchantId === undefined ? null : toId(merchantId, 'merchantId');
    return service.readDb.query(sql`
select ${COLUMNS}, d.settlement_id::text as "settlementId", s.merchant_id::text as "merchantId"
from settlement_disputes d join settlements s on s.id = d.settlement_id
where (${merchant}::integer is null or s.merchant_id = ${merchant})
  and (${before}::integer is null or d.id < ${before}) and (not ${open}::boolean or d.answer is null)
order by d.id desc limit ${count}`);
  },
});

const disputeOne = changing({
  name: 'settlement.dispute',
  summary: 'Record a dispute of the merchant; it changes no number',
  path: '/settlements/:id/dispute',
  input: {
    id: SettlementId,
    comment: Line(2_000, 'What is doubted.', 'Two redemptions of the 3rd are missing.'),
    line: Type.Optional(Nullable(Line(100, 'The line that it is about, by its number.', '3'))),
  },
  output: Type.Object({ id: Text, settlementId: SettlementId, state: Text }),
  roles: MONEY,
  approval: alone('It changes no amount.'),
  asksReason: false,
  async run(caller, { id: settlementId, comment, line = null }) {
    const id = await dispute(caller, { settlementId, line, comment });
    return { id, settlementId, state: 'OPEN' };
  },
});

const answerOne = changing({
  name: 'settlement.answer',
  summary: 'Answer a dispute',
  path: '/disputes/:id/answer',
  input: {
    id: Id('dispute'),
    comment: Line(2_000, 'The answer.', 'They are in the next period.'),
  },
  output: Type.Object({ id: Text, state: Text }),
  roles: MONEY,
  approval: alone('It changes no amount.'),
  asksReason: false,
  async run(caller, { id, comment }) {
    await answer(caller, id, comment);
    return { id, state: 'ANSWERED' };
  },
});

export const disputes = { list, dispute: disputeOne, answer: answerOne };

export const OPERATIONS = tableOf(...Object.values(disputes));
