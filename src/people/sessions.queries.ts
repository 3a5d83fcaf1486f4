import { type Sql, sql } from '../db/sql.ts';

/** Sessions, started sign-ins, and counted attempts. */

export function insertSession(session: {
  readonly tokenHash: Buffer;
  readonly userId: number;
  readonly now: Date;
  readonly expiresAt: Date;
  readonly steppedUpAt: Date | null;
  readonly network: string;
  readonly agent: string;
}): Sql {
  const { tokenHash, userId, now, expiresAt, steppedUpAt, network, agent } = session;
  return sql`
insert into sessions (token_hash, user_id, created_at, last_seen_at, expires_at, stepped_up_at, network,
  agent)
values (${tokenHash}, ${userId}, ${now}, ${now}, ${expiresAt}, ${steppedUpAt}, ${network}, ${agent})
returning id`;
}

/** Returns a session that has not ended, with its user as it is now. */
export function findSessionRow(tokenHash: Buffer, now: Date): Sql {
  return sql`
select s.id, s.user_id, s.created_at, s.last_seen_at, s.expires_at, s.stepped_up_at, u.email, u.name,
  u.roles, u.merchant_id, u.password_hash is null and u.oidc_subject is null as has_only_link,
  u.totp_secret is not null as has_totp,
  exists (select from passkeys p where p.user_id = u.id) as has_passkey
from sessions s join users u on u.id = s.user_id
where s.token_hash = ${tokenHash} and s.expires_at > ${now}
  and u.disabled_at is null and u.enrolled_at is not null`;
}

export function touchSession(id: bigint, now: Date): Sql {
  return sql`update sessions set last_seen_at = ${now} where id = ${id} and last_seen_at < ${now}`;
}

/** Gives a session a new token, and ends the old one at once. Of two concurrent calls, one gets a row. */
export function renewSession(id: bigint, oldHash: Buffer, newHash: Buffer, now: Date): Sql {
  return sql`
update sessions set token_hash = ${newHash}, stepped_up_at = ${now}, last_seen_at = ${now}
where id = ${id} and token_hash = ${oldHash} returning id`;
}

/** Lists the sessions of a user that have not ended, newest first. */
export function listSessionRows(userId: number, now: Date, idleSince: Date): Sql {
  return sql`
select id, created_at, last_seen_at, expires_at, network, agent from sessions
where user_id = ${userId} and expires_at > ${now} and last_seen_at > ${idleSince} order by id desc limit 100`;
}

export function deleteSession(userId: number, id: bigint): Sql {
  return sql`delete from sessions where user_id = ${userId} and id = ${id} returning id`;
}

/** Deletes all sessions of a user, or all but one. Started sign-ins are deleted too. */
export function deleteSessions(userId: number, except: bigint | null): Sql {
  return sql`
with begun as (delete from sign_ins where user_id = ${userId})
delete from sessions where user_id = ${userId} and id is distinct from ${except} returning id`;
}

/** Deletes sessions, sign-ins and attempts that ended long ago. */
export function deleteEnded(now: Date): Sql {
  return sql`
with begun as (delete from sign_ins where expires_at < ${now}),
  attempts as (
    delete from sign_in_attempts
    where greatest(since, locked_until) < ${now}::timestamptz - interval '2 days'
  )
delete from sessions where expires_at < ${now}`;
}

export function insertSignIn(signIn: {
  readonly tokenHash: Buffer;
  readonly userId: number | null;
  readonly stage: 'second-factor' | 'passkey' | 'oidc';
  readonly details: string;
  readonly expiresAt: Date;
}): Sql {
  const { tokenHash, userId, stage, details, expiresAt } = signIn;
  return sql`
insert into sign_ins (token_hash, user_id, stage, details, expires_at)
values (${tokenHash}, ${userId}, ${stage}, ${details}, ${expiresAt})`;
}

export type SignInRow = { readonly user_id: number | null; readonly details: string };

export function findSignIn(tokenHash: Buffer, stage: string, now: Date): Sql {
  return sql`
select user_id, details from sign_ins
where token_hash = ${tokenHash} and stage = ${stage} and expires_at > ${now}`;
}

/** Ends a started sign-in. Of two concurrent calls, one gets a row. */
export function takeSignIn(tokenHash: Buffer, stage: string, now: Date): Sql {
  return sql`
delete from sign_ins where token_hash = ${tokenHash} and stage = ${stage} and expires_at > ${now}
returning user_id, details`;
}

/** @see count_sign_in in sql/020-people.sql */
export function countSignIn(
  subject: Buffer,
  now: Date,
  rule: { readonly most: number; readonly period: string; readonly lock: string; readonly longest: string },
): Sql {
  return sql`
select count_sign_in(${subject}, ${now}, ${rule.most}, ${rule.period}::interval, ${rule.lock}::interval,
  ${rule.longest}::interval) as locked_until`;
}

/** Removes a correct attempt from the count. */
export function takeBackAttempt(subject: Buffer): Sql {
  return sql`update sign_in_attempts set failures = failures - 1 where subject = ${subject} and failures > 0`;
}

/** Removes all attempts on an account from the count. */
export function deleteAttempts(subject: Buffer): Sql {
  return sql`delete from sign_in_attempts where subject = ${subject}`;
}
