import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { newBearer } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { findMerchant, merchantNamed } from '../merchants/merchants.ts';
import { type Caller, type Condition, changing, tableOf, twoPeople } from '../operation.ts';
import { GOVERN } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { Email, Line, MerchantId, Nullable, Numbered, Positional, Time, toId } from '../schema.ts';
import { HOUR_MS } from '../time.ts';
import { isGlassClosed } from './persons.ts';
import {
  type Account,
  changeUser,
  checkRoles,
  ERASED_HOST,
  forgetCredentials,
  grantsPower,
  NamedUser,
  ofAddress,
  ofUser,
  Roles,
  readAccounts,
  subjectOf,
  type User,
  UserId,
  updateUser,
} from './users.ts';

/** Links with which people enroll: of an invitation, or after a reset. Each is valid once, for 72 hours. */

const INVITATION_MS = 72 * HOUR_MS;

const InvitationSchema = Type.Object({
  id: Numbered(UserId),
  link: Type.String({
    secret: true,
    description:
      'The path of the page on which the person enrolls, below the address of the service. Shown once.',
  }),
  expiresAt: Time,
});

/** A person who is invited; `merchantId` is null for a user of the operator. */
type Invited = Pick<User, 'email' | 'name' | 'merchantId'> & { readonly roles: readonly string[] };

/** Inserts a user unless there is one, and locks it. */
export async function insertUser(
  tx: Queries,
  { email, name, merchantId, roles }: Invited,
  now: Date,
): Promise<Account> {
  await tx.query(sql`
insert into users (email, name, merchant_id, roles, created_at)
values (${email}, ${name}, ${merchantId}, ${roles}, ${now}) on conflict (email, merchant_id) do nothing`);
  const [user] = await readAccounts(tx, sql`${ofAddress(email, merchantId)} for update of u`);
  return user as Account;
}

/**
 * Makes a link for enrolling, whose token is not stored. An earlier link becomes void. The link goes to the
 * user who approved the proposal, or else to the caller. A link that the command line prints is trusted as
 * long as one person sets up the service, and later only if it was made with `--break-glass`.
 * @returns the path of the page. The token is in its fragment, which browsers do not send, so that no proxy
 *   logs it
 */
async function insertLink({ service, principal, checkerId }: Caller, tx: Queries, user: Account) {
  const { kind, userId } = principal;
  const handedTo = checkerId === undefined ? userId : checkerId;
  const isConfirmed = userId === null && (kind === 'break-glass' || !(await isGlassClosed({ db: tx })));
  const { token, tokenHash } = newBearer(service.keys, 'invitation');
  const now = service.clock();
  const expiresAt = new Date(now.getTime() + INVITATION_MS);
  // A confirmation becomes void, since it was given without knowledge of this link.
  const confirmedAt = isConfirmed ? now : null;
  const holders = sql`invited_by = ${userId}, handed_to = ${handedTo}, confirmed_at = ${confirmedAt}`;
  await updateUser(tx, user.id, sql`${holders}, confirmed_by = null`);
  // From `invited_by` and `handed_to`, the database records who knows this link.
  const link = sql`invitation_hash = ${tokenHash}, invitation_expires_at = ${expiresAt}`;
  await updateUser(tx, user.id, link);
  const door = user.merchantId === null ? 'console' : 'portal';
  return { id: user.id, link: `/${door}/enroll#${token}`, expiresAt };
}

/** Returns an email address as it is stored. @throws Problem if it is none */
function readEmail(text: string): string {
  const email = text.trim().toLowerCase();
  if (!/^[^\s@"<>]{1,64}@[^\s@"<>]{1,189}$/.test(email) || /\p{C}/u.test(email))
    throw invalid('email', 'format', 'must be an email address');
  if (email.endsWith(ERASED_HOST)) throw invalid('email', 'erased', 'is one that erased people get');
  return email;
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
    email: Positional(Email),
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
  async run(caller, input) {
    const email = readEmail(input.email);
    const merchantId = input.merchantId ? toId(input.merchantId, 'merchantId') : null;
    const roles = checkRoles(input.roles, merchantId);
    const name = input.name?.trim() || email.slice(0, email.indexOf('@'));
    const { db, clock } = caller.service;
    return db.transaction(async (tx) => {
      if (merchantId !== null && !(await findMerchant(tx, merchantId))) throw notFound('such merchant');
      const user = await insertUser(tx, { email, name, merchantId, roles }, clock());
      if (user.state !== 'invited')
        throw new Problem(
          'exists',
          'there is a user with this email address: change its roles, or reset its second factor',
        );
      // A person who has not enrolled yet gets another link.
      await updateUser(tx, user.id, sql`name = ${name}, roles = ${roles}`);
      const invitation = await insertLink(caller, tx, user);
      const after = { email, name, roles, merchantId, expiresAt: invitation.expiresAt };
      await audit(tx, caller, { action: 'user.invite', subject: subjectOf(user.id), after });
      return invitation;
    });
  },
});

const reset = changing({
  name: 'user.reset-2fa',
  title: 'Reset the second factor',
  summary: "Remove a user's password, second factors and sessions, and make a link to enroll again",
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
  run: (caller, { id }) =>
    changeUser(caller, toId(id), async (tx, user) => {
      if (user.state === 'erased') throw new Problem('conflict', 'this user has been erased');
      if (user.state === 'disabled') throw new Problem('conflict', 'this user is disabled: enable it first');
      await forgetCredentials(tx, user.id);
      await updateUser(tx, user.id, sql`enrolled_at = null`);
      const result = await insertLink(caller, tx, user);
      const before = { factors: user.factors };
      const after = { factors: [], expiresAt: result.expiresAt };
      return { result, audited: { action: 'user.reset-2fa', before, after } };
    }),
});

export const invitations = { invite, reset };

export const OPERATIONS = tableOf(invite, reset);
