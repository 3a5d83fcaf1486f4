import Type, { type Static } from 'typebox';
import { audit, type Change } from '../audit/audit.ts';
import type { Actor, Service } from '../context.ts';
import { hashOfBearer, newBearer } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { NullableText, NullableTime, Numbered, Text, Time, Word } from '../schema.ts';
import { MINUTE_MS } from '../time.ts';
import type { Device } from './devices.ts';

/**
 * Sessions of people. Each request reads its session and the user's roles from the database, so a session
 * that has ended is no longer valid in any process.
 */

/** The place where people sign in: the operator's console, or the merchants' portal. */
export type Door = 'operator' | 'portal';

/** A session without requests for this time has ended. */
const IDLE_MS = { operator: 20 * MINUTE_MS, portal: 60 * MINUTE_MS } as const;
/** The most sessions of a user. A further one ends the oldest, so that a forgotten one does not last. */
const SESSIONS_MAX = 10;
/** The longest duration of a session. */
export const SESSION_MS = 12 * 60 * MINUTE_MS;
/** How long a second factor counts. */
export const STEP_UP_MS = 5 * MINUTE_MS;
/** The shortest interval between two updates of the last request. */
const TOUCH_MS = 15_000;

/** The origin of a request. */
export type Origin = {
  readonly address: string;
  /** The browser's name for itself. */
  readonly agent: string;
  /** The origin of the page that asks, such as `https://scrip.example`. Passkeys are bound to its host. */
  readonly page: string;
  readonly requestId: string;
  /** The devices whose cookie the browser has. */
  readonly devices: readonly Device[];
};

export const SessionSchema = Type.Object({
  id: Type.Unsafe<bigint>(Text),
  user: Type.Object({
    id: Numbered(Text),
    email: Text,
    name: Text,
    roles: Type.Array(Text, { description: 'As they are now.' }),
    merchantId: Type.Unsafe<number | null>(NullableText),
    factors: Type.Array(Word(['totp', 'passkey'])),
    singleSignOn: Type.Boolean({ description: 'Whether the user signs in by an identity provider.' }),
  }),
  createdAt: Time,
  expiresAt: { ...Time, description: 'When it ends at the latest. It ends earlier without requests.' },
  steppedUpUntil: {
    ...NullableTime,
    description:
      'Up to when operations that need a second factor are permitted; null if none was given, or too long ago.',
  },
});
export type Session = Static<typeof SessionSchema> & { readonly door: Door; readonly idleMs: number };

/** A person at a door, who may sign in. */
export type Visitor = { readonly service: Service; readonly door: Door; readonly origin: Origin };

/** A user at a door, with a session and its token. */
export type SignedIn = Visitor & { readonly session: Session; readonly token: string };

/** The second factors of a user `u`. */
export const FACTORS = sql`array_remove(array[
  case when u.totp_secret is not null then 'totp' end,
  case when exists (select from passkeys p where p.user_id = u.id) then 'passkey' end], null)`;

export const doorOf = (merchantId: number | null): Door => (merchantId === null ? 'operator' : 'portal');

/**
 * Returns the name of a user in the audit. A merchant can invite any address, also one of the operator, so
 * the name of its users says whose they are.
 */
export function nameOfUser(email: string, merchantId: number | null): string {
  return merchantId === null ? email : `${email} (merchant ${merchantId})`;
}

type Named = { readonly id: number; readonly email: string; readonly merchantId: number | null };

/** Returns the actor of a user's changes. */
export function actorOfUser({ id, email, merchantId }: Named, { address, requestId }: Origin): Actor {
  const name = nameOfUser(email, merchantId);
  return { kind: 'user', id: String(id), name, origin: address, requestId, reason: null };
}

/** Writes to the audit what a user has done to its own account. */
export function auditOwn(
  tx: Queries,
  { service, origin }: Visitor,
  user: Named,
  ...changes: readonly Omit<Change, 'subject'>[]
): Promise<void> {
  const of = { subject: `user ${user.id}` };
  const own = changes.map((change) => ({ ...of, ...change }));
  return audit(tx, { service, actor: actorOfUser(user, origin) }, ...own);
}

const AGENT_LENGTH_MAX = 200;

