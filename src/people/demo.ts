import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { newBearer } from '../credentials.ts';
import { sql } from '../db/sql.ts';
import { HOUR_MS } from '../time.ts';
import { insertSignIn } from './begun.ts';
import { insertUser } from './invite.ts';
import { subjectOf } from './users.ts';

/** The people of the demo, who sign in by links. */

export type DemoPerson = {
  /** An address that can receive no mail, since the name is reserved (RFC 2606). */
  readonly email: `${string}@demo.invalid`;
  readonly name: string;
  readonly roles: readonly string[];
  readonly merchantId: number | null;
};

export const DEMO_OWNER: DemoPerson = {
  email: 'owner@demo.invalid',
  name: 'Demo owner',
  roles: ['owner'],
  merchantId: null,
};

/** The validity of a link. */
const SIGN_IN_LINK_MS = HOUR_MS;

/**
 * Makes a link with which a person of the demo signs in once, without password and second factor, from this
 * machine only.
 * @returns its token, which is not stored
 */
export async function inviteDemoPerson(operator: Operator, person: DemoPerson): Promise<string> {
  const { service } = operator;
  const { email, merchantId } = person;
  const { token, tokenHash } = newBearer(service.keys, 'sign-in');
  const now = service.clock();
  const expiresAt = new Date(now.getTime() + SIGN_IN_LINK_MS);
  await service.db.transaction(async (tx) => {
    const user = await insertUser(tx, person, now);
    // This machine confirms the account.
    await tx.query(sql`
update users set
  enrolled_at = ${now}, confirmed_at = ${now}, invitation_hash = null, invitation_expires_at = null
where id = ${user.id} and enrolled_at is null`);
    await tx.query(sql`delete from sign_ins where user_id = ${user.id} and stage = 'link'`);
    await tx.query(insertSignIn({ tokenHash, userId: user.id, stage: 'link', expiresAt }));
    const subject = subjectOf(user.id);
    await audit(tx, operator, { action: 'user.invite', subject, after: { email, merchantId, expiresAt } });
  });
  return token;
}
