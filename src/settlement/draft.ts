import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS } from '../time.ts';
import {
  findBalance,
  findInterval,
  findOutstanding,
  findReach,
  listCurrencies,
  listSettled,
  lockMerchantSettlements,
  type NewSettlement,
  upsertDraft,
} from './queries.ts';
import { getSettlement, type Settlement } from './settlements.ts';
import { deleteLines, insertLine, type LineRow, listLines } from './terms.queries.ts';
import { type Terms, termsOn } from './terms.ts';

type Computed = Omit<NewSettlement, 'by' | 'now'> & { readonly lines: readonly LineRow[] };

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
  const { service, actor } = operator;
  return service.db.transaction(async (tx) => {
    await tx.query(lockMerchantSettlements(merchantId));
    const drafts: Settlement[] = [];
    for (const computed of await computeAll(tx, merchantId, lastDay)) {
      const { lines, ...wanted } = computed;
      const [made] = await tx.query<{ id: number }>(
        upsertDraft({ ...wanted, by: actor.name, now: service.clock() }),
      );
      if (!made) throw new Error('a draft that stands before the approved settlements');
      await tx.query(deleteLines(made.id));
      for (const line of lines) await tx.query(insertLine(made.id, line));
      drafts.push(await getSettlement(tx, made.id));
    }
    const changes = drafts.map((draft) => ({
      action: 'settlement.draft',
      subject: `settlement ${draft.id}`,
      after: {
        merchantId,
        firstDay: draft.firstDay,
        lastDay: draft.lastDay,
        payable: toSum(draft.currency, draft.payable),
      },
    }));
    if (changes.length > 0) await audit(tx, operator, ...changes);
    return drafts;
  });
}

/** Drafts the settlements of all merchants that are due. */
export async function draftAll(operator: Operator, lastDay: string | undefined): Promise<Settlement[]> {
  const merchants = await operator.service.db.query<{ merchant_id: number }>(listSettled);
  const drafts: Settlement[] = [];
  for (const { merchant_id: merchantId } of merchants)
    drafts.push(...(await draftSettlements(operator, { merchantId, lastDay })));
  return drafts;
}

async function computeAll(tx: Queries, merchantId: number, lastDay: string | undefined): Promise<Computed[]> {
  const found: Computed[] = [];
  const currencies = await tx.query<{ currency: string; decimals: number }>(
    listCurrencies(merchantId, lastDay ?? '9999-12-31'),
  );
  for (const { currency, decimals } of currencies) {
    const computed = await compute(tx, merchantId, currency, decimals, lastDay);
    if (computed) found.push(computed);
  }
  return found;
}

/**
 * Computes a settlement: the sums of the movements of closed days, and the amount to pay.
 * @returns undefined if no day is due
 */
async function compute(
  tx: Queries,
  merchantId: number,
  currency: string,
  decimals: number,
  wantedLast: string | undefined,
): Promise<Computed | undefined> {
  const [reach] = await tx.query<{ first: string | null; last: string | null; settled: string | null }>(
    findReach(merchantId, currency),
  );
  const { first = null, last = null, settled = null } = reach ?? {};
  if (first === null || last === null) {
    if (wantedLast) throw notClosed(wantedLast);
    return undefined;
  }
  if (wantedLast !== undefined && wantedLast > last) throw notClosed(wantedLast);
  const firstDay = settled === null ? first : shift(settled, 1);
  const lastDay = wantedLast ?? endOfPeriod(last, await termsOn(tx, merchantId, last));
  if (lastDay < firstDay) return undefined;
  const terms = await termsOn(tx, merchantId, lastDay);
  return computeInterval(tx, { merchantId, currency, decimals, firstDay, lastDay }, terms);
}

type Interval = Pick<NewSettlement, 'merchantId' | 'currency' | 'decimals' | 'firstDay' | 'lastDay'>;

/**
 * Computes the settlement of an interval. A second computation gives the same result, unless an earlier
 * settlement has been paid meanwhile.
 */
export async function computeInterval(
  tx: Queries,
  { merchantId, currency, decimals, firstDay, lastDay }: Interval,
  terms: Terms | undefined,
): Promise<Computed> {
  const [interval] = await tx.query<{ starts_at: Date; ends_at: Date; zone: string; hash: Buffer }>(
    findInterval(firstDay, lastDay),
  );
  if (!interval) throw notClosed(lastDay);
  const { starts_at: startsAt, ends_at: endsAt, zone, hash: closingHash } = interval;
  const balanceAt = async (day: string) =>
    (await tx.query<{ minor: bigint }>(findBalance(merchantId, currency, day)))[0]?.minor ?? 0n;
  const carriedMinor = await balanceAt(shift(firstDay, -1));
  const closingMinor = await balanceAt(lastDay);
  const lines = await tx.query<LineRow>(listLines(merchantId, currency, firstDay, lastDay));
  const movedMinor = lines.reduce((sum, line) => sum + line.amount_minor, 0n);
  // The lines of a statement must add up to the change of the account's balance.
  if (carriedMinor + movedMinor !== closingMinor)
    throw new Error(
      `the settlement account of merchant ${merchantId} in ${currency} does not add up from ${firstDay} to ${lastDay}`,
    );
  const [outstanding] = await tx.query<{ minor: bigint }>(
    findOutstanding(merchantId, currency, firstDay, endsAt),
  );
  const outstandingMinor = outstanding?.minor ?? 0n;
  const leftMinor = closingMinor - outstandingMinor;
  const leastMinor = leastOf(terms, decimals);
  const payableMinor = leftMinor > 0n && leftMinor >= leastMinor ? leftMinor : 0n;
  const dueOn = shift(lastDay, terms?.delayDays ?? 0);
  const amounts = { carriedMinor, closingMinor, outstandingMinor, payableMinor };
  return {
    merchantId,
    currency,
    decimals,
    firstDay,
    lastDay,
    startsAt,
    endsAt,
    zone,
    closingHash,
    ...amounts,
    dueOn,
    lines,
  };
}

function notClosed(day: string): Refusal {
  return new Refusal('17', {
    message: `Invalid date: ${day} is not closed`,
  });
}

/** Returns the day that is a number of days after another. */
function shift(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

/** Returns the least payout in minor units. Terms give it in major units, which fit every currency. */
function leastOf(terms: Terms | undefined, decimals: number): bigint {
  const [whole = '0', fraction = ''] = (terms?.leastPayout ?? '0').split('.');
  const minor = BigInt(whole + fraction.padEnd(decimals, '0').slice(0, decimals));
  return fraction.length > decimals ? minor + 1n : minor;
}

/**
 * Returns the last end of a period on or before a day: the day itself, a Sunday, or the last day of a month.
 */
function endOfPeriod(day: string, terms: Terms | undefined): string {
  if (terms?.period === 'week') return shift(day, -(new Date(`${day}T00:00:00Z`).getUTCDay() % 7));
  if (terms?.period !== 'month') return day;
  return shift(day, 1).endsWith('-01') ? day : shift(`${day.slice(0, 7)}-01`, -1);
}
