import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { Problem } from '../problem.ts';
import {
  countApprovers,
  findApprover,
  findMakers,
  findPeopleBehind,
  findPersons,
  holdUsers,
  setConfirmed,
} from './persons.queries.ts';
import { changeUser, subjectOf, toUser, type UserInfo } from './users.ts';

/**
 * Who is a person (docs/how-to/people.md, "Who counts as a person"). Each caller leads to a person or to the
 * machine:
 *
 * - a session leads to its user. An account that somebody else made is a person once a third one has
 *   confirmed it. Until then it approves nothing, and what it proposes may belong to those who know its link.
 * - a token leads to its user, or to nobody. What it proposes may belong to all who know the token. What a
 *   token of nobody proposes needs two approvers.
 * - the command line is the machine. It proposes nothing.
 *
 * The database keeps these rules itself (sql/020-people.sql, sql/022-approvals.sql).
 */

type Makers = { readonly makers: number[] };

const known = (ids: readonly (number | null | undefined)[]) =>
  ids.filter((id): id is number => typeof id === 'number');

/** Why a user may not approve: the account is not a person, or may be the maker's. */
type Obstacle = 'not-confirmed' | 'own' | 'may-be-own';

/** What stands behind a proposal, seen by a user who wants to approve it. */
type Standing = {
  readonly obstacle: Obstacle | undefined;
  /** Whether the proposal is nobody's, so that two people have to approve it. */
  readonly isNobodys: boolean;
};

/** Returns how a user stands to a proposal. */
export async function standingTo(
  tx: Queries,
  { id, makerId }: { readonly id: string; readonly makerId: number | null },
  userId: number,
): Promise<Standing> {
  const [{ makers } = { makers: [] }] = await tx.query<Makers>(findMakers(Number(id)));
  const isNobodys = makers.length === 0;
  const isPerson = (await tx.query(findPersons([userId]))).length > 0;
  if (!isPerson) return { obstacle: 'not-confirmed', isNobodys };
  if (!makers.includes(userId)) return { obstacle: undefined, isNobodys };
  return { obstacle: makerId === userId ? 'own' : 'may-be-own', isNobodys };
}

/**
 * Keeps users as they are until the transaction ends, so that nobody is disabled or loses a role between a
 * check and its effect.
 */
export async function holdPeople(tx: Queries, ids: readonly (number | null | undefined)[]): Promise<void> {
  await tx.query(holdUsers(known(ids)));
}

/**
 * Returns whether two people could ever approve. Disabling one of them, or taking a role away, does not
 * change that: otherwise an owner could remove the second person, and be alone again.
 */
export async function areTwoPeople(db: Queries): Promise<boolean> {
  const [row] = await db.query<{ count: number }>(countApprovers());
  return (row?.count ?? 0) > 1;
}

/** Returns whether a user is the only person who could ever approve, and can do so now. */
export async function isOnlyPerson(db: Queries, userId: number): Promise<boolean> {
  return (await db.query(findApprover(userId))).length > 0 && !(await areTwoPeople(db));
}

/**
 * Confirms that an account belongs to the person that it names, and not to those who know its link.
 * @param by the users who confirm it; none for the command line
 * @throws Problem `not-found`; `conflict` if the user has not enrolled or is disabled; `forbidden` for a user
 *   who may be the same person
 */
export async function confirmUser(
  operator: Operator,
  id: number,
  by: readonly (number | null | undefined)[],
): Promise<UserInfo> {
  const confirmers = known(by);
  return changeUser(operator, id, async (tx, user) => {
    if (!user.enrolled_at || user.disabled_at)
      throw new Problem('conflict', 'only somebody who has enrolled, and is not disabled, can be confirmed');
    if (toUser(user).confirmed) return { result: toUser(user) };
    const [{ makers } = { makers: [] }] = await tx.query<Makers>(findPeopleBehind(id));
    if (confirmers.some((each) => makers.includes(each)))
      throw new Problem(
        'forbidden',
        'this account may be yours: somebody else, who does not know its link, confirms it',
      );
    if ((await tx.query(findPersons(confirmers))).length < confirmers.length)
      throw new Problem('forbidden', 'your own account has to be confirmed first');
    const now = operator.service.clock();
    await tx.query(setConfirmed(id, confirmers[0] ?? null, now));
    const audited = {
      action: 'user.confirm',
      subject: subjectOf(id),
      before: { mayBelongTo: makers.filter((each) => each !== id) },
      after: { confirmed: true },
    };
    return { result: toUser({ ...user, confirmed_at: now }), audited };
  });
}
