import Type, { type Static } from 'typebox';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { balance, fieldOf, none, opening, sumOf, when } from '../figure.ts';
import { newId } from '../ledger/id.ts';
import { listing } from '../listing.ts';
import { moneyIn, toNumber, toSum } from '../money.ts';
import { type Asked, NO_COMMAND, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { requireRow } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Day,
  Id,
  MerchantId,
  Money,
  Nullable,
  NullableText,
  NullableTime,
  Opening,
  Text,
  Time,
  Titled,
  toId,
  Word,
} from '../schema.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';

/** Settlements: what the operator owes a merchant for an interval of days of the books, and its payment. */

const STATES = ['DRAFT', 'APPROVED', 'PAID', 'RETURNED'] as const;
export const SettlementId = Id('settlement');

/** Its entries are on the settlement account of its merchant. */
export const OF_ACCOUNT = { account: 'SETTLEMENT', merchantId: '{merchantId}' };

const PAYABLE = when(
  { payable: ['0'] },
  none('Nothing is owed, or less than the minimum payout.'),
  sumOf('closing', '-outstanding'),
);

export const SettlementSchema = Type.Object({
  id: SettlementId,
  merchantId: MerchantId,
  merchant: Text,
  state: Word(STATES),
  number: Nullable(Text, { description: 'Merchant, year and number, such as `5-2026-0001`; null: a draft.' }),
  currency: Text,
  firstDay: Titled('From', Day),
  lastDay: Titled('To', Day),
  startsAt: Time,
  endsAt: Time,
  zone: Titled('Time zone', Text),
  carried: Titled(
    'Carried over',
    Money(opening(OF_ACCOUNT), 'The balance of the settlement account before.'),
  ),
  closing: Titled('Closing balance', Money(balance(OF_ACCOUNT), 'The balance at the end.')),
  outstanding: Money(sumOf('earlier.outstanding'), 'The unpaid amount of earlier settlements at that time.'),
  payable: Money(PAYABLE, 'The amount to be paid; 0 if it is below the minimum payout, and is carried over.'),
  dueOn: Day,
  closingHash: Titled('Day hash', Text),
  root: Type.String({
    title: 'Root of its rows',
    description: 'The root of the Merkle tree of the journal rows that it sums, which its proof shows.',
  }),
  madeBy: Nullable(Text, { description: 'Null for a merchant.' }),
  madeAt: Time,
  approvedBy: Nullable(Text, {
    description: 'Who proposed the approval, and who agreed; null for a merchant, and for a draft.',
  }),
  approvedAt: NullableTime,
  contentHash: Titled('Statement hash', NullableText),
  openDisputes: Opening(
    none('The disputes are on the page of the settlement.'),
    Type.Integer({ description: 'Disputes without an answer.' }),
  ),
  fileId: Nullable(Text, {
    title: 'Payout file',
    description: 'The payout file that pays it; null: none, or the payment was returned.',
  }),
});

/** In a list, the amount to pay opens into the settlement. */
const ListedSchema = Type.Object({
  ...SettlementSchema.properties,
  payable: Opening(fieldOf('settlement.show', 'id'), SettlementSchema.properties.payable),
});

/** A settlement. The amounts are in minor units. */
export type Settlement = Static<typeof SettlementSchema>;

const COLUMNS = columnsOf(SettlementSchema, 's', {
  merchant: sql`m.name`,
  number: sql`settlement_number(s.merchant_id, s.year, s.number)`,
  closingHash: sql`encode(s.closing_hash, 'hex')`,
  root: sql`encode(s.root, 'hex')`,
  contentHash: sql`encode(s.content_hash, 'hex')`,
  openDisputes: sql`
(select count(*) from settlement_disputes d where d.settlement_id = s.id and d.answer is null)::integer`,
  fileId: sql`s.file_id::text`,
});

const settlementWhere = (condition: Sql) => sql`
select ${COLUMNS} from settlements s join merchants m on m.id = s.merchant_id where ${condition}`;

/** Returns a settlement. @throws Problem if there is no such settlement */
export function getSettlement(db: Queries, id: string | number): Promise<Settlement> {
  return requireRow(db, settlementWhere(sql`s.id = ${toId(String(id))}`), `settlement ${id}`);
}

/**
 * Selects the settlements of a merchant before an interval that were not fully paid at its end, oldest first.
 * @param endsAt the end of the interval
 */
export function unpaidBefore(
  { merchantId, currency, firstDay }: { merchantId: string | number; currency: string; firstDay: string },
  endsAt: Sql,
): Sql {
  return sql`
select s.id::text, settlement_number(s.merchant_id, s.year, s.number) as number,
  s.payable_minor as payable, p.paid, s.payable_minor - p.paid as outstanding
from settlements s
cross join lateral (
  select coalesce(sum(case kind when 'PAYOUT' then amount_minor else -amount_minor end), 0)::bigint as paid
  from settlement_payouts where settlement_id = s.id and occurred_at < ${endsAt}
) p
where s.merchant_id = ${merchantId} and s.currency = ${currency} and s.state <> 'DRAFT'
  and s.first_day < ${firstDay}::date and s.payable_minor <> p.paid
order by s.id`;
}

/** Locks a settlement until the transaction ends, and returns it. @throws Problem as `getSettlement` does */
export async function lockSettlement(tx: Queries, id: string): Promise<Settlement> {
  await tx.query(sql`select id from settlements where id = ${id} for update`);
  return getSettlement(tx, id);
}

