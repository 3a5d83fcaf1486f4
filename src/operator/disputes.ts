import Type, { type Static } from 'typebox';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import {
  Id,
  Input,
  Line,
  MerchantId,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { answer, dispute } from '../settlement/approve.ts';
import { type Dispute as DisputeInfo, pageOfDisputes } from '../settlement/settlements.ts';
import { SettlementId } from './settlement-schema.ts';

/** Disputes of merchants about settlements, and the answers. Neither changes an amount. */

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

/** Returns a dispute as every door shows it. */
export const toDisputeJson = (each: DisputeInfo): Static<typeof DisputeSchema> => ({
  ...each,
  id: String(each.id),
});

const Listed = Type.Object({
  ...DisputeSchema.properties,
  settlementId: SettlementId,
  merchantId: MerchantId,
});
export type ListedDispute = Static<typeof Listed>;

const list = reading({
  name: 'settlement.disputes',
  summary: 'List the disputes of merchants, newest first',
  method: 'GET',
  path: '/disputes',
  command: 'settlement disputes',
  input: Input({
    ...PAGE,
    merchantId: Type.Optional(MerchantId),
    open: Type.Optional(Type.Boolean({ description: 'Only those without an answer.' })),
  }),
  output: Page(Listed),
  roles: SEE,
  async run({ service }, { cursor, limit = 50, merchantId, open = false }) {
    const filters = { merchantId, open };
    const [before] = readCursor('disputes', filters, cursor) ?? [];
    const filter = { merchantId: merchantId === undefined ? null : toId(merchantId, 'merchantId'), open };
    const last = before === undefined ? null : Number(before);
    const found = await pageOfDisputes(service.readDb, filter, last, limit + 1);
    const items = found.map(({ settlementId, merchantId: of, ...each }) => ({
      ...toDisputeJson(each),
      settlementId: String(settlementId),
      merchantId: String(of),
    }));
    return pageOf('disputes', filters, items, limit, ({ id }) => [Number(id)]);
  },
});

const disputeOne = changing({
  name: 'settlement.dispute',
  summary: 'Record a dispute of the merchant; it changes no number',
  method: 'POST',
  path: '/settlements/:id/dispute',
  command: 'settlement dispute',
  input: Input({
    id: SettlementId,
    comment: Line(2_000, 'What is doubted.', 'Two redemptions of the 3rd are missing.'),
    line: Type.Optional(Nullable(Line(100, 'The line that it is about.', 'DEFAULT'))),
    reason: Reason,
  }),
  output: Type.Object({ id: Text, settlementId: SettlementId, state: Text }),
  roles: MONEY,
  approval: alone('It changes no amount.'),
  async run(caller, { id, comment, line = null }) {
    const made = await dispute(caller, { settlementId: toId(id), line, comment });
    return { id: String(made), settlementId: id, state: 'OPEN' };
  },
});

const answerOne = changing({
  name: 'settlement.answer',
  summary: 'Answer a dispute',
  method: 'POST',
  path: '/disputes/:id/answer',
  command: 'settlement answer',
  input: Input({
    id: Id('dispute'),
    comment: Line(2_000, 'The answer.', 'They are in the next period.'),
    reason: Reason,
  }),
  output: Type.Object({ id: Text, state: Text }),
  roles: MONEY,
  approval: alone('It changes no amount.'),
  async run(caller, { id, comment }) {
    await answer(caller, toId(id), comment);
    return { id, state: 'ANSWERED' };
  },
});

export const disputes = { list, dispute: disputeOne, answer: answerOne };

export const DISPUTES = tableOf(...Object.values(disputes));
