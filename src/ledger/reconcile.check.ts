import type { Sql } from '../db/sql.ts';

/** Differences that a check shows: enough to see what they have in common. */
export const EXAMPLES = 10;

type Scope = {
  /**
   * Over shards: what is compared across them was booked before this; null on one server, where all is
   * compared.
   */
  readonly quietBefore: Date | null;
  /** The bucket of each position. */
  readonly buckets: readonly number[];
  readonly since: Since;
};

/** Where a reconciliation begins. */
export type Since = {
  /** The last closed day, whose balances are the opening ones; null: with the first row. */
  readonly day: string | null;
  /** The end of that day; `-infinity`. */
  readonly at: string;
  /** No row since then has an id below this one: an id is of the hour around its row's time. */
  readonly id: string;
};

export const EVER: Since = { day: null, at: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/**
 * One statement for each check, over the whole database or over what came since. Out: how many rows were
 * checked, and examples of what differs, as JSON, or null. Each reads its tables once or twice from end to
 * end and joins them by hash, whatever their size; amounts are text in minor units, since what differs
 * can be of any size. Examples stand in no order: sorted, they would be found by walking an index.
 *
 * Over shards there is no snapshot of all of them at one moment. So everything that changes while the
 * tills run is compared within a bucket (joined by it, without a union): a shard answers from one
 * snapshot of its own. What spans shards is compared only where it has been quiet since `quietBefore`.
 */
export type Checks = Readonly<Record<string, (scope: Scope) => Sql>>;
