import { type Sql, sql } from '../db/sql.ts';

export function findTokenRow(hash: Buffer): Sql {
  return sql`select * from operator_tokens where token_hash = ${hash}`;
}

export function touchToken(id: number, now: Date): Sql {
  return sql`update operator_tokens set last_used_at = ${now} where id = ${id}`;
}

export type NewToken = {
  readonly name: string;
  readonly hash: Buffer;
  readonly roles: readonly string[];
  readonly merchantId: number | null;
  readonly networks: readonly string[] | null;
  readonly stepUp: boolean;
  readonly createdBy: string;
  readonly userId: number | null;
  readonly expiresAt: Date;
  readonly now: Date;
};

export function insertToken(token: NewToken): Sql {
  return sql`
insert into operator_tokens (name, token_hash, roles, merchant_id, networks, step_up, created_by, user_id,
  expires_at,
  created_at)
values (${token.name}, ${token.hash}, ${token.roles}, ${token.merchantId}, ${token.networks},
  ${token.stepUp}, ${token.createdBy},
  ${token.userId}, ${token.expiresAt}, ${token.now})
returning id`;
}

/** Newest first, behind an id. */
export function listTokenRows(before: number | null, limit: number): Sql {
  return sql`
select id, name, roles, merchant_id, networks, step_up, created_by, created_at, expires_at, last_used_at,
  revoked_at
from operator_tokens where ${before}::int is null or id < ${before} order by id desc limit ${limit}`;
}

export function lockToken(id: number): Sql {
  return sql`select * from operator_tokens where id = ${id} for update`;
}

export function revokeTokenRow(id: number, now: Date): Sql {
  return sql`
    update operator_tokens set revoked_at = coalesce(revoked_at, ${now}) where id = ${id} returning *`;
}
