import type { Operator } from '../context.ts';
import { Problem } from '../operator/problem.ts';
import { samePerson, setConfirmed } from './queries.ts';
import { changeUser, subjectOf, toUser, type UserInfo } from './users.ts';

/**
 * Confirms that an account belongs to the person that it names, and not to the user that was handed its link:
 * until then the two count as one person (docs/how-to/people.md, "Four eyes").
 * @param by null for the command line
 * @throws Problem `not-found`; `conflict` for somebody who has not enrolled, or is disabled; `forbidden` for
 *   what may be the same person
 */
export async function confirmUser(operator: Operator, id: number, by: number | null): Promise<UserInfo> {
  return changeUser(operator, id, async (tx, user) => {
    if (!user.enrolled_at || user.disabled_at)
      throw new Problem('conflict', 'only somebody who has enrolled, and is not disabled, can be confirmed');
    if (toUser(user).confirmed) return { result: toUser(user) };
    const [found] = await tx.query<{ same: boolean }>(samePerson(id, by));
    if (found?.same)
      throw new Problem(
        'forbidden',
        'this account may be yours: somebody who was not handed its link confirms it',
      );
    const now = operator.service.clock();
    await tx.query(setConfirmed(id, by, now));
    const audited = {
      action: 'user.confirm',
      subject: subjectOf(id),
      before: { handedTo: user.handed_to },
      after: { confirmed: true },
    };
    return { result: toUser({ ...user, confirmed_at: now }), audited };
  });
}
