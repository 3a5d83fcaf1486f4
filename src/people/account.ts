import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { invalid } from '../operator/problem.ts';
import { countAttempt, takeBack } from './attempts.ts';
import { replaceRecoveryCodes } from './factors.ts';
import { checkNewPassword, hashPassword, isPassword } from './password.ts';
import { findUserById, setPasswordHash, type UserRow } from './queries.ts';
import { deleteSessions } from './sessions.queries.ts';
import { actorOfUser, type Origin, type Session } from './sessions.ts';
import { requireSteppedUp } from './sign-in.ts';

/** What people change about their own account. */

/**
 * Changes the password, and ends the user's other sessions.
 * @throws Problem `step-up-required`; `invalid`; `too-many-requests`
 */
export async function changePassword(
  service: Service,
  session: Session,
  { password, newPassword }: { readonly password: string; readonly newPassword: string },
  origin: Origin,
): Promise<void> {
  requireSteppedUp(session);
  const { id, email } = session.user;
  const attempt = { email, address: origin.address };
  await checkNewPassword(newPassword, email);
  await countAttempt(service, attempt);
  const [user] = await service.db.query<UserRow>(findUserById(id));
  if (!(await isPassword(password, user?.password_hash ?? null)))
    throw invalid('password', 'wrong', 'is not the present password');
  await takeBack(service, attempt);
  const hash = await hashPassword(newPassword);
  await service.db.transaction(async (tx) => {
    await tx.query(setPasswordHash(id, hash));
    await tx.query(deleteSessions(id, session.id));
    const operator = { service, actor: actorOfUser(session.user, origin) };
    await audit(tx, operator, { action: 'user.change-password', subject: `user ${id}` });
  });
}

/** Makes new recovery codes; the old ones are of no use any more. @throws Problem `step-up-required` */
export async function renewRecoveryCodes(
  service: Service,
  session: Session,
  origin: Origin,
): Promise<string[]> {
  requireSteppedUp(session);
  const { user } = session;
  return service.db.transaction(async (tx) => {
    const codes = await replaceRecoveryCodes(tx, user.id);
    const operator = { service, actor: actorOfUser(user, origin) };
    await audit(tx, operator, { action: 'user.renew-recovery-codes', subject: `user ${user.id}` });
    return codes;
  });
}
