import { type Statement, statementOf } from '../agreement.ts';
import { audit } from '../audit/audit.ts';
import { inside, type Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { canonicalJson } from '../json.ts';
import { type AnyOperation, type Caller, type Fields, type Made, withoutSecrets } from '../operation.ts';
import { actorOf } from '../principal.ts';
import { Problem } from '../problem.ts';
import { markedAlone } from './admit.ts';
import { type Turn, turnOf } from './checkers.ts';
import { isSameEffect, readEffect, requireSameEffect } from './effect.ts';
import { changeOf, decideApproval, lockPending, type Proposal, requireApproval } from './propose.ts';

/**
 * The approval of a proposal. One transaction performs the operation on the state at that moment. If the
 * effect then differs from the one that the maker saw, the checker has to confirm the new one.
 */

type Decision = {
  readonly comment: string | null;
  /** The effect that the checker saw and confirms; undefined for the effect that the maker saw. */
  readonly effect?: readonly Made[] | undefined;
};

/**
 * Approves an operation and performs it, once and in one transaction, on the state at that moment. The first
 * approval of a proposal that is nobody's is only recorded.
 * @param find returns the operation with a name, or undefined
 * @returns its output; undefined after a first approval
 * @throws Problem `conflict` with the new effect if it differs from the confirmed one; any error of the
 *   operation. The approval then stays pending.
 */
export async function approve(
  caller: Caller,
  id: number,
  decision: Decision,
  find: (name: string) => AnyOperation | undefined,
): Promise<unknown> {
  const found = await requireApproval(caller, id);
  const operation = find(found.operation);
  if (!operation)
    throw new Problem('conflict', 'this version of the service does not know the operation: reject it');
  const { input } = found;
  await operation.prepare?.(caller, input);
  return approveChange({ caller, operation, row: found, decision });
}

type Deciding = {
  readonly caller: Caller;
  readonly operation: AnyOperation;
  readonly row: Proposal;
  readonly decision: Decision;
};

type Seen = { readonly effect: readonly Made[]; readonly statement: Statement };

/** Ends the transaction of a first approval: it performs the operation only to see the effect. */
class First {
  readonly seen: Seen;
  constructor(seen: Seen) {
    this.seen = seen;
  }
}

/** Several proposals may have one reference, and the first one to be approved is booked under it. */
const DONE = 'nothing is left to do: it was done already, or booked under the same reference. Reject this';

async function approveChange(deciding: Deciding): Promise<unknown> {
  const { caller, operation, decision } = deciding;
  const { service } = caller;
  const run = () =>
    service.db.transaction(async (tx) => {
      const { row, turn } = await decide(tx, deciding);
      const asMaker = makerFor(deciding, inside(service, tx));
      const output = await operation.run(asMaker.caller, asMaker.input);
      const effect = await readEffect(tx);
      if (effect.length === 0) throw new Problem('conflict', DONE);
      const statement = await statementOf(operation, { ...asMaker, made: effect });
      requireSameEffect(decision.effect ?? row.effect, effect, statement);
      if (turn === 'first') throw new First({ effect, statement });
      await tx.query(setOutput(row, withoutSecrets(operation, output), statement));
      await auditApproval(tx, deciding, turn);
      return output;
    });
  return retrying(async () => {
    for (;;) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof First)) throw error;
        // If another first approval has come in between, this one is the second.
        if (await approveFirst(deciding, error.seen)) return undefined;
      }
    }
  });
}

/** Keeps the answer of an operation, and what was approved in words. */
const setOutput = ({ id }: Proposal, output: string, statement: Statement) => sql`
update approvals set output = ${output}, statement = ${JSON.stringify(statement)} where id = ${id}`;

/** Decides what an approval leads to, and marks the proposal as approved unless it waits for a second one. */
async function decide(
  tx: Queries,
  { caller, operation, row: { id }, decision }: Deciding,
): Promise<{ row: Proposal; turn: Turn }> {
  const row = await lockPending(tx, caller, Number(id));
  const isOtherEffect = decision.effect !== undefined && !isSameEffect(decision.effect, row.effect);
  const turn = await turnOf(tx, row, operation, caller, isOtherEffect);
  if (turn !== 'first')
    await decideApproval(tx, caller, id, 'APPROVED', { ...decision, isAlone: turn === 'alone' });
  return { row, turn };
}

/** Returns the caller and the input of a proposal, which is performed as its maker. */
function makerFor({ caller, row }: Deciding, service: Service): { caller: Caller; input: Fields } {
  const { maker, firstChecker } = row;
  const approvedBy = [firstChecker, caller.principal.name].filter(Boolean).join(', ');
  const actor = { ...actorOf(maker, row.reason), approvedBy };
  const checkerId = caller.principal.userId;
  const asMaker = { service, principal: maker, actor, checkerId, isAgreed: true };
  return { caller: asMaker, input: row.input };
}

/**
 * Records the first of two approvals.
 * @param seen what it approves
 * @returns false if another one has been recorded meanwhile, so that this one would be the second
 */
async function approveFirst(deciding: Deciding, { effect, statement }: Seen): Promise<boolean> {
  const { caller, operation, row: found } = deciding;
  const { service, principal } = caller;
  return service.db.transaction(async (tx) => {
    const row = await lockPending(tx, caller, Number(found.id));
    const isOtherEffect = !isSameEffect(effect, row.effect);
    if ((await turnOf(tx, row, operation, caller, isOtherEffect)) !== 'first') return false;
    await tx.query(sql`
update approvals set
  first_checker_id = ${principal.userId}, first_checker = ${principal.name},
  first_checked_at = ${service.clock()}, effect = ${canonicalJson(effect)},
  statement = ${JSON.stringify(statement)}
where id = ${row.id} and state = 'PENDING'`);
    await auditApproval(tx, deciding, 'first');
    return true;
  });
}

function auditApproval(tx: Queries, { caller, row, decision }: Deciding, turn: Turn): Promise<void> {
  const change = changeOf(row, caller, 'approve', decision.comment);
  const after = { ...change.after, ...(turn === 'first' && { needsAnotherApproval: true }) };
  const by = turn === 'alone' ? markedAlone(caller) : caller;
  return audit(tx, by, { ...change, after });
}
