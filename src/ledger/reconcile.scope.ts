import type { Sql } from '../db/sql.ts';

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

/**
 * One statement for each check, over the whole database or over later rows. Each returns the number of
 * checked rows, and examples of differences as JSON, or null. Over the whole database, a statement reads its
 * tables once or twice completely and joins them by hash. Over later rows, it finds them along an index, and
 * everything else by its key. Amounts are text in minor units, since wrong ones can have any size. Examples
 * are not sorted: sorting would make the planner walk an index.
 *
 * On several shards there is no common snapshot. Data that changes while the tills run is compared within a
 * bucket (joined by it, without a union), because a shard answers from a single snapshot. Data that spans
 * shards is compared only if it has been quiet since `quietBefore`.
 */
export type Checks = Readonly<Record<string, (scope: Scope) => Sql>>;
