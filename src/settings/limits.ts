import type { Moved } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import type { AnyOperation, Caller, Condition } from '../operation.ts';
import type { Principal } from '../principal.ts';
import { HOUR_MS } from '../time.ts';
import { limitOf, readSettings } from './settings.ts';

/** The limits up to which one person moves money, or changes many vouchers. */

export const MANY_VOUCHERS: Condition = {
  text: 'it concerns a batch, a range of it, or more vouchers than the limit',
  applies: async ({ service }, { serialNumbers }) =>
    !Array.isArray(serialNumbers) || serialNumbers.length > (await readSettings(service.db)).approvalVouchers,
};

/** To block cards must not wait: they can be spent meanwhile. */
export const UNBLOCKS_OR_EXTENDS_MANY: Condition = {
  text: 'it unblocks or extends a batch, a range of it, or more vouchers than the limit',
  applies: (caller, input) => input['action'] !== 'block' && MANY_VOUCHERS.applies(caller, input),
};

/** Movements count for this time. */
const COUNTED_MS = 24 * HOUR_MS;

/** Thrown in the transaction of a change that one person may not perform alone. */
export class NeedsApproval extends Error {
  override readonly name = 'NeedsApproval';
}

/**
 * Returns the name under which movements of a principal are counted: a person with all its tokens, all tokens
 * that belong to nobody, or the command line.
 */
function makerOf({ kind, userId }: Principal): string {
  if (userId !== null) return `user ${userId}`;
  return kind === 'token' ? 'tokens' : MACHINE;
}

const MACHINE = 'machine';

/**
 * Counts what a change has moved by hand, in its transaction. The lock of the audit, which the change holds,
 * lets one change at a time count.
 * @param moved what the change has reported
 * @throws NeedsApproval if two people have to agree on it
 */
export async function countMoved(
  tx: Queries,
  { name, approval }: Pick<AnyOperation, 'name' | 'approval'>,
  { service, principal }: Pick<Caller, 'service' | 'principal'>,
  moved: readonly Moved[],
): Promise<void> {
  if (moved.length === 0) return;
  const kinds = approval?.people === 2 ? (approval.when ?? []).map((each) => each.moved) : [];
  if (kinds.includes('any')) throw new NeedsApproval();
  if (!kinds.includes('above-limit'))
    throw new Error(`${name} moves money by hand, and its declaration does not say who agrees to that`);
  const maker = makerOf(principal);
  const now = service.clock();
  for (const { currency, minor, subjects } of moved)
    await tx.query(sql`
insert into manual_movements (moved_at, maker, operation, subjects, currency, amount_minor)
values (${now}, ${maker}, ${name}, ${subjects}::text[], ${currency}, ${minor})`);
  const settings = await readSettings(tx);
  const subjects = maker === MACHINE ? [] : [...new Set(moved.flatMap((each) => each.subjects))];
  const currencies = [...new Set(moved.map(({ currency }) => currency))];
  const since = new Date(now.getTime() - COUNTED_MS);
  // What the maker has moved, and what anybody but the command line has moved of each subject.
  const sums = await tx.query<Pick<Moved, 'currency' | 'minor'>>(sql`
with moved as materialized (
  select maker, subjects, currency, amount_minor from manual_movements
  where moved_at > ${since} and currency = any (${currencies}::text[])
)
select currency, sum(amount_minor)::bigint as minor from moved where maker = ${maker} group by currency
union all
select m.currency, sum(m.amount_minor)::bigint
from unnest(${subjects}::text[]) s join moved m on s = any (m.subjects) and m.maker <> ${MACHINE}
group by s, m.currency`);
  const isAbove = sums.some(({ currency, minor }) => minor > limitOf(settings, currency));
  if (isAbove) throw new NeedsApproval();
}
