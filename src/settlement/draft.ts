import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { allowLongWork } from '../books/seal.ts';
import { rootOfSettled } from '../books/settled.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { assign, insertInto, type Sql, sql } from '../db/sql.ts';
import { COMMISSION, listOf } from '../ledger/kinds.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { onlyPage, Page } from '../page.ts';
import { MONEY } from '../principal.ts';
import { Refusal } from '../refusal.ts';
import { storedAs } from '../row.ts';
import { checkDay, Day, MerchantId } from '../schema.ts';
import { addDays } from '../time.ts';
import {
  getSettlement,
  lockSettlementsOf,
  payableOf,
  type Settlement,
  SettlementSchema,
  unpaidBefore,
} from './settlements.ts';
import { type Terms, termsOn } from './terms.ts';

/** Drafts of settlements: the sums of the movements of closed days, and the amount to pay. */

/**
 * Drafts the settlement of a merchant in each currency, from the day after its last approved settlement to
 * `lastDay`. An existing draft is made again.
 * @param lastDay the last day; by default the end of the last closed period of the merchant's terms
 * @returns the drafts; none if nothing is due
 * @throws Refusal `17` if a day is not closed
 */
export async function draftSettlements(
  operator: Operator,
  { merchantId, lastDay }: { merchantId: number; lastDay?: string | undefined },
): Promise<Settlement[]> {
  return operator.service.db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    await lockSettlementsOf(tx, merchantId);
    const currencies = await tx.query<{ currency: string; decimals: number }>(sql`
select a.currency, a.decimals from accounts a
where a.merchant_id = ${merchantId} and a.kind = 'SETTLEMENT' and exists (
  select from book_movements b
  where b.day <= ${lastDay ?? '9999-12-31'}::date and b.merchant_id = a.merchant_id
    and b.currency = a.currency and 'SETTLEMENT' in (b.debit_kind, b.credit_kind))
order by a.currency`);
    const intervals: Interval[] = [];
    for (const own of currencies) intervals.push(...(await dueInterval(tx, { merchantId, ...own }, lastDay)));
    const drafts: Settlement[] = [];
    for (const interval of intervals) {
      const computed = await computeInterval(tx, interval);
      drafts.push(await storeDraft(tx, operator, { ...interval, ...computed }));
    }
    const changes = drafts.map((draft) => ({
      action: 'settlement.draft',
      subject: `settlement ${draft.id}`,
      after: { merchantId, firstDay: draft.firstDay, lastDay: draft.lastDay, payable: payableOf(draft) },
    }));
    if (changes.length > 0) await audit(tx, operator, ...changes);
    return drafts;
  });
}

/** Drafts the settlements of all merchants that are due. */
export async function draftAll(operator: Operator, lastDay: string | undefined): Promise<Settlement[]> {
  const merchants = await operator.service.db.query<{ id: number }>(sql`
select distinct merchant_id as id from accounts where kind = 'SETTLEMENT' order by merchant_id`);
  const drafts: Settlement[] = [];
  for (const { id } of merchants)
    drafts.push(...(await draftSettlements(operator, { merchantId: id, lastDay })));
  return drafts;
}

type Interval = Pick<Settlement, 'currency' | 'firstDay' | 'lastDay'> & {
  readonly merchantId: string | number;
  readonly decimals: number;
};

/**
 * Returns the interval of days that is due in a currency, or nothing.
 * @throws Refusal `17` if the wanted last day is not closed
 */
async function dueInterval(
  tx: Queries,
  own: Pick<Interval, 'merchantId' | 'currency' | 'decimals'>,
  wantedLast: string | undefined,
): Promise<Interval[]> {
  const { merchantId, currency } = own;
  // The days before the merchant was made are not its own.
  const [reach] = await tx.query<{ first: string | null; last: string | null; settled: string | null }>(sql`
select min(c.day) filter (where c.ends_at > m.created_at)::text as first, max(c.day)::text as last,
  (
    select max(last_day)::text from settlements
    where merchant_id = ${merchantId} and currency = ${currency} and state <> 'DRAFT'
  ) as settled
from merchants m left join book_closings c on true where m.id = ${merchantId}`);
  const { first = null, last = null, settled = null } = reach ?? {};
  if (wantedLast !== undefined && (first === null || last === null || wantedLast > last))
    throw notClosed(wantedLast);
  if (first === null || last === null) return [];
  const firstDay = settled === null ? first : addDays(settled, 1);
  const lastDay = wantedLast ?? endOfPeriod(last, await termsOn(tx, merchantId, last));
  return lastDay < firstDay ? [] : [{ ...own, firstDay, lastDay }];
}

/**
 * Computes the settlement of an interval. A second computation gives the same result, unless an earlier
 * settlement has been paid meanwhile.
 */
