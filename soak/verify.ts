import type { Queries } from '../src/db/pool.ts';
import { sql } from '../src/db/sql.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { acknowledged, ask, type Sent } from './load.ts';

/** Holds the books against every answer that was given, once everything works again. */

export type Verdict = {
  readonly acknowledged: number;
  readonly unanswered: number;
  /** Of the unanswered ones, those that had happened. */
  readonly happened: number;
  /** Acknowledged, and not found again. */
  readonly lost: string[];
  /** Told in two ways: by copies of one request, or later again. */
  readonly changed: string[];
  /** References with more than one effect. */
  readonly doubled: string[];
  /** Anything else that does not fit. */
  readonly wrong: string[];
};

const AT_ONCE = 24;
/** Up to here a batch is answered with its vouchers (contract of generation); above it is not there yet. */
const MOST_AT_ONCE = 10;

/** How many effects the books have for each request, by its merchant, operation and reference. */
async function countEffects(owner: Queries): Promise<Map<string, number>> {
  const rows = await owner.query<{ key: string; effects: number }>(sql`
    select merchant_id || ' ' || operation || ' ' || reference as key, count(*)::int as effects
    from scrip.journal where operation is not null and reference is not null group by 1
    union all
    select merchant_id || ' generate ' || reference, count(*)::int from scrip.batches group by 1
    union all
    select o.merchant_id || ' update ' || o.reference, count(*)::int from scrip.journal r
    join scrip.journal o on o.id = r.original_id where r.kind = 'REDEMPTION_REVERSAL' group by 1`);
  return new Map(rows.map(({ key, effects }) => [key, effects]));
}

const keyOf = ({ merchant, operation, reference }: Sent) => `${merchant.id} ${operation} ${reference}`;

/**
 * What must be the same whenever it is told: of a batch also the vouchers, once they are there; of a
 * redemption not that it was updated since.
 */
function essence({ operation }: Sent, data: Record<string, unknown> | null): string {
  const { status, vouchers, refundStatus, note, ...rest } = data ?? {};
  const made = operation === 'generate' && (vouchers as unknown[] | undefined)?.length;
  return JSON.stringify([rest, made && made <= MOST_AT_ONCE ? vouchers : null]);
}

/** Everything that one of the answers to a request told of its effect. */
function tellings(one: Sent): string[] {
  const successes = one.operation === 'update' ? ['00', '58'] : ['00'];
  return one.told.flatMap((each) =>
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

/** @param owner may read everything; @param baseUrl of a process that works */
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
    const told = acknowledged(one);
    const had = before.get(keyOf(one)) ?? 0;
    if (told) verdict.acknowledged++;
    else if (one.told.includes(undefined)) verdict.unanswered++;
    if (!told && had > 0) verdict.happened++;
    const again = await ask(one, baseUrl).catch((error: Error) => error);
    if (again instanceof Error)
      return void verdict.wrong.push(`${keyOf(one)} is not answered: ${again.message}`);
    if (told) {
      const repeated =
        one.operation === 'update' ? again.statusCode === '58' : again.statusCode === '00' && again.replayed;
      if (had === 0 || !repeated) verdict.lost.push(`${keyOf(one)}: ${again.statusCode}`);
    } else if (had > 0) {
      // It happened though nobody was told so: the retry says that it did.
      if (again.statusCode !== '58' && !again.replayed) verdict.wrong.push(`${keyOf(one)} is not a replay`);
      // And it was never refused as something that did not happen, unless an earlier copy was left
      // without an answer.
      if (!one.told.includes(undefined)) verdict.wrong.push(`${keyOf(one)} was refused, and happened`);
    } else if (again.replayed) verdict.wrong.push(`${keyOf(one)} is a replay of nothing`);
    const ways = new Set([...tellings(one), ...(had > 0 ? [essence(one, again.data)] : [])]);
    if (ways.size > 1) verdict.changed.push(`${keyOf(one)} was told as ${[...ways].join(' and as ')}`);
  });
  // Also of what the retries have just done.
  for (const [key, effects] of await countEffects(owner))
    if (effects > 1) verdict.doubled.push(`${key}: ${effects}`);
  return verdict;
}

/** Every voucher holds what the answers add up to, after all of them were told. */
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

/** Batches are exact, and the books are in order. */
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
