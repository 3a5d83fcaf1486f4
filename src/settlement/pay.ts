import Type from 'typebox';
import { type Booked, bookOnce } from '../books/once.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { ABOVE_LIMIT, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { Refusal } from '../refusal.ts';
import { checkDay, Day, Line, Reference, TransactionId } from '../schema.ts';
import { today } from '../zone.ts';
import {
  announce,
  getSettlement,
  lockSettlement,
  ofSettlement,
  payableOf,
  type Settlement,
  SettlementId,
  SettlementSchema,
} from './settlements.ts';

/** Payouts: what the bank has paid of a settlement, and what it has returned. */

const PAY = {
  name: 'settlement.pay',
  title: 'Record payment',
  summary: 'Book that the bank has paid a settlement',
  sentence: 'Book that settlement {number} of {merchant}, {from} to {to}, was paid by the bank: {amount}',
  approval: twoPeople({ why: 'Money leaves the operator.', after: 'settlement.approve' }),
  kind: 'PAYOUT',
  claim: 'payout',
  from: ['APPROVED', 'RETURNED'],
  to: 'PAID',
  event: 'settlement.paid',
} as const;

const RETURNED = {
  name: 'settlement.returned',
  title: 'Book as returned',
  summary: 'Book that the bank returned a payout',
  sentence:
    'Book that the payout of settlement {number} to {merchant}, {from} to {to}, was returned: {amount}',
  approval: twoPeople({ why: 'The money is owed to the merchant again.', when: [ABOVE_LIMIT] }),
  kind: 'PAYOUT_RETURN',
  claim: 'payout-return',
  from: ['PAID'],
  to: 'RETURNED',
  event: 'settlement.returned',
} as const;

type Wanted = {
  readonly settlementId: string | number;
  /** The operator's reference. A repetition under it books once. */
  readonly reference: string;
  /** The reference on the bank statement. */
  readonly bankReference: string;
  readonly valueDate: string;
};

/**
 * Books that an approved settlement was paid: PAYOUT, from the settlement account to funding, even if later
 * reversals leave less on it. A settlement whose payment was returned can be paid again.
 * @throws Problem; Refusal `18`, `94`; `58` if the settlement is not to be paid
 */
export const pay = (operator: Operator, wanted: Wanted) => move(operator, wanted, PAY);

/**
 * Books that a payout was returned: PAYOUT_RETURN, from funding to the settlement account.
 * @throws Problem; Refusal `18`, `94`; `58` if the settlement is not paid
 */
export const returned = (operator: Operator, wanted: Wanted) => move(operator, wanted, RETURNED);

async function move(
  operator: Operator,
  { settlementId, reference, bankReference, valueDate }: Wanted,
  { kind, claim, from, to, event }: typeof PAY | typeof RETURNED,
): Promise<Booked & { settlement: Settlement }> {
  const { db } = operator.service;
  const { id: ownId, merchantId: text } = await getSettlement(db, settlementId);
  const merchantId = Number(text);
  const fingerprint = `${ownId} ${bankReference} ${valueDate}`;
  const claimed = { merchantId, operation: claim, reference, fingerprint };
  const booked = await bookOnce(operator, claimed, async ({ tx, id, now }) => {
    const settlement = await lockSettlement(tx, ownId);
    const { state, payable: amountMinor, currency, number } = settlement;
    if (!(from as readonly string[]).includes(state))
      throw new Refusal('58', {
        message: `the settlement is ${state}: only ${from.join(' or ')} ones can be ${to}`,
      });
    if (amountMinor === 0n)
      throw new Refusal('58', { message: 'nothing is to be paid: the balance is carried over' });
    const own = await getAccount(tx, merchantId, currency, 'SETTLEMENT');
    const funding = await getAccount(tx, 0, currency, 'FUNDING');
    const [debit, credit] = kind === 'PAYOUT' ? [own, funding] : [funding, own];
    const originalId = kind === 'PAYOUT' ? null : await lastPayout(tx, ownId);
    await post(tx, { kind, id, debit, credit, amountMinor, merchantId, originalId, reference, now });
    await tx.query(sql`
insert into settlement_payouts (id, settlement_id, kind, amount_minor, bank_reference, value_date,
  occurred_at)
values (${id}, ${ownId}, ${kind}::entry_kind, ${amountMinor}, ${bankReference}, ${valueDate}::date, ${now})`);
    // One whose payment was returned can be paid by another file.
    await tx.query(sql`
update settlements set state = ${to}::settlement_state,
  file_id = case when ${to} = 'RETURNED' then null else file_id end
where id = ${ownId}`);
    await announce(tx, event, { ...settlement, state: to }, now, { bankReference, valueDate });
    return {
      action: event,
      subject: `settlement ${ownId}`,
      before: { state },
      after: { state: to, number, amount: payableOf(settlement), bankReference, valueDate },
      moved: [{ currency, minor: amountMinor, subjects: [`merchant ${merchantId}`] }],
    };
  });
  return { ...booked, settlement: await getSettlement(db, ownId) };
}

async function lastPayout(tx: Queries, settlementId: string): Promise<string> {
  const [last] = await tx.query<{ id: string }>(sql`
select id from settlement_payouts where settlement_id = ${settlementId} and kind = 'PAYOUT'
order by id desc limit 1`);
  if (!last) throw new Error(`settlement ${settlementId} is paid, and has no payout`);
  return last.id;
}

function booking(moved: typeof PAY | typeof RETURNED) {
  const { name, title, summary, sentence, approval } = moved;
  const [, verb] = name.split('.');
  return changing({
    ...{ name, title, summary, approval },
    path: `/settlements/:id/${verb}`,
    input: {
      id: SettlementId,
      reference: Reference,
      bankReference: Line(100, 'The reference of the bank.', 'E2E-0042'),
      valueDate: Type.Optional(
        Type.String({ ...Day, description: 'The day on which the bank booked it; left out: today.' }),
      ),
    },
    output: Type.Object({
      ...SettlementSchema.properties,
      transactionId: TransactionId,
      replayed: Type.Boolean(),
    }),
    roles: MONEY,
    agreement: {
      sentence,
      async of(asked) {
        const { reference, bankReference } = asked.input;
        return { ...(await ofSettlement(asked)), reference, bankReference };
      },
    },
    async run(caller, { id: settlementId, reference, bankReference, valueDate: given }) {
      checkDay(given, 'valueDate');
      const valueDate = given ?? (await today(caller.service));
      const wanted = { settlementId, reference, bankReference, valueDate };
      const { settlement, transactionId, replayed } = await move(caller, wanted, moved);
      return { ...settlement, transactionId, replayed };
    },
  });
}

export const payouts = { pay: booking(PAY), returned: booking(RETURNED) };

export const OPERATIONS = tableOf(...Object.values(payouts));