/** Locks the settlements of a merchant, so that they are drafted and approved one at a time. */
export async function lockSettlementsOf(tx: Queries, merchantId: string | number): Promise<void> {
  await tx.query(sql`select id from merchants where id = ${merchantId} for no key update`);
}

/** Returns the merchant of a settlement that it may see; undefined for a draft. */
export async function findMerchantOf(db: Queries, id: string): Promise<number | undefined> {
  const [found] = await db.query<{ merchantId: number }>(sql`
select merchant_id as "merchantId" from settlements where id = ${toId(id)} and state <> 'DRAFT'`);
  return found?.merchantId;
}

const VISIBLE = ['APPROVED', 'PAID', 'RETURNED'] as const;

type Listed = {
  readonly merchantId?: string | undefined;
  readonly state?: (typeof STATES)[number] | undefined;
  readonly number?: string | undefined;
};

function listSettlements(
  db: Queries,
  { merchantId, state, number }: Listed,
  states: readonly string[],
  before: unknown,
  count: number,
): Promise<Settlement[]> {
  const merchant = merchantId === undefined ? null : toId(merchantId, 'merchantId');
  const wanted = state ? [state] : states;
  // Unpaid settlements have an index of their own, which is small.
  const unpaid = wanted.includes('PAID') ? sql`` : sql`and s.state <> 'PAID'`;
  const [issuer, year, place] = number?.split('-') ?? [];
  const numbered =
    number === undefined
      ? sql``
      : sql`
and s.merchant_id = ${issuer}::integer and s.year = ${year}::integer and s.number = ${place}::integer`;
  return db.query(
    settlementWhere(sql`
(${merchant}::integer is null or s.merchant_id = ${merchant})
and s.state = any (${wanted}::settlement_state[])
${unpaid} ${numbered}
and (${before}::integer is null or s.id < ${before}) order by s.id desc limit ${count}`),
  );
}

/** Returns the ids of the settlements to be paid by a day that no payout file pays yet, oldest first. */
export async function dueSettlements(db: Queries, by: string): Promise<string[]> {
  const due = await db.query<{ id: string }>(sql`
select s.id::text from settlements s
where s.state in ('APPROVED', 'RETURNED') and s.payable_minor > 0 and s.due_on <= ${by}::date
  and s.file_id is null
order by s.id limit 10000`);
  return due.map(({ id }) => id);
}

/** Returns the amount to pay, as the audit and approvals show it. */
export const payableOf = ({ currency, payable }: Settlement) => toSum(currency, payable);

/** Returns what two people see of a settlement when they agree on its approval or its payment. */
export async function ofSettlement({ caller, input: { id } }: Asked<{ readonly id: string }>) {
  const settlement = await getSettlement(caller.service.db, id);
  const { number, merchant, firstDay: from, lastDay: to, dueOn } = settlement;
  return { number, merchant, from, to, amount: payableOf(settlement), dueOn, link: `/settlements/${id}` };
}

/** Returns a settlement as its merchant sees it, without the people of the operator. */
export const withoutPeople = <One extends Settlement>(settlement: One): One => ({
  ...settlement,
  madeBy: null,
  approvedBy: null,
});

/** Announces a step of a settlement to the webhooks of its merchant. */
export async function announce(
  tx: Queries,
  type: 'settlement.approved' | 'settlement.paid' | 'settlement.returned',
  { id, merchantId, number, state, currency, firstDay, lastDay, payable, dueOn }: Settlement,
  now: Date,
  more: object = {},
): Promise<void> {
  const amount = toNumber(moneyIn(currency, payable));
  const own = { settlementId: id, number, state, firstDay, lastDay, currency, payable: amount, dueOn };
  await enqueueEvent(tx, {
    merchantId: Number(merchantId),
    type,
    eventId: newId(now),
    subjectId: null,
    data: { ...own, ...more },
    now,
  });
}

const LIST = {
  name: 'settlement.list',
  summary: 'List settlements, newest first',
  path: '/settlements',
  item: ListedSchema,
  columns: [
    ...['id', 'number', 'merchantId', 'merchant', 'firstDay', 'lastDay', 'payable', 'currency', 'state'],
    'openDisputes',
  ],
};

export const listedSettlements = listing({
  ...LIST,
  command: 'settlement list',
  filters: {
    merchantId: Type.Optional(MerchantId),
    state: Type.Optional(Word(STATES)),
    number: Type.Optional(
      Type.String({
        pattern: '^[1-9][0-9]{0,8}-[0-9]{4}-[0-9]{1,9}$',
        description: 'The number.',
        examples: ['4-2026-0004'],
      }),
    ),
  },
  roles: SEE,
  rows: ({ service }, filters, [before = null], count) =>
    listSettlements(service.readDb, filters, STATES, before, count),
});

/** The same list for one merchant, which sees no drafts. */
export const ownSettlements = listing({
  ...LIST,
  command: NO_COMMAND,
  filters: { merchantId: MerchantId, state: Type.Optional(Word(VISIBLE)) },
  roles: SEE,
  rows: async ({ service }, filters, [before = null], count) =>
    (await listSettlements(service.readDb, filters, VISIBLE, before, count)).map(withoutPeople),
});

export const OPERATIONS = tableOf(listedSettlements);
