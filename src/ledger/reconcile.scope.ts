import { raw, type Sql, sql } from '../db/sql.ts';

/** The number of differences that a check shows: enough to see what they have in common. */
export const EXAMPLES = 10;

type Scope = {
  /**
   * On several shards, data that spans them is compared only if it was booked before this time; null on one
   * server, where everything is compared.
   */
  readonly quietBefore: Date | null;
  /** The bucket of each position. */
  readonly buckets: readonly number[];
  readonly since: Since;
  readonly now: Date;
};

/** The point at which a reconciliation begins. */
export type Since = {
  /** The last closed day, whose balances are the opening ones; null: it begins with the first row. */
  readonly day: string | null;
  /** The end of that day, or `-infinity`. */
  readonly at: string;
  /** No later row has an id below this one: an id is within an hour of its row's time. */
  readonly id: string;
  /** Whether it reads all vouchers, since they are few, and not only those that moved. */
  readonly readsVouchers: boolean;
};

export const EVER: Since = {
  day: null,
  at: '-infinity',
  id: '00000000-0000-0000-0000-000000000000',
  readsVouchers: true,
};

/** The queries of a check: how many rows it compares, and which differ. `given` is what both begin `with`. */
type Check = {
  readonly given?: Sql;
  readonly checked: Sql;
  readonly differing: Sql;
  /** How many differences are read: by default the examples that are shown. */
  readonly most?: number;
};

/**
 * The checks by their names, over the whole database or over later rows. Over the whole database, a check
 * reads its tables once or twice completely and joins them by hash. Over later rows, it finds them along an
 * index, and everything else by its key. Amounts are text in minor units, since wrong ones can have any size.
 *
 * On several shards there is no common snapshot. Data that changes while the tills run is compared within a
 * bucket (joined by it, without a union), because a shard answers from a single snapshot. Data that spans
 * shards is compared only if it has been quiet since `quietBefore`.
 */
export type Checks = Readonly<Record<string, (scope: Scope) => Check>>;

/**
 * Returns the statement of a check: the number of rows, and examples of differences as JSON, or null. They
 * are not sorted: sorting would make the planner walk an index.
 */
export function statementOf({ given, checked, differing, most = EXAMPLES }: Check): Sql {
  return sql`
${given ? sql`with ${given}` : sql``}
select (${checked}) as checked, json_agg(d) as differing from (${differing} limit ${most}) d`;
}

/** The condition for a row `j` of the journal that the reconciliation reads. */
export const isLater = ({ id, at }: Since) =>
  sql`j.id >= ${id}::uuid and j.occurred_at >= ${at}::timestamptz`;

/** The condition for a time up to which all shards show the same. */
export const isQuiet = (quietBefore: Date | null, time: string) =>
  sql`(${quietBefore}::timestamptz is null or ${raw(time)} < ${quietBefore})`;