/**
 * Begins a session. Of more than ten, the oldest ends.
 * @param steppedUpAt when a second factor was given; null if none counts
 * @returns its token, which is not stored
 */
export async function beginSession(
  tx: Queries,
  { service: { clock, keys }, origin: { address, agent } }: Visitor,
  userId: number,
  steppedUpAt: Date | null,
): Promise<string> {
  const { token, tokenHash } = newBearer(keys, 'session');
  const now = clock();
  const expiresAt = new Date(now.getTime() + SESSION_MS);
  await tx.query(sql`update users set signed_in_at = ${now} where id = ${userId}`);
  await tx.query(sql`
insert into sessions (token_hash, user_id, created_at, last_seen_at, expires_at, stepped_up_at, network,
  agent)
values (${tokenHash}, ${userId}, ${now}, ${now}, ${expiresAt}, ${steppedUpAt}, ${address},
  ${agent.slice(0, AGENT_LENGTH_MAX)})`);
  await tx.query(sql`
delete from sessions where user_id = ${userId}
  and id not in (select id from sessions where user_id = ${userId} order by id desc limit ${SESSIONS_MAX})`);
  return token;
}

/**
 * Finds the session of a token for a request, and restarts its idle time. A forged token needs no query.
 * @param isBackground whether a page made the request by itself, which does not restart the idle time
 * @returns undefined if there is none, if it has ended, or if its user belongs to the other door or may no
 *   longer sign in
 */
export async function findSession(
  { db, keys, clock }: Service,
  token: string,
  door: Door,
  isBackground = false,
): Promise<Session | undefined> {
  const now = clock();
  const tokenHash = hashOfBearer(keys, 'session', token);
  const [row] = tokenHash
    ? await db.query<SessionRow>(sql`
select s.id, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.expires_at as "expiresAt",
  s.stepped_up_at as "steppedUpAt", u.password_hash is null and u.oidc_subject is null as "hasOnlyLink",
  json_build_object('id', u.id, 'email', u.email, 'name', u.name, 'roles', u.roles, 'merchantId', u.merchant_id,
    'factors', ${FACTORS}, 'singleSignOn', u.oidc_subject is not null) as user
from sessions s join users u on u.id = s.user_id
where s.token_hash = ${tokenHash} and s.expires_at > ${now}
  and u.disabled_at is null and u.enrolled_at is not null`)
    : [];
  if (!row || doorOf(row.user.merchantId) !== door) return undefined;
  const { id, user, createdAt, expiresAt } = row;
  const idleSince = now.getTime() - row.lastSeenAt.getTime();
  // One that was used at a later time has outlived a clock that was ahead, and would end late.
  if (Math.abs(idleSince) > IDLE_MS[door]) return undefined;
  if (idleSince > TOUCH_MS && !isBackground)
    await db.query(sql`update sessions set last_seen_at = ${now} where id = ${id} and last_seen_at < ${now}`);
  const steppedUpUntil = steppedUpUntilOf(row, now);
  return { id, door, user, createdAt, expiresAt, idleMs: IDLE_MS[door], steppedUpUntil };
}

type SessionRow = Pick<Session, 'id' | 'user' | 'createdAt' | 'expiresAt'> & {
  readonly lastSeenAt: Date;
  readonly steppedUpAt: Date | null;
  /** True for users of the demo who sign in with a link. */
  readonly hasOnlyLink: boolean;
};

/**
 * Returns until when a session counts as stepped up. The owner of the demo has no second factor to ask for.
 */
function steppedUpUntilOf({ hasOnlyLink, user, expiresAt, steppedUpAt }: SessionRow, now: Date): Date | null {
  if (hasOnlyLink && user.factors.length === 0) return expiresAt;
  const until = steppedUpAt && new Date(steppedUpAt.getTime() + STEP_UP_MS);
  return until && until > now ? until : null;
}

/**
 * Gives a session a new token after its user gave a second factor.
 * @param oldToken null if the identity provider sent the browser back
 * @param factor what was given, for the audit
 * @returns undefined if the session has ended meanwhile, or belongs to another user
 */
