import { setTimeout as sleep } from 'node:timers/promises';
import type { Queries } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { acknowledged, ask, type Sent } from './load.ts';

/** Compares the books with every answer, after everything works again. */

export type Verdict = {
  readonly acknowledged: number;
  readonly unanswered: number;
  /** The unanswered requests that had an effect. */
  readonly happened: number;
  /** Acknowledged, and not in the books. */
  readonly lost: string[];
  /** Requests with different answers to copies or repetitions. */
  readonly changed: string[];
  /** References with more than one effect. */
  readonly doubled: string[];
  /** Any other difference. */
  readonly wrong: string[];
};

const AT_ONCE = 64;
const TRIES = 30;
const PAUSE_MS = 500;
/** Up to this quantity a generation is answered with its vouchers. A larger batch is produced later. */
const MOST_AT_ONCE = 10;

/** The number of effects in the books of each request, by merchant, operation and reference. */
async function countEffects(owner: Queries): Promise<Map<string, number>> {
  const rows = await owner.query<{ key: string; effects: number }>(sql`
    select merchant_id || case kind when 'REDEMPTION' then ' redeem ' else ' activate ' end || reference as key,
      count(*)::int as effects
    from scrip.journal
    where kind in ('REDEMPTION', 'ACTIVATION') and batch_id is null and original_id is null
      and reference is not null
    group by 1
    union all
    select merchant_id || ' generate ' || reference, count(*)::int from scrip.batches group by 1
    union all
    select o.merchant_id || ' update ' || o.reference, count(*)::int from scrip.journal r
    join scrip.journal o on o.id = r.original_id where r.kind = 'REDEMPTION_REVERSAL' group by 1`);
  return new Map(rows.map(({ key, effects }) => [key, effects]));
}

const keyOf = ({ merchant, operation, reference }: Sent) => `${merchant.id} ${operation} ${reference}`;

/**
 * The part of an answer that must never change: for a batch also the vouchers, once they are there; for a
 * redemption without a later update.
 */
function essence({ operation }: Sent, data: Record<string, unknown> | null): string {
  const { status, vouchers, refundStatus, note, ...rest } = data ?? {};
  const made = operation === 'generate' && (vouchers as unknown[] | undefined)?.length;
  return JSON.stringify([rest, made && made <= MOST_AT_ONCE ? vouchers : null]);
}

/** The unchanging parts of all answers to a request that show its effect. */
function essences(one: Sent): string[] {
  const successes = one.operation === 'update' ? ['00', '58'] : ['00'];
  return one.answers.flatMap((each) =>
    each && successes.includes(each.statusCode) ? [essence(one, each.data)] : [],
  );
}