export async function computeInterval(tx: Queries, interval: Interval) {
  const { merchantId, currency, decimals, firstDay, lastDay } = interval;
  const terms = await termsOn(tx, merchantId, lastDay);
  type Found = { startsAt: Date; endsAt: Date; zone: string; closingHash: Buffer } & Record<
    'carried' | 'closing' | 'outstanding',
    bigint
  >;
  const balanceAt = (day: string) => sql`(
  select coalesce(sum(balance_minor), 0)::bigint from book_balances
  where day = ${day}::date and account_kind = 'SETTLEMENT' and merchant_id = ${merchantId}
    and currency = ${currency}
)`;
  const [found] = await tx.query<Found>(sql`
select f.starts_at as "startsAt", t.ends_at as "endsAt", t.zone, t.hash as "closingHash",
  ${balanceAt(addDays(firstDay, -1))} as carried, ${balanceAt(lastDay)} as closing, (
    select coalesce(sum(e.outstanding), 0)::bigint from (${unpaidBefore(interval, sql`t.ends_at`)}) e
  ) as outstanding
from book_closings f, book_closings t
where f.day = ${firstDay}::date and t.day = ${lastDay}::date`);
  if (!found) throw notClosed(lastDay);
  const { closing, outstanding } = found;
  const left = closing - outstanding;
  const payable = left > 0n && left >= minPayoutOf(terms, decimals) ? left : 0n;
  return { ...found, payable, dueOn: addDays(lastDay, terms?.delayDays ?? 0) };
}

type Computed = Interval & Awaited<ReturnType<typeof computeInterval>>;

/** Makes a draft, or makes an existing draft again. */
async function storeDraft(tx: Queries, { service, actor }: Operator, s: Computed): Promise<Settlement> {
  const { decimals, closingHash, ...own } = s;
  const made = { merchantId: String(s.merchantId), madeBy: actor.name, madeAt: service.clock() };
  const row = {
    ...storedAs(SettlementSchema, { ...own, ...made }),
    ...{ decimals, closing_hash: closingHash, root: await rootOfSettled(tx, s) },
  };
  const [stored] = await tx.query<{ id: number }>(sql`
${insertInto('settlements as s', row)}
on conflict (merchant_id, currency, first_day) do update set ${assign(row)}
where s.state = 'DRAFT'
returning s.id`);
  if (!stored) throw new Error('a draft older than an approved settlement');
  await tx.query(sql`delete from settlement_lines where settlement_id = ${stored.id}`);
  await tx.query(insertLines(stored.id, s));
  return getSettlement(tx, stored.id);
}

/**
 * Sums the movements on a settlement account as the lines of a settlement. An amount is positive if it
 * increases the debt to the merchant. Commission and VAT are listed by their product, and reversals of
 * redemptions before the interval separately.
 */
const insertLines = (id: number, { merchantId, currency, firstDay: from, lastDay: to }: Interval): Sql => sql`
insert into settlement_lines (settlement_id, product_id, kind, is_earlier, rows, amount_minor)
with earlier as (
  select product_id, rows, amount_minor from book_reversals
  where day between ${from}::date and ${to}::date and original_day < ${from}::date
    and merchant_id = ${merchantId} and currency = ${currency}
)
select ${id}, product_id, kind, is_earlier, sum(rows)::bigint, sum(amount_minor)::bigint
from (
  select product_id, 'REDEMPTION_REVERSAL'::entry_kind as kind, true as is_earlier, rows,
    -amount_minor as amount_minor
  from earlier
  union all
  select product_id, 'REDEMPTION_REVERSAL', false, -rows, amount_minor from earlier
  union all
  select product_id, kind, false, rows,
    case when credit_kind = 'SETTLEMENT' then amount_minor else -amount_minor end as amount_minor
  from book_movements
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
    and 'SETTLEMENT' in (debit_kind, credit_kind)
    and kind not in ${listOf(COMMISSION)}
  union all
  select product_id, kind, false, 1,
    case when credit_kind = 'SETTLEMENT' then amount_minor else -amount_minor end
  from fee_movements
  where day between ${from}::date and ${to}::date and merchant_id = ${merchantId} and currency = ${currency}
) l
group by product_id, kind, is_earlier having sum(rows) > 0`;

const notClosed = (day: string) => new Refusal('17', { message: `Invalid date: ${day} is not closed` });

/** Returns the minimum payout in minor units. Terms give it in major units, which fit every currency. */
function minPayoutOf(terms: Terms | undefined, decimals: number): bigint {
  const [whole = '0', fraction = ''] = String(terms?.minPayout ?? 0).split('.');
  const minor = BigInt(whole + fraction.padEnd(decimals, '0').slice(0, decimals));
  return fraction.length > decimals ? minor + 1n : minor;
}

/**
 * Returns the last end of a period on or before a day: the day itself, a Sunday, or the last day of a month.
 */
function endOfPeriod(day: string, terms: Terms | undefined): string {
  if (terms?.period === 'week') return addDays(day, -(new Date(`${day}T00:00:00Z`).getUTCDay() % 7));
  if (terms?.period !== 'month') return day;
  return addDays(day, 1).endsWith('-01') ? day : addDays(`${day.slice(0, 7)}-01`, -1);
}

export const draftSettlement = changing({
  name: 'settlement.draft',
  title: 'Create draft',
  summary: 'Draft the settlements that are due: of a merchant, or of all; an existing draft is made again',
  path: '/settlements',
  input: {
    merchantId: Type.Optional(MerchantId),
    lastDay: Type.Optional(
      Type.String({
        ...Day,
        description: 'The last day; left out: the end of the last closed period of the terms.',
      }),
    ),
  },
  output: Page(SettlementSchema),
  roles: MONEY,
  approval: alone('A draft pays nothing: two people approve it.'),
  async run(caller, { merchantId, lastDay }) {
    checkDay(lastDay, 'lastDay');
    if (merchantId === undefined) return onlyPage(await draftAll(caller, lastDay));
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    return onlyPage(await draftSettlements(caller, { merchantId: id, lastDay }));
  },
});

export const OPERATIONS = tableOf(draftSettlement);
