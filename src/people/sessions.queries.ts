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
  u.oidc_subject is not null as is_bound,
  u.totp_secret is not null as has_totp,
  exists (select from passkeys p where p.user_id = u.id) as has_passkey
from sessions s join users u on u.id = s.user_id
where s.token_hash = ${tokenHash} and s.expires_at > ${now}
  and u.disabled_at is null and u.enrolled_at is not null`;
}

export function touchSession(id: bigint, now: Date): Sql {
  return sql`update sessions set last_seen_at = ${now} where id = ${id} and last_seen_at < ${now}`;
}

/**
 * Gives a session a new token, and ends the old one at once. Of two concurrent calls, one gets a row.
 * @param oldHash null if the identity provider sent the browser back, which does not send the cookie then
 */
export function renewSession(
  session: { readonly id: bigint; readonly userId: number },
  oldHash: Buffer | null,
  newHash: Buffer,
  now: Date,
): Sql {
  return sql`
update sessions set token_hash = ${newHash}, stepped_up_at = ${now}, last_seen_at = ${now}
where id = ${session.id} and user_id = ${session.userId} and expires_at > ${now}
  and token_hash = coalesce(${oldHash}::bytea, token_hash)
returning id`;
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

/** Deletes the oldest sessions of a user, all but some. */
export function deleteOldestSessions(userId: number, kept: number): Sql {
  return sql`
delete from sessions where user_id = ${userId}
  and id not in (select id from sessions where user_id = ${userId} order by id desc limit ${kept})`;
}

/** Deletes all sessions of a user, or all but one. Started sign-ins are deleted too. */
export function deleteSessions(userId: number, except: bigint | null): Sql {
  return sql`
with begun as (delete from sign_ins where user_id = ${userId})
delete from sessions where user_id = ${userId} and id is distinct from ${except} returning id`;
}

/**
 * Deletes a portion of what has ended: sessions, sign-ins, and attempts that no limit counts any more. An
 * attempt counts for an hour at most, and a lock makes the next one longer for a day.
 * @returns a row for each that was deleted
 */
export function deleteEnded(now: Date, portion: number): Sql {
  return sql`
with begun as (
  delete from sign_ins where token_hash in (
    select token_hash from sign_ins where expires_at < ${now} order by expires_at limit ${portion})
  returning 1
), attempts as (
  delete from sign_in_attempts where subject in (
    select subject from sign_in_attempts
    where since < ${now}::timestamptz - interval '1 hour'
      and (locked_until is null or locked_until < ${now}::timestamptz - interval '1 day')
    order by since limit ${portion})
  returning 1
), ended as (
  delete from sessions where id in (
    select id from sessions where expires_at < ${now} order by id limit ${portion})
  returning 1
)
select from begun union all select from attempts union all select from ended`;
}

/** An account at an identity provider. */
export type OidcAccount = { readonly issuer: string; readonly subject: string };

/**
 * Inserts a sign-in in progress. Returns no row if there is one under this token.
 * @param userId null for a sign-in that is not accepted again
 * @param binding the account at the identity provider that the second factor will bind to the user
 */
export function insertSignIn(signIn: {
  readonly tokenHash: Buffer;
  readonly userId: number | null;
  readonly stage: 'second-factor' | 'link' | 'used';
  readonly binding?: OidcAccount | undefined;
  readonly expiresAt: Date;
}): Sql {
  const { tokenHash, userId, stage, binding, expiresAt } = signIn;
  return sql`
insert into sign_ins (token_hash, user_id, stage, oidc_issuer, oidc_subject, expires_at)
values (${tokenHash}, ${userId}, ${stage}, ${binding?.issuer ?? null}, ${binding?.subject ?? null},
  ${expiresAt})
on conflict do nothing returning token_hash`;
}

export type SignInRow = {
  readonly user_id: number;
  readonly oidc_issuer: string | null;
  readonly oidc_subject: string | null;
};

export function findSignIn(tokenHash: Buffer, stage: string, now: Date): Sql {
  return sql`
select user_id, oidc_issuer, oidc_subject from sign_ins
where token_hash = ${tokenHash} and stage = ${stage} and expires_at > ${now}`;
}

/** Ends a started sign-in. Of two concurrent calls, one gets a row. */
export function takeSignIn(tokenHash: Buffer, stage: string, now: Date): Sql {
  return sql`
delete from sign_ins where token_hash = ${tokenHash} and stage = ${stage} and expires_at > ${now}
returning user_id, oidc_issuer, oidc_subject`;
}

/** Deletes the links with which a user can sign in once. */
export function deleteLinks(userId: number): Sql {
  return sql`delete from sign_ins where user_id = ${userId} and stage = 'link'`;
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
