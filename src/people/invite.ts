import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { newBearer } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { findMerchant, merchantNamed } from '../merchants/merchants.ts';
import { type Caller, type Condition, changing, tableOf, twoPeople } from '../operation.ts';
import { isGlassClosed } from '../operations/four-eyes.ts';
import { GOVERN } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { Line, MerchantId, Nullable, Positional, Time, toId } from '../schema.ts';
import { HOUR_MS } from '../time.ts';
import { endSessions } from './sessions.ts';
import {
  type Account,
  changeUser,
  checkRoles,
  grantsPower,
  NamedUser,
  ofAddress,
  ofUser,
  Roles,
  readAccounts,
  requireUser,
  subjectOf,
  UserId,
  updateUser,
} from './users.ts';

/** Links with which people enroll: of an invitation, or after a reset. Each is valid once, for 72 hours. */

const INVITATION_MS = 72 * HOUR_MS;

const Email = Positional(Line(254, 'An email address.', 'ada@example.com'));

const InvitationSchema = Type.Object({
  id: UserId,
  link: Type.String({
    secret: true,
    description:
      'The path of the page on which the person enrolls, below the address of the service. Shown once.',
  }),
  expiresAt: Time,
});

/** From whom a link goes to whom. */
type Handing = {
  /** The user that made the link, or proposed it; null for the command line. */
  readonly invitedBy: number | null;
  /** The user that received it; null for the command line. */
  readonly handedTo: number | null;
  /** Whether the account counts as that of the person it names, since the machine is trusted. */
  readonly isConfirmed: boolean;
};

/** The machine receives the link, and is trusted with it. */
const TO_MACHINE: Handing = { invitedBy: null, handedTo: null, isConfirmed: true };

/** A link for enrolling. Its token is not stored. */
export type Invitation = { readonly userId: number; readonly token: string; readonly expiresAt: Date };

export type Invite = {
  readonly email: string;
  readonly name?: string | undefined;
  readonly roles: readonly string[];
  /** Null for a user of the operator. */
  readonly merchantId: number | null;
  readonly handing?: Handing;
};

/** Inserts a user unless there is one, and locks it. */
export async function insertUser(
  tx: Queries,
  { email, name, merchantId, roles, now }: Omit<Invite, 'handing'> & { readonly now: Date },
): Promise<Account> {
  await tx.query(sql`
insert into users (email, name, merchant_id, roles, created_at)
values (${email}, ${name}, ${merchantId}, ${roles}, ${now}) on conflict (email, merchant_id) do nothing`);
  const [user] = await readAccounts(tx, sql`${ofAddress(email, merchantId)} for update of u`);
  return user as Account;
}

/**
 * Invites a person. A person who has not enrolled yet gets another link, and the previous link becomes
 * invalid.
 * @throws Problem `invalid`; `not-found` for the merchant; `exists` for a person who has enrolled
 */
export async function inviteUser(operator: Operator, invite: Invite): Promise<Invitation> {
  const email = invite.email.trim().toLowerCase();
  if (!/^[^\s@"<>]{1,64}@[^\s@"<>]{1,189}$/.test(email) || /\p{C}/u.test(email))
    throw invalid('email', 'format', 'must be an email address');
  const { merchantId } = invite;
  const roles = checkRoles(invite.roles, merchantId);
  const { service } = operator;
  return service.db.transaction(async (tx) => {
    if (merchantId !== null && !(await findMerchant(tx, merchantId))) throw notFound('such merchant');
    const name = invite.name?.trim() || email.slice(0, email.indexOf('@'));
    const user = await insertUser(tx, { email, name, merchantId, roles, now: service.clock() });
    if (user.state !== 'invited')
      throw new Problem(
        'exists',
        'there is a user with this email address: change its roles, or reset its second factor',
      );
    await updateUser(tx, user.id, sql`name = ${name}, roles = ${roles}`);
    const invitation = await insertLink(operator, tx, user.id, invite.handing);
    const after = { email, name, roles, merchantId, expiresAt: invitation.expiresAt };
    await audit(tx, operator, { action: 'user.invite', subject: subjectOf(user.id), after });
    return invitation;
  });
}

async function insertLink(
  { service }: Operator,
  tx: Queries,
  userId: number,
  { invitedBy, handedTo, isConfirmed }: Handing = TO_MACHINE,
): Promise<Invitation> {
  const { token, tokenHash } = newBearer(service.keys, 'invitation');
  const now = service.clock();
  const expiresAt = new Date(now.getTime() + INVITATION_MS);
  // A confirmation becomes void, since it was given without knowledge of this link.
  const confirmedAt = isConfirmed ? now : null;
  const holders = sql`invited_by = ${invitedBy}, handed_to = ${handedTo}, confirmed_at = ${confirmedAt}`;
  await updateUser(tx, userId, sql`${holders}, confirmed_by = null`);
  // An earlier link becomes void. The database records from the holders who knows this one.
  const link = sql`invitation_hash = ${tokenHash}, invitation_expires_at = ${expiresAt}`;
  await updateUser(tx, userId, link);
  return { userId, token, expiresAt };
}