export async function renewStepped(
  visitor: Visitor,
  { id, user }: { readonly id: bigint; readonly user: Named },
  oldToken: string | null,
  factor: string,
): Promise<string | undefined> {
  const { db, keys, clock } = visitor.service;
  const { token, tokenHash } = newBearer(keys, 'session');
  const oldHash = oldToken === null ? null : (hashOfBearer(keys, 'session', oldToken) ?? NO_HASH);
  const now = clock();
  return db.transaction(async (tx) => {
    // The old token ends at once. Of two concurrent calls, one gets a row.
    const [renewed] = await tx.query(sql`
update sessions set token_hash = ${tokenHash}, stepped_up_at = ${now}, last_seen_at = ${now}
where id = ${id} and user_id = ${user.id} and expires_at > ${now}
  and token_hash = coalesce(${oldHash}::bytea, token_hash)
returning id`);
    if (!renewed) return undefined;
    await auditOwn(tx, visitor, user, { action: 'session.step-up', after: { factor } });
    return token;
  });
}

/** The hash of no token. */
const NO_HASH = Buffer.alloc(0);

export const ListedSession = Type.Object({
  ...Type.Pick(SessionSchema, ['id', 'createdAt', 'expiresAt']).properties,
  lastSeenAt: Time,
  address: Text,
  agent: Text,
});

/** Lists the sessions of a user, newest first. */
export async function listSessions({ service, session, door }: SignedIn) {
  const now = service.clock();
  const idleSince = new Date(now.getTime() - IDLE_MS[door]);
  return service.db.query<Static<typeof ListedSession>>(sql`
select id, created_at as "createdAt", last_seen_at as "lastSeenAt", expires_at as "expiresAt",
  network as address, agent
from sessions
where user_id = ${session.user.id} and expires_at > ${now} and last_seen_at > ${idleSince}
order by id desc limit 100`);
}

/** The most rows of a table that one statement deletes, so that it takes milliseconds. */
const PORTION = 1_000;

/**
 * Deletes sessions, sign-ins and attempts that have ended, in portions. It runs in the background: no sign-in
 * waits for what strangers have left.
 */
export async function deleteWhatEnded({ db, clock }: Service, stopping: () => boolean): Promise<void> {
  let deleted = 1;
  while (!stopping() && deleted > 0) {
    const now = clock();
    // An attempt counts for an hour at most, and a lock makes the next one longer for a day.
    const rows = await db.query(sql`
with begun as (
  delete from sign_ins where token_hash in (
    select token_hash from sign_ins where expires_at < ${now} order by expires_at limit ${PORTION})
  returning 1
), attempts as (
  delete from sign_in_attempts where subject in (
    select subject from sign_in_attempts
    where since < ${now}::timestamptz - interval '1 hour'
      and (locked_until is null or locked_until < ${now}::timestamptz - interval '1 day')
    order by since limit ${PORTION})
  returning 1
), ended as (
  delete from sessions where id in (
    select id from sessions where expires_at < ${now} order by id limit ${PORTION})
  returning 1
)
select from begun union all select from attempts union all select from ended`);
    deleted = rows.length;
  }
}

/**
 * Ends all sessions of a user, or all but one, and the sign-ins that the user has begun.
 * @returns how many sessions
 */
export async function endSessions(
  tx: Queries,
  userId: number,
  except: bigint | null = null,
): Promise<number> {
  const ended = await tx.query(sql`
with begun as (delete from sign_ins where user_id = ${userId})
delete from sessions where user_id = ${userId} and id is distinct from ${except} returning id`);
  return ended.length;
}

/**
 * Ends sessions of a user who has one: the one with an id, or all others.
 * @returns how many: 0 if there is none
 */
export async function endOwnSessions(own: SignedIn, which: bigint | 'others'): Promise<number> {
  const { id: current, user } = own.session;
  return own.service.db.transaction(async (tx) => {
    const one = sql`delete from sessions where user_id = ${user.id} and id = ${which} returning id`;
    const sessions =
      which === 'others' ? await endSessions(tx, user.id, current) : (await tx.query(one)).length;
    if (sessions > 0) await auditOwn(tx, own, user, { action: 'session.end', before: { sessions } });
    return sessions;
  });
}
