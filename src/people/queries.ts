import { type Sql, sql } from '../db/sql.ts';

/** Users, their invitations and their second factors. */

const USER = `
select u.id, u.email, u.name, u.merchant_id, u.roles, u.password_hash, u.totp_secret, u.enrolled_at,
  u.disabled_at, u.signed_in_at, u.created_at, u.confirmed_at, u.handed_to,
  u.invitation_expires_at,
  u.oidc_subject is not null as is_bound,
  exists (select from passkeys p where p.user_id = u.id) as has_passkey,
  (select count(*)::integer from recovery_codes r where r.user_id = u.id and r.used_at is null)
    as recovery_codes
from users u`;

export type UserRow = {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly merchant_id: number | null;
  readonly roles: string[];
  readonly password_hash: string | null;
  readonly totp_secret: Buffer | null;
  readonly enrolled_at: Date | null;
  readonly disabled_at: Date | null;
  readonly signed_in_at: Date | null;
  readonly created_at: Date;
  readonly confirmed_at: Date | null;
  readonly handed_to: number | null;
  readonly invitation_expires_at: Date | null;
  /** Whether an account at the identity provider belongs to the user. */
  readonly is_bound: boolean;
  readonly has_passkey: boolean;
  readonly recovery_codes: number;
};

/** Finds the account of an address: at the operator (null), or at a merchant. */
export function findUserByEmail(email: string, merchantId: number | null): Sql {
  return {
    text: `${USER} where u.email = $1 and u.merchant_id is not distinct from $2`,
    values: [email, merchantId],
  };
}

/** Lists all accounts of an address, that of the operator first. */
export function listUsersByEmail(email: string): Sql {
  return {
    text: `${USER} where u.email = $1 order by u.merchant_id nulls first limit 1000`,
    values: [email],
  };
}

export function findUserById(id: number): Sql {
  return { text: `${USER} where u.id = $1`, values: [id] };
}

/** Locks a user until the transaction ends. */
export function lockUserByEmail(email: string, merchantId: number | null): Sql {
  return {
    text: `${USER} where u.email = $1 and u.merchant_id is not distinct from $2 for update of u`,
    values: [email, merchantId],
  };
}

export function lockUserById(id: number): Sql {
  return { text: `${USER} where u.id = $1 for update of u`, values: [id] };
}

/** Lists a page of users, oldest first: of one merchant, of the operator (0), or of all (null). */
export function listUserRows(merchantId: number | null, after: number, count: number): Sql {
  return {
    text: `${USER}
where u.id > $2 and ($1::integer is null or coalesce(u.merchant_id, 0) = $1) order by u.id limit $3`,
    values: [merchantId, after, count],
  };
}

export function insertUser(user: {
  readonly email: string;
  readonly name: string;
  readonly merchantId: number | null;
  readonly roles: readonly string[];
  readonly now: Date;
}): Sql {
  return sql`
insert into users (email, name, merchant_id, roles, created_at)
values (${user.email}, ${user.name}, ${user.merchantId}, ${user.roles}, ${user.now})
on conflict (email, merchant_id) do nothing returning id`;
}

/**
 * Locks the enrolled owners of the operator who may sign in. If two are removed at once, the second removal
 * waits.
 */
export function lockOwners(): Sql {
  return sql`
select id from users
where merchant_id is null and 'owner' = any (roles) and disabled_at is null and enrolled_at is not null
order by id for update`;
}

export function setRoles(id: number, name: string, roles: readonly string[]): Sql {
  return sql`update users set name = ${name}, roles = ${roles} where id = ${id}`;
}

/** Disables or enables a user. An open invitation becomes void. */
export function setDisabled(id: number, disabledAt: Date | null): Sql {
  return sql`
update users set disabled_at = ${disabledAt}, invitation_hash = null, invitation_expires_at = null
where id = ${id}`;
}

/** Removes all factors with which a user signs in. */
export function clearFactors(id: number): Sql {
  return sql`
with gone as (delete from passkeys where user_id = ${id}),
  codes as (delete from recovery_codes where user_id = ${id})
update users set
  password_hash = null, totp_secret = null, totp_step = null, enrolled_at = null, oidc_issuer = null,
  oidc_subject = null
where id = ${id}`;
}

/**
 * Accepts the period of a TOTP code once. Of two concurrent calls, even in different processes, one gets a
 * row.
 */
export function acceptTotpStep(id: number, step: number): Sql {
  return sql`
update users set totp_step = ${step}
where id = ${id} and (totp_step is null or totp_step < ${step}) returning id`;
}

/** Removes a user who has never enrolled. Returns whether it was removed (sql/020-people.sql). */
export function removeInvited(id: number): Sql {
  return sql`select remove_invited(${id}) as removed`;
}