/**
 * Removes a user's password, second factors and recovery codes, ends the sessions, and makes a new link for
 * enrolling.
 * @throws Problem `not-found`; `conflict` for a disabled user
 */
export async function resetUser(operator: Operator, id: number, handing?: Handing): Promise<Invitation> {
  return changeUser(operator, id, async (tx, user) => {
    if (user.state === 'disabled') throw new Problem('conflict', 'this user is disabled: enable it first');
    await tx.query(sql`
with gone as (delete from passkeys where user_id = ${id}),
  codes as (delete from recovery_codes where user_id = ${id})
update users set
  password_hash = null, totp_secret = null, totp_step = null, enrolled_at = null, oidc_issuer = null,
  oidc_subject = null
where id = ${id}`);
    await endSessions(tx, id);
    const result = await insertLink(operator, tx, id, handing);
    const before = { factors: user.factors };
    const after = { factors: [], expiresAt: result.expiresAt };
    return { result, audited: { action: 'user.reset-2fa', before, after } };
  });
}

/**
 * Returns an invitation with its link. The token is in the fragment of the URL, which browsers do not send,
 * so no proxy logs it.
 */
function toInvitationJson({ userId, token, expiresAt }: Invitation, merchantId: number | null) {
  return {
    id: String(userId),
    link: `/${merchantId === null ? 'console' : 'portal'}/enroll#${token}`,
    expiresAt,
  };
}

/**
 * Returns who receives a link: the user who approved the proposal, or else the caller. A link that the
 * command line prints is trusted as long as one person sets the service up, and after that if it broke the
 * glass.
 */
async function handingOf({ service, principal, checkerId }: Caller): Promise<Handing> {
  const { kind, userId } = principal;
  const handedTo = checkerId === undefined ? userId : checkerId;
  const isConfirmed = userId === null && (kind === 'break-glass' || !(await isGlassClosed(service)));
  return { invitedBy: userId, handedTo, isConfirmed };
}

const INVITES_POWER: Condition = {
  text: 'the user is one of the operator with a role that can approve movements of money, or one of a merchant',
  applies: (_caller, { merchantId = null, roles }) => merchantId !== null || grantsPower(roles),
};

export const invite = changing({
  name: 'user.invite',
  summary: 'Invite a person: create a link that is valid once, for 72 hours',
  path: '/users',
  input: {
    email: Email,
    name: Type.Optional(Line(100, 'What the person is called.', 'Ada Lovelace')),
    roles: Roles,
    merchantId: Type.Optional(Nullable(MerchantId)),
  },
  output: InvitationSchema,
  isForPeople: true,
  roles: GOVERN,
  approval: twoPeople({
    why: 'It gives a right: to approve movements of money, or to take what belongs to a merchant.',
    when: [INVITES_POWER],
  }),
  agreement: {
    sentence: 'Invite {email} to {merchant} with the roles {roles}',
    async of(asked) {
      const { email, name, roles, merchantId } = asked.input;
      return { email, name, merchant: await merchantNamed(asked, merchantId), roles, link: '/users' };
    },
  },
  risk: 'step-up',
  status: 201,
  async run(caller, { email, name, roles, merchantId }) {
    const of = merchantId ? toId(merchantId, 'merchantId') : null;
    const wanted = { email, name, roles, merchantId: of, handing: await handingOf(caller) };
    return toInvitationJson(await inviteUser(caller, wanted), of);
  },
});

const reset = changing({
  name: 'user.reset-2fa',
  title: 'Reset the second factor',
  summary: "Take a user's password, second factors and sessions, and make a link to enroll again",
  path: '/users/:id/reset-2fa',
  input: { id: NamedUser },
  output: InvitationSchema,
  isForPeople: true,
  roles: GOVERN,
  approval: twoPeople({ why: 'A person who has the link becomes that user.' }),
  agreement: {
    sentence: 'Take the password and second factors of {email} of {merchant}, and make a link for new ones',
    of: ofUser,
  },
  async run(caller, { id }) {
    const { merchantId } = await requireUser(caller.service.db, id);
    return toInvitationJson(await resetUser(caller, toId(id), await handingOf(caller)), merchantId);
  },
});

export const invitations = { invite, reset };

export const INVITATIONS = tableOf(invite, reset);
