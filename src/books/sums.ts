import { isSharded, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { allowLongWork } from './close.queries.ts';
import type { Day } from './days.ts';
import type { Pieces } from './pieces.ts';
import {
  findRangeEnd,
  insertAging,
  insertCohorts,
  insertReversals,
  listSlices,
  sumAges,
  sumCohorts,
  sumReversals,
} from './sums.queries.ts';

/** The number of vouchers whose ages are summed up in one piece. */
const RANGE = 20_000;
/** Greater than any serial number. */
const LAST_SERIAL = 2n ** 63n - 1n;
/**
 * Each range of vouchers reads the movements since the end of the day. If a day is closed later than this,
 * they are read only once.
 */
const FRESH_MS = 7_200_000;

/** A row of sums; all its other columns together are its key. */
type SumRow = { readonly rows: bigint; readonly amount_minor: bigint };

/** Adds up sums that were made piece by piece. */
class Sums {
  readonly #rows = new Map<string, { rows: bigint; amount_minor: bigint }>();

  /** @returns the number of rows that were added up */
  add(rows: readonly SumRow[]): number {
    let added = 0n;
    for (const { rows: count, amount_minor, ...key } of rows) {
      const sum = this.#rows.get(JSON.stringify(key)) ?? { rows: 0n, amount_minor: 0n };
      this.#rows.set(JSON.stringify(key), {
        rows: sum.rows + count,
        amount_minor: sum.amount_minor + amount_minor,
      });
      added += count;
    }
    return Number(added);
  }

  clear(): void {
    this.#rows.clear();
  }

  /** The rows as JSON, with amounts as text. */
  get json(): string {
    return JSON.stringify(
      [...this.#rows].map(([key, { rows, amount_minor }]) => ({
        ...JSON.parse(key),
        rows: String(rows),
        amount_minor: String(amount_minor),
      })),
    );
  }
}

/** What a day leaves behind, from its beginning to a time. */
export type DaySums = {
  readonly until: Date;
  readonly cohorts: Sums;
  readonly reversals: Sums;
  readonly ages: Sums;
};

/**
 * Sums up the sealed part of a day, and the ages of vouchers at its end. Each piece is a transaction of its
 * own that only reads, so tills never wait for it, and no snapshot is held for long.
 */
export async function sumUpDay(service: Service, pieces: Pieces, day: Day, until: Date): Promise<DaySums> {
  const sums = { until, cohorts: new Sums(), reversals: new Sums(), ages: new Sums() };
  await pieces.over(day.startsAt, until, (from, to) =>
    readLong(service, (tx) => addInterval(tx, sums, day, [from, to])),
  );
  for await (const range of rangesOf(service, day)) {
    if (pieces.isStopping) break;
    const ask = sumAges(day.day, day.endsAt, day.zone, range);
    await pieces.run(async () => sums.ages.add(await readLong(service, (tx) => tx.query<SumRow>(ask))));
  }
  return sums;
}

/** Adds the movements of an interval of a day. Returns how many movements of vouchers there were. */
export async function addInterval(
  tx: Queries,
  { cohorts, reversals }: Pick<DaySums, 'cohorts' | 'reversals'>,
  { startsAt, zone }: Day,
  [from, to]: readonly [Date, Date],
): Promise<number> {
  const rows = cohorts.add(await tx.query<SumRow>(sumCohorts(from, to, zone)));
  reversals.add(await tx.query<SumRow>(sumReversals(from, to, startsAt)));
  return rows;
}

/** Makes the sums again after late rows were found: they may have come after the sums were made. */
export async function sumAgain(tx: Queries, sums: DaySums, day: Day): Promise<void> {
  sums.cohorts.clear();
  sums.reversals.clear();
  sums.ages.clear();
  await addInterval(tx, sums, day, [day.startsAt, sums.until]);
  sums.ages.add(await tx.query<SumRow>(sumAges(day.day, day.endsAt, day.zone, [0n, LAST_SERIAL])));
}

export async function insertSums(tx: Queries, { day }: Day, sums: DaySums): Promise<void> {
  await tx.query(insertCohorts(day, sums.cohorts.json));
  await tx.query(insertReversals(day, sums.reversals.json));
  await tx.query(insertAging(day, sums.ages.json));
}

/** Lists the sealed slices of an interval to which rows were added later. */
export async function findLateSlices(
  service: Service,
  pieces: Pieces,
  from: Date,
  until: Date,
): Promise<Date[]> {
  const found: Date[] = [];
  type Slice = { slice_at: Date; rows: bigint; is_late: boolean };
  await pieces.over(from, until, async (start, end) => {
    const slices = await readLong(service, (tx) => tx.query<Slice>(listSlices(start, end)));
    found.push(...slices.filter(({ is_late }) => is_late).map(({ slice_at }) => slice_at));
    return slices.reduce((sum, { rows }) => sum + Number(rows), 0);
  });
  return found;
}

function readLong<T>({ db }: Service, read: (tx: Queries) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(allowLongWork);
    return read(tx);
  }, 'read committed');
}

/** Divides the vouchers into ranges of serial numbers. Shards share the work: over them it is one range. */
async function* rangesOf(service: Service, { endsAt }: Day): AsyncGenerator<readonly [bigint, bigint]> {
  let after = 0n;
  const isFresh = service.clock().getTime() - endsAt.getTime() < FRESH_MS;
  while (isFresh && !isSharded(service)) {
    const [end] = await service.db.query<{ serial_number: bigint }>(findRangeEnd(after, RANGE));
    if (!end) break;
    yield [after, end.serial_number];
    after = end.serial_number;
  }
  yield [after, LAST_SERIAL];
}