/** Makes the open invitation of a user. An earlier link becomes void. */
export function setInvitation(id: number, tokenHash: Buffer, expiresAt: Date): Sql {
  return sql`
update users set invitation_hash = ${tokenHash}, invitation_expires_at = ${expiresAt} where id = ${id}`;
}

/** Finds the user of a link to enroll. */
export function findInvited(tokenHash: Buffer, now: Date): Sql {
  return {
    text: `${USER} where u.invitation_hash = $1 and u.invitation_expires_at > $2`,
    values: [tokenHash, now],
  };
}

/**
 * Accepts the open invitation of a user, which is then void. Of two concurrent calls, one gets a row.
 * @param tokenHash of the link; null if the identity provider takes its place
 */
export function acceptInvitation(
  id: number,
  tokenHash: Buffer | null,
  now: Date,
  user: {
    readonly name: string;
    readonly passwordHash: string | null;
    /** The sealed secret of the authenticator app, and the period of its first code. */
    readonly totp: { readonly secret: Buffer; readonly step: number } | null;
  },
): Sql {
  const { name, passwordHash, totp } = user;
  return sql`
update users set
  name = ${name}, password_hash = ${passwordHash}, totp_secret = ${totp?.secret ?? null},
  totp_step = ${totp?.step ?? null}, enrolled_at = ${now}, invitation_hash = null,
  invitation_expires_at = null
where id = ${id} and invitation_hash = coalesce(${tokenHash}::bytea, invitation_hash)
  and invitation_expires_at > ${now}
returning id`;
}

/** Enrolls a person of the demo, who signs in by a link. This machine confirms the account. */
export function enrollByLink(id: number, now: Date): Sql {
  return sql`
update users set
  enrolled_at = ${now}, confirmed_at = ${now}, invitation_hash = null, invitation_expires_at = null
where id = ${id} and enrolled_at is null`;
}

export function setPasswordHash(id: number, passwordHash: string): Sql {
  return sql`update users set password_hash = ${passwordHash} where id = ${id}`;
}

export function setSignedIn(id: number, now: Date): Sql {
  return sql`update users set signed_in_at = ${now} where id = ${id}`;
}

/** Deletes the recovery codes of a user, before new ones are stored. */
export function deleteRecoveryCodes(userId: number): Sql {
  return sql`delete from recovery_codes where user_id = ${userId}`;
}

export function insertRecoveryCodes(userId: number, hashes: readonly Buffer[]): Sql {
  return sql`
insert into recovery_codes (user_id, code_hash)
select ${userId}, h.hash from unnest(${hashes}::bytea[]) as h (hash)`;
}

/** Uses a recovery code. Of two concurrent calls, one gets a row. */
export function takeRecoveryCode(userId: number, codeHash: Buffer, now: Date): Sql {
  return sql`
update recovery_codes set used_at = ${now}
where user_id = ${userId} and code_hash = ${codeHash} and used_at is null
returning user_id`;
}

/** Finds the user of an account at an identity provider. */
export function findUserByOidc(issuer: string, subject: string): Sql {
  return { text: `${USER} where u.oidc_issuer = $1 and u.oidc_subject = $2`, values: [issuer, subject] };
}

/**
 * Binds a user to an account at an identity provider. Returns no row if one of them is bound to another one.
 */
export function bindOidc(id: number, issuer: string, subject: string): Sql {
  return sql`
update users set oidc_issuer = ${issuer}, oidc_subject = ${subject}
where id = ${id} and oidc_subject is null and not exists (
  select from users u where u.oidc_issuer = ${issuer} and u.oidc_subject = ${subject})
returning id`;
}

export type PasskeyRow = {
  readonly id: string;
  readonly user_id: number;
  readonly name: string;
  readonly public_key: Buffer;
  readonly counter: bigint;
  readonly transports: string[];
  readonly created_at: Date;
  readonly last_used_at: Date | null;
};

export function findPasskey(id: string): Sql {
  return sql`select * from passkeys where id = ${id}`;
}

export function listPasskeyRows(userId: number): Sql {
  return sql`select * from passkeys where user_id = ${userId} order by created_at, id limit 100`;
}

export function insertPasskey(passkey: {
  readonly id: string;
  readonly userId: number;
  readonly name: string;
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly now: Date;
}): Sql {
  const { id, userId, name, publicKey, counter, transports, now } = passkey;
  return sql`
insert into passkeys (id, user_id, name, public_key, counter, transports, created_at)
values (${id}, ${userId}, ${name}, ${publicKey}, ${counter}, ${transports}, ${now})
on conflict do nothing returning id`;
}

/** Records a use. Returns no row if another use came in between. */
export function usePasskey(id: string, before: bigint, counter: number, now: Date): Sql {
  return sql`
update passkeys set counter = ${counter}, last_used_at = ${now}
where id = ${id} and counter = ${before} returning id`;
}

export function deletePasskey(userId: number, id: string): Sql {
  return sql`delete from passkeys where user_id = ${userId} and id = ${id} returning name`;
}
