import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { kindsOn, listOf } from '../ledger/kinds.ts';
import { bookedBetween } from './days.ts';

/**
 * The rows that a settlement sums: those of closed days on the settlement account of a merchant. Their tree
 * has the order of the trees of the days: by slice, and then by time and id (docs/reference/proof.md).
 */

/** A settlement, or the draft of one. */
export type Settled = {
  readonly merchantId: string | number;
  readonly currency: string;
  readonly startsAt: Date;
  readonly endsAt: Date;
};

const REDEEMED = ['REDEMPTION', 'REDEMPTION_REVERSAL'] as const;
const OTHERS = kindsOn('SETTLEMENT').filter((kind) => !REDEEMED.some((each) => each === kind));

/** Selects the rows of a settlement from `book_rows`, in any order. */
export function settledRows({ merchantId, currency, startsAt, endsAt }: Settled): Sql {
  const common = sql`
select * from book_rows
where ${bookedBetween(startsAt, endsAt)} and merchant_id = ${merchantId}::integer and currency = ${currency}
  and (
    select id from accounts
    where merchant_id = ${merchantId}::integer and currency = ${currency} and kind = 'SETTLEMENT'
  ) in (debit_account, credit_account)`;
  // Each part reads its own index.
  return sql`
${common} and batch_id is null and kind in ${listOf(REDEEMED)}
union all
${common} and kind in ${listOf(OTHERS)}`;
}

/** Returns the root of the tree of a settlement's rows. */
export async function rootOfSettled(tx: Queries, settled: Settled): Promise<Buffer> {
  const [tree] = await tx.query<{ root: Buffer }>(sql`
with own as (${settledRows(settled)})
select merkle_root(coalesce(string_agg(leaf, ''::bytea order by slice_at, occurred_at, id), ''::bytea))
  as root
from own`);
  if (!tree) throw new Error('an aggregate returned no row');
  return tree.root;
}
