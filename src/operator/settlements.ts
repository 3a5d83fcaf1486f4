import Type, { type Static } from 'typebox';
import { today } from '../ledger/zone.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { toNumber, toSum } from '../money.ts';
import {
  ABOVE_LIMIT,
  type Asked,
  alone,
  type Caller,
  changing,
  reading,
  tableOf,
  twoPeople,
} from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import {
  checkDay,
  Day,
  Input,
  Line,
  MerchantId,
  NullableText,
  PERCENT_PPM,
  Percent,
  Reason,
  Reference,
  Text,
  Time,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import { approve, giveBack, pay } from '../settlement/approve.ts';
import { draftAll, draftSettlements } from '../settlement/draft.ts';
import {
  disputesOf,
  getSettlement,
  linesOf,
  pageOfSettlements,
  payoutsOf,
} from '../settlement/settlements.ts';
import { ratesOf, STEPS, stepsOf } from '../settlement/steps.ts';
import { DisputeSchema, toDisputeJson } from './disputes.ts';
import {
  type Settlement,
  SettlementId,
  SettlementSchema,
  STATES,
  toSettlementJson,
} from './settlement-schema.ts';

const list = reading({
  name: 'settlement.list',
  summary: 'List settlements, newest first',
  method: 'GET',
  path: '/settlements',
  command: 'settlement list',
  input: Input({ ...PAGE, merchantId: Type.Optional(MerchantId), state: Type.Optional(Word(STATES)) }),
  output: Page(SettlementSchema),
  roles: SEE,
  run: (caller, { cursor, limit, merchantId, state }) =>
    pageOfSettlementsJson(caller, { merchantId, states: state ? [state] : STATES }, { cursor, limit }),
});

type Wanted = { readonly merchantId: string | undefined; readonly states: readonly string[] };
type PageWanted = { readonly cursor: string | undefined; readonly limit: number | undefined };

/** Returns a page of settlements, newest first. */
export async function pageOfSettlementsJson(
  { service }: Caller,
  filters: Wanted,
  { cursor, limit = 50 }: PageWanted,
): Promise<{ items: Settlement[]; nextCursor: string | null }> {
  const [before] = readCursor('settlements', filters, cursor) ?? [];
  const { merchantId, states } = filters;
  const filter = { merchantId: merchantId === undefined ? null : toId(merchantId, 'merchantId'), states };
  const last = before === undefined ? null : Number(before);
  const found = await pageOfSettlements(service.readDb, filter, last, limit + 1);
  return pageOf('settlements', filters, found.map(toSettlementJson), limit, ({ id }) => [Number(id)]);
}

const Details = Type.Object({
  ...SettlementSchema.properties,
  steps: Type.Array(Type.Object({ kind: Word(STEPS), amount: Type.Number() }), {
    description: 'The way from the redemptions to the payout, in its order.',
  }),
  rates: Type.Array(
    Type.Object({
      commission: Percent('In percent.'),
      vat: Percent('In percent of the commission.'),
      base: Type.Number({ description: 'Redemptions less reversals.' }),
      fee: Type.Number(),
      feeVat: Type.Number(),
    }),
    { description: 'The commission, by its rates.' },
  ),
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
      occurredAt: Time,
    }),
  ),
  disputes: Type.Array(DisputeSchema),
});
export type SettlementDetails = Static<typeof Details>;

const show = reading({
  name: 'settlement.show',
  summary: 'Get a settlement: the steps from the redemptions to the payout, its lines, payouts and disputes',
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
    const rates = await ratesOf(readDb, settlement);
    return {
      ...toSettlementJson(settlement),
      steps: stepsOf(settlement, lines).map(({ kind, amount }) => ({ kind, amount: toNumber(amount) })),
      rates: rates.map((rate) => ({
        commission: rate.commissionPpm / PERCENT_PPM,
        vat: rate.vatPpm / PERCENT_PPM,
        base: toNumber(rate.base),
        fee: toNumber(rate.fee),
        feeVat: toNumber(rate.vat),
      })),
      lines: lines.map(({ product, kind, rows, amount }) => ({
        product,
        kind,
        rows,
        amount: toNumber(amount),
      })),
      payouts: payouts.map((each) => ({ ...each, amount: toNumber(each.amount) })),
      disputes: disputes.map(toDisputeJson),
    };
  },
});