async function eachOf<T>(all: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  const left = [...all];
  const work = async () => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await run(one);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/**
 * @param owner a connection that may read all tables
 * @param baseUrl the address of a running process
 */
export async function verify(sent: readonly Sent[], owner: Queries, baseUrl: string): Promise<Verdict> {
  const verdict = {
    acknowledged: 0,
    unanswered: 0,
    happened: 0,
    lost: [],
    changed: [],
    doubled: [],
    wrong: [],
  } as {
    -readonly [K in keyof Verdict]: Verdict[K];
  };
  const before = await countEffects(owner);
  await eachOf(sent, async (one) => {
    const first = acknowledged(one);
    const had = before.get(keyOf(one)) ?? 0;
    if (first) verdict.acknowledged++;
    else if (one.answers.includes(undefined)) verdict.unanswered++;
    if (!first && had > 0) verdict.happened++;
    const again = await askAgain(one, baseUrl).catch((error: Error) => error);
    if (again instanceof Error)
      return void verdict.wrong.push(`${keyOf(one)} is not answered: ${again.message}`);
    if (first) {
      const repeated =
        one.operation === 'update' ? again.statusCode === '58' : again.statusCode === '00' && again.replayed;
      if (had === 0 || !repeated) verdict.lost.push(`${keyOf(one)}: ${again.statusCode}`);
    } else if (had > 0) {
      // It had an effect without an answer: the retry must show it.
      if (again.statusCode !== '58' && !again.replayed) verdict.wrong.push(`${keyOf(one)} is not a replay`);
      // No copy may have been declined, unless another copy was left without an answer.
      if (!one.answers.includes(undefined)) verdict.wrong.push(`${keyOf(one)} was refused, and happened`);
    } else if (again.replayed && again.isFirst) verdict.wrong.push(`${keyOf(one)} is a replay of nothing`);
    const ways = new Set([...essences(one), ...(had > 0 ? [essence(one, again.data)] : [])]);
    if (ways.size > 1) verdict.changed.push(`${keyOf(one)} was answered as ${[...ways].join(' and as ')}`);
  });
  // The effects now include those of the retries.
  for (const [key, effects] of await countEffects(owner))
    if (effects > 1) verdict.doubled.push(`${key}: ${effects}`);
  return verdict;
}

/**
 * Sends a request until the service is there: it may still recover from what the soak has done to it.
 * @returns the answer, and whether it is that of the first try: an earlier one may have had an effect
 */
async function askAgain(one: Sent, baseUrl: string) {
  for (let tries = 1; ; tries++) {
    const answer = await ask(one, baseUrl).catch((error: Error) => error);
    const isAway = answer instanceof Error || answer.status === 503;
    if (isAway && tries < TRIES) await sleep(PAUSE_MS);
    else if (answer instanceof Error) throw answer;
    else return { ...answer, isFirst: tries === 1 };
  }
}

/** Checks that the balance of every voucher is the sum of the requests with an effect. */
export async function verifyBalances(sent: readonly Sent[], owner: Queries, wrong: string[]): Promise<void> {
  const effects = await countEffects(owner);
  const spent = new Map<number, number>();
  const updated = new Map(
    sent
      .filter((one) => one.operation === 'update' && effects.has(keyOf(one)))
      .map((one) => [one.reference, one]),
  );
  for (const one of sent) {
    if (one.operation !== 'redeem' || !one.voucher || !effects.has(keyOf(one))) continue;
    const minor = updated.get(one.reference)?.minor ?? one.minor;
    spent.set(one.voucher.serialNumber, (spent.get(one.voucher.serialNumber) ?? 0) + minor);
  }
  const rows = await owner.query<{ serial: string; spent: string }>(
    sql`
      select serial_number::text as serial, (value_minor - balance_minor)::text as spent from scrip.vouchers
      where value_minor is not null`,
  );
  for (const row of rows) {
    const expected = spent.get(Number(row.serial)) ?? 0;
    if (Number(row.spent) !== expected)
      wrong.push(`voucher ${row.serial} spent ${row.spent}, not ${expected} (minor)`);
  }
}

/** Checks that batches have the right number of vouchers, and that the books agree. */
export async function verifyBooks(
  owner: Queries,
  service: Parameters<typeof reconcile>[0],
  wrong: string[],
): Promise<void> {
  const batches = await owner.query<{
    reference: string;
    status: string;
    quantity: number;
    made: number;
    codes: number;
  }>(sql`
    select b.reference, b.status::text, b.quantity, count(v.serial_number)::int as made,
      count(distinct v.code_key)::int as codes
    from scrip.batches b left join scrip.vouchers v on v.batch_id = b.id group by b.id`);
  for (const { reference, status, quantity, made, codes } of batches) {
    const exact = status === 'COMPLETED' && made === quantity && codes === quantity;
    if (!exact)
      wrong.push(`batch ${reference} is ${status} with ${made} of ${quantity} vouchers, ${codes} codes`);
  }
  for (const { name, ok } of (await reconcile(service)).checks)
    if (!ok) wrong.push(`reconcile: ${name} differs`);
}
