import { type Sql, sql } from '../db/sql.ts';

/** Counts the entries of an actor with an action since a time, up to a limit. */
export function countSince(action: string, kind: string, id: string, since: Date, most: number): Sql {
  return sql`
select count(*)::int as count from (
  select from audit
  where occurred_at > ${since} and action = ${action} and actor_kind = ${kind} and actor_id = ${id}
  limit ${most}
) a`;
}

export function listSettings(): Sql {
  return sql`select name, value from operator_settings`;
}

/** Lists the currencies of products. */
export function listCurrencies(): Sql {
  return sql`select distinct currency from products`;
}

export function upsertSetting(name: string, value: string, now: Date): Sql {
  return sql`
insert into operator_settings (name, value, changed_at) values (${name}, ${value}, ${now})
on conflict (name) do update set value = excluded.value, changed_at = excluded.changed_at`;
}

/**
 * Lets one change of settings run at a time, so that the second change finds the result of the first. No
 * other lock has this number.
 */
export function lockSettings(): Sql {
  return sql`select pg_advisory_xact_lock(7311990021)`;
}

/**
 * Claims an Idempotency-Key. Returns no row if the key is taken, after the transaction that took it has
 * ended.
 */
export function claimRequest(
  actor: string,
  key: string,
  operation: string,
  fingerprint: Buffer,
  now: Date,
): Sql {
  return sql`
insert into operator_requests (actor, idempotency_key, operation, fingerprint, created_at)
values (${actor}, ${key}, ${operation}, ${fingerprint}, ${now}) on conflict do nothing
returning 1 as claimed`;
}

export function findRequest(actor: string, key: string): Sql {
  return sql`
select operation, fingerprint, output, is_proposal from operator_requests
where actor = ${actor} and idempotency_key = ${key}`;
}

/** Stores the answer to a request. @param isProposal whether it was proposed, and not performed */
export function finishRequest(
  { actor, key }: { readonly actor: string; readonly key: string },
  output: string,
  isProposal = false,
): Sql {
  return sql`
update operator_requests set output = ${output}, is_proposal = ${isProposal}
where actor = ${actor} and idempotency_key = ${key}`;
}

/** Releases the key of a declined operation. */
export function forgetRequest(actor: string, key: string): Sql {
  return sql`
    delete from operator_requests where actor = ${actor} and idempotency_key = ${key} and output is null`;
}

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
  expires_at, created_at)
values (${token.name}, ${token.hash}, ${token.roles}, ${token.merchantId}, ${token.networks}, ${token.stepUp},
  ${token.createdBy}, ${token.userId}, ${token.expiresAt}, ${token.now})
returning id`;
}

/** Lists tokens before an id, newest first. */
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

/**
 * Counts the people of the operator who sign in with a second factor, here or at the identity provider, and
 * so could approve. An unconfirmed account is not counted, since it may be a second account of the same
 * person.
 */
export function countPeople(): Sql {
  return sql`
select count(*)::integer as people from users u
where u.merchant_id is null and u.enrolled_at is not null and u.disabled_at is null
  and (u.handed_to is null or u.confirmed_at is not null)
  and (u.totp_secret is not null or u.oidc_subject is not null
    or exists (select from passkeys p where p.user_id = u.id))`;
}

export type ApprovalRow = {
  readonly id: number;
  readonly operation: string;
  readonly input: string;
  readonly effect: string | null;
  readonly maker_id: number | null;
  readonly maker: string;
  readonly reason: string | null;
  readonly mode: 'two-people' | 'delay';
  readonly state: 'PENDING' | 'APPROVED' | 'REJECTED' | 'WITHDRAWN';
  readonly created_at: Date;
  readonly not_before: Date;
  readonly expires_at: Date;
  readonly checker: string | null;
  readonly is_break_glass: boolean;
  readonly comment: string | null;
  readonly decided_at: Date | null;
  readonly output: string | null;
};

const COLUMNS = `id, operation, input, effect, maker_id, maker, reason, mode, state, created_at, not_before,
  expires_at, checker, is_break_glass, comment, decided_at, output`;

export function insertApproval(approval: {
  readonly operation: string;
  readonly input: string;
  readonly effect: string | null;
  readonly makerId: number | null;
  readonly maker: string;
  readonly reason: string | null;
  readonly mode: string;
  readonly now: Date;
  readonly notBefore: Date;
  readonly expiresAt: Date;
}): Sql {
  const { operation, input, effect, makerId, maker, reason, mode, now, notBefore, expiresAt } = approval;
  return sql`
insert into approvals (operation, input, effect, maker_id, maker, reason, mode, created_at, not_before,
  expires_at)
values (${operation}, ${input}, ${effect}, ${makerId}, ${maker}, ${reason}, ${mode}, ${now}, ${notBefore},
  ${expiresAt})
returning id`;
}

export function findApproval(id: number): Sql {
  return { text: `select ${COLUMNS} from approvals where id = $1`, values: [id] };
}

/** Locks an approval, so that nobody else decides it until the transaction ends. */
export function lockApproval(id: number): Sql {
  return { text: `select ${COLUMNS} from approvals where id = $1 for update`, values: [id] };
}

/** Lists a page of approvals, newest first; optionally only those that are pending. */
export function listApprovalRows(waitingAt: Date | null, before: number | null, count: number): Sql {
  return {
    text: `select ${COLUMNS} from approvals
where ($2::integer is null or id < $2) and ($1::timestamptz is null or state = 'PENDING' and expires_at > $1)
order by id desc limit $3`,
    values: [waitingAt, before, count],
  };
}

/** Decides a pending approval. Returns no row if it has been decided meanwhile. */
export function decideApproval(decision: {
  readonly id: number;
  readonly state: 'APPROVED' | 'REJECTED' | 'WITHDRAWN';
  readonly checkerId: number | null;
  readonly checker: string;
  readonly isBreakGlass: boolean;
  readonly comment: string | null;
  readonly now: Date;
}): Sql {
  const { id, state, checkerId, checker, isBreakGlass, comment, now } = decision;
  return sql`
update approvals set
  state = ${state}, checker_id = ${checkerId}, checker = ${checker}, is_break_glass = ${isBreakGlass},
  is_same_person = same_person(maker_id, ${checkerId}), comment = ${comment}, decided_at = ${now}
where id = ${id} and state = 'PENDING' returning id`;
}

export function setApprovalOutput(id: number, output: string): Sql {
  return sql`update approvals set output = ${output} where id = ${id}`;
}

/** Lists the audit entries of this transaction. */
export function listOwnEntries(): Sql {
  return sql`
select action, subject, before, after from audit
where xmin = pg_current_xact_id()::xid and sequence > (select max(sequence) - 1000 from audit)
order by sequence`;
}
