import Type, { type Static } from 'typebox';
import { toNumber } from '../money.ts';
import { Nullable, Word } from '../schema.ts';
import { approve } from '../settlement/approve.ts';
import { answer, dispute } from '../settlement/disputes.ts';
import { draftAll, draftSettlements } from '../settlement/draft.ts';
import { giveBack, pay } from '../settlement/pay.ts';
import {
  disputesOf,
  getSettlement,
  linesOf,
  listSettlements,
  payoutsOf,
  type Settlement as SettlementInfo,
} from '../settlement/settlements.ts';
import { checkDay, Day } from './books.ts';
import {
  Id,
  Input,
  Line,
  MerchantId,
  NullableText,
  Page,
  Reason,
  Text,
  Time,
  TransactionId,
  toId,
} from './fields.ts';
import { requireMerchant } from './merchants.ts';
import { Reference } from './money.ts';
import { type Caller, changing, reading, tableOf } from './operations.ts';
import { MONEY, SEE } from './rights.ts';

const STATES = ['DRAFT', 'APPROVED', 'PAID', 'RETURNED'] as const;
const SettlementId = Id('settlement');

const SettlementSchema = Type.Object({
  id: SettlementId,
  merchantId: MerchantId,
  merchant: Text,
  state: Word(STATES),
  number: NullableText,
  currency: Text,
  firstDay: Day,
  lastDay: Day,
  startsAt: Time,
  endsAt: Time,
  zone: Text,
  carried: Type.Number(),
  closing: Type.Number(),
  outstanding: Type.Number(),
  payable: Type.Number(),
  dueOn: Day,
});

type Settlement = Static<typeof SettlementSchema>;

function toJson(settlement: SettlementInfo): Settlement {
  const { carried, closing, outstanding, payable, ...rest } = settlement;
  return {
    ...rest,
    id: String(settlement.id),
    merchantId: String(settlement.merchantId),
    carried: toNumber(carried),
    closing: toNumber(closing),
    outstanding: toNumber(outstanding),
    payable: toNumber(payable),
  };
}

const list = reading({
  name: 'settlement.list',
  summary: 'List settlements, newest first',
  method: 'GET',
  path: '/settlements',
  command: 'settlement list',
  input: Input({ merchantId: Type.Optional(MerchantId), state: Type.Optional(Word(STATES)) }),
  output: Page(SettlementSchema),
  roles: SEE,
  async run({ service }, { merchantId, state }) {
    const id = merchantId === undefined ? undefined : toId(merchantId, 'merchantId');
    const found = await listSettlements(service.readDb, { merchantId: id, state });
    return { items: found.map(toJson), nextCursor: null };
  },
});

const Details = Type.Object({
  ...SettlementSchema.properties,
  lines: Type.Array(
    Type.Object({ product: NullableText, kind: Text, rows: Type.Integer(), amount: Type.Number() }),
  ),
  payouts: Type.Array(
    Type.Object({
      transactionId: TransactionId,
      kind: Text,
      amount: Type.Number(),
      bankReference: Text,
      valueDate: Day,
    }),
  ),
  disputes: Type.Array(
    Type.Object({ id: Text, line: NullableText, comment: Text, state: Text, answer: NullableText }),
  ),
});

const show = reading({
  name: 'settlement.show',
  summary: 'Get a settlement, its lines, payouts and disputes',
  method: 'GET',
  path: '/settlements/:id',
  command: 'settlement show',
  input: Input({ id: SettlementId }),
  output: Details,
  roles: SEE,
  async run({ service: { readDb } }, { id }) {
    const settlement = await getSettlement(readDb, toId(id));
    const lines = await linesOf(readDb, settlement);
    const payouts = await payoutsOf(readDb, settlement);
    const disputes = await disputesOf(readDb, settlement);
    return {
      ...toJson(settlement),
      lines: lines.map(({ product, kind, rows, amount }) => ({
        product,
        kind,
        rows,
        amount: toNumber(amount),
      })),
      payouts: payouts.map((each) => ({ ...each, amount: toNumber(each.amount) })),
      disputes: disputes.map((each) => ({ ...each, id: String(each.id) })),
    };
  },
});

const draft = changing({
  name: 'settlement.draft',
  summary: 'Draft what is due: of a merchant, or of all; a draft that stands is made again',
  method: 'POST',
  path: '/settlements',
  command: 'settlement draft',
  input: Input({ merchantId: Type.Optional(MerchantId), lastDay: Type.Optional(Day), reason: Reason }),
  output: Page(SettlementSchema),
  roles: MONEY,
  async run(caller, { merchantId, lastDay }) {
    checkDay(lastDay, 'lastDay');
    const drafts =
      merchantId === undefined
        ? await draftAll(caller, lastDay)
        : await draftSettlements(caller, {
            merchantId: (await requireMerchant(caller, merchantId, 'merchantId')).id,
            lastDay,
          });
    return { items: drafts.map(toJson), nextCursor: null };
  },
});

const approveOne = changing({
  name: 'settlement.approve',
  summary: 'Approve a draft: it gets its number, and nothing of it changes any more',
  method: 'POST',
  path: '/settlements/:id/approve',
  command: 'settlement approve',
  input: Input({ id: SettlementId, reason: Reason }),
  output: Type.Object({ ...SettlementSchema.properties, replayed: Type.Boolean() }),
  roles: MONEY,
  risk: 'four-eyes',
  // It makes documents for the printer between two transactions.
  async run(caller, { id }) {
    const { settlement, replayed } = await approve(caller, toId(id));
    return { ...toJson(settlement), replayed };
  },
});

const MOVES = {
  pay: ['Book that the bank has paid a settlement', pay],
  returned: ['Book that a payout came back', giveBack],
} as const;

function move(verb: keyof typeof MOVES) {
  const [summary, run] = MOVES[verb];
  return changing({
    name: `settlement.${verb}`,
    summary,
    method: 'POST',
    path: `/settlements/:id/${verb}`,
    command: `settlement ${verb}`,
    input: Input({
      id: SettlementId,
      reference: Reference,
      bankReference: Line(100, 'The reference of the bank.', 'E2E-0042'),
      valueDate: Type.Optional(Day),
      reason: Reason,
    }),
    output: Type.Object({
      ...SettlementSchema.properties,
      transactionId: TransactionId,
      replayed: Type.Boolean(),
    }),
    roles: MONEY,
    risk: verb === 'pay' ? 'four-eyes' : 'step-up',
    async run(caller: Caller, { id, reference, bankReference, valueDate }) {
      checkDay(valueDate, 'valueDate');
      const today = caller.service.clock().toISOString().slice(0, 10);
      const wanted = { settlementId: toId(id), reference, bankReference, valueDate: valueDate ?? today };
      const { settlement, transactionId, replayed } = await run(caller, wanted);
      return { ...toJson(settlement), transactionId, replayed };
    },
  });
}

const disputeOne = changing({
  name: 'settlement.dispute',
  summary: 'Write down a doubt of the merchant, which changes no number',
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
  async run(caller, { id, comment }) {
    await answer(caller, toId(id), comment);
    return { id, state: 'ANSWERED' };
  },
});

export const SETTLEMENTS = tableOf(
  list,
  show,
  draft,
  approveOne,
  move('pay'),
  move('returned'),
  disputeOne,
  answerOne,
);