const draft = changing({
  name: 'settlement.draft',
  summary: 'Draft the settlements that are due: of a merchant, or of all; an existing draft is made again',
  method: 'POST',
  path: '/settlements',
  command: 'settlement draft',
  input: Input({ merchantId: Type.Optional(MerchantId), lastDay: Type.Optional(Day), reason: Reason }),
  output: Page(SettlementSchema),
  roles: MONEY,
  approval: alone('A draft pays nothing: two people approve it.'),
  async run(caller, { merchantId, lastDay }) {
    checkDay(lastDay, 'lastDay');
    const drafts =
      merchantId === undefined
        ? await draftAll(caller, lastDay)
        : await draftSettlements(caller, {
            merchantId: (await requireMerchant(caller, merchantId, 'merchantId')).id,
            lastDay,
          });
    return { items: drafts.map(toSettlementJson), nextCursor: null };
  },
});

async function ofSettlement({ caller, input }: Asked<{ readonly id: string }>) {
  const { number, merchant, firstDay, lastDay, currency, payable, dueOn } = await getSettlement(
    caller.service.db,
    toId(input.id),
  );
  const amount = toSum(currency, payable);
  return { number, merchant, from: firstDay, to: lastDay, amount, dueOn, link: `/settlements/${input.id}` };
}

const approveOne = changing({
  name: 'settlement.approve',
  summary: 'Approve a draft: it gets its number, and never changes again',
  method: 'POST',
  path: '/settlements/:id/approve',
  command: 'settlement approve',
  input: Input({ id: SettlementId, reason: Reason }),
  output: Type.Object({ ...SettlementSchema.properties, replayed: Type.Boolean() }),
  roles: MONEY,
  approval: twoPeople({ why: 'It decides what a merchant is paid, and never changes again.' }),
  agreement: {
    sentence: 'Approve settlement {number} of {merchant}, {from} to {to}: {amount} is to be paid by {dueOn}',
    of: (asked) => ofSettlement(asked),
  },
  async run(caller, { id }) {
    const { settlement, replayed } = await approve(caller, toId(id));
    return { ...toSettlementJson(settlement), replayed };
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
    approval:
      verb === 'pay'
        ? twoPeople({ why: 'Money leaves the operator.', after: 'settlement.approve' })
        : twoPeople({ why: 'The money is owed to the merchant again.', when: [ABOVE_LIMIT] }),
    agreement: {
      sentence:
        verb === 'pay'
          ? 'Book that settlement {number} of {merchant}, {from} to {to}, was paid by the bank: {amount}'
          : 'Book that the payout of settlement {number} to {merchant}, {from} to {to}, came back: {amount}',
      async of(asked) {
        const { reference, bankReference } = asked.input;
        return { ...(await ofSettlement(asked)), reference, bankReference };
      },
    },
    async run(caller: Caller, { id, reference, bankReference, valueDate }) {
      checkDay(valueDate, 'valueDate');
      const wanted = {
        settlementId: toId(id),
        reference,
        bankReference,
        valueDate: valueDate ?? (await today(caller.service)),
      };
      const { settlement, transactionId, replayed } = await run(caller, wanted);
      return { ...toSettlementJson(settlement), transactionId, replayed };
    },
  });
}

export const settlements = {
  list,
  show,
  draft,
  approve: approveOne,
  pay: move('pay'),
  returned: move('returned'),
};

export const SETTLEMENTS = tableOf(...Object.values(settlements));
