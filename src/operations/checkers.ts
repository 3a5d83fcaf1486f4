import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import type { AnyOperation, Caller } from '../operation.ts';
import { holdPeople, isOnlyPerson, standingTo } from '../people/persons.ts';
import { holdToken, rolesOfToken } from '../people/tokens.ts';
import { findUser } from '../people/users.ts';
import type { PortalRole, Role } from '../principal.ts';
import { Problem } from '../problem.ts';
import { approversOf, mayPropose, requireReason } from './admit.ts';
import type { Proposal } from './propose.ts';

/** Who may approve a proposal, and whose approval counts (docs/how-to/people.md, "Four eyes"). */

/**
 * What an approval leads to. `first`: the proposal is nobody's, and waits for a second approval. `alone`: it
 * is performed although nobody else approved it, since there is no second person yet.
 */
export type Turn = 'perform' | 'first' | 'alone';

/**
 * Decides what the approval of a caller leads to. The users whom it depends on stay as they are until the
 * transaction ends.
 * @param isOtherEffect whether the caller confirms another effect than the one that is stored
 * @throws Problem `forbidden` for a person who may be the maker, an account that nobody has confirmed, a
 *   token, or a user without the role; `conflict` before the delay has passed, for the first approver again,
 *   or if the maker may not propose it any more
 */
export async function turnOf(
  tx: Queries,
  row: Proposal,
  operation: AnyOperation,
  caller: Caller,
  isOtherEffect: boolean,
): Promise<Turn> {
  const { principal } = caller;
  requirePerson(caller);
  const ofToken = row.tokenId === null ? [] : await holdToken(tx, row.tokenId);
  await holdPeople(tx, [principal.userId, row.makerId, row.firstCheckerId, ...ofToken]);
  await checkMaker(tx, row, operation);
  if (principal.kind === 'break-glass') return 'perform';
  return turnOfUser(tx, row, operation, { caller, userId: principal.userId as number, isOtherEffect });
}

function requirePerson({ principal, actor }: Caller): void {
  if (principal.kind === 'token') throw new Problem('forbidden', 'a token can propose, but never approve');
  if (principal.kind === 'command-line')
    throw new Problem('approval-required', 'the command line approves only with --break-glass and --reason');
  if (principal.kind === 'break-glass') requireReason(actor);
}

async function turnOfUser(
  tx: Queries,
  row: Proposal,
  operation: AnyOperation,
  { caller, userId, isOtherEffect }: { caller: Caller; userId: number; isOtherEffect: boolean },
): Promise<Turn> {
  if (!(await mayApprove(tx, userId, operation)))
    throw new Problem(
      'forbidden',
      `${operation.name} is approved by one of the roles ${approversOf(operation).join(', ')}`,
    );
  const { obstacle, isNobodys } = await standingTo(tx, row, userId);
  if (obstacle === 'not-confirmed')
    throw new Problem(
      'forbidden',
      'your account approves nothing until somebody who does not know its link has confirmed it, under Users',
    );
  if (obstacle === undefined && !isNobodys) {
    await checkApart(tx, row, operation, userId);
    return 'perform';
  }
  if (row.notBefore !== null && caller.service.clock() >= row.notBefore) return 'perform';
  if (row.mode === 'two-people' && (await isOnlyPerson(tx, userId))) return 'alone';
  if (obstacle !== undefined) throw ownProposal(row, obstacle);
  await checkApart(tx, row, operation, userId);
  const first = row.firstCheckerId;
  const isCounted =
    first !== null &&
    !isOtherEffect &&
    (await standingTo(tx, row, first)).obstacle === undefined &&
    (await mayApprove(tx, first, operation));
  if (!isCounted) return 'first';
  if (first !== userId) return 'perform';
  throw new Problem('conflict', 'you have approved this: another person has to approve it, too');
}

/**
 * Checks that a person did not approve the operation before this one on the same subject: for example, a
 * settlement and its payout are approved by different people.
 * @throws Problem `forbidden` otherwise
 */
async function checkApart(
  tx: Queries,
  { input }: Proposal,
  { approval }: AnyOperation,
  userId: number,
): Promise<void> {
  if (approval?.people !== 2 || approval.after === null) return;
  const { id } = input as { readonly id: string };
  const [earlier] = await tx.query<{ checkers: (number | null)[] }>(sql`
select array[first_checker_id, checker_id] as checkers from approvals
where operation = ${approval.after} and state = 'APPROVED' and input::json ->> 'id' = ${id} and not is_alone
order by id desc limit 1`);
  if (earlier?.checkers.includes(userId))
    throw new Problem(
      'forbidden',
      `you approved ${approval.after} of ${id}: another person approves this. You can propose it yourself`,
    );
}

/** Returns whether a user is active, and has a role that may approve an operation. */
async function mayApprove(tx: Queries, userId: number, operation: AnyOperation): Promise<boolean> {
  const user = await findUser(tx, userId);
  return user?.state === 'active' && user.roles.some((role) => approversOf(operation).includes(role));
}

function ownProposal({ notBefore }: Proposal, obstacle: 'own' | 'may-be-own'): Problem {
  if (notBefore !== null)
    return new Problem('conflict', `you can approve this yourself from ${notBefore.toISOString()}`);
  return new Problem(
    'forbidden',
    obstacle === 'own'
      ? 'this was proposed by you: another person has to approve it'
      : 'this may be a proposal of your own: its maker is an account or a token that you made, approved or ' +
          'received. Another person approves it',
  );
}

/** Checks that the maker may still propose the operation. @throws Problem `conflict` otherwise */
async function checkMaker(tx: Queries, row: Proposal, operation: AnyOperation): Promise<void> {
  const may = (roles: readonly string[]) =>
    roles.some((role) => operation.roles.some((each) => each === role)) ||
    mayPropose(operation, { roles: roles as (Role | PortalRole)[], merchantId: null });
  // The machine may propose whatever it could perform.
  if (row.makerId === null && row.tokenId === null) return;
  if (row.tokenId !== null) {
    const roles = await rolesOfToken(tx, row.tokenId);
    if (!roles) throw new Problem('conflict', 'the token that proposed this was revoked: reject it');
    if (!may(roles))
      throw new Problem('conflict', 'the token that proposed this may not do so any more: reject it');
    return;
  }
  const user = await findUser(tx, row.makerId as number);
  if (user?.state !== 'active' || !may(user.roles))
    throw new Problem('conflict', 'the person who proposed this may not do so any more: reject it');
}
