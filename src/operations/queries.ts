import { type Sql, sql } from '../db/sql.ts';

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

/**
 * Tokens, each with the people that it depends on: the user whose token it is, and the user that made it. A
 * token does not outlast their enrollment: it may be known to those who had the account before.
 */
const TOKEN = `
select t.*, u.email as user_email,
  coalesce((
    select jsonb_agg(jsonb_build_object(
      'roles', p.roles, 'merchantId', p.merchant_id,
      'isActive', coalesce(p.enrolled_at <= t.created_at, false) and p.disabled_at is null))
    from users p where p.id in (t.user_id, t.made_by)), '[]') as people
from operator_tokens t left join users u on u.id = t.user_id`;

export function findTokenRow(hash: Buffer): Sql {
  return { text: `${TOKEN} where t.token_hash = $1`, values: [hash] };
}

/** Finds who approved an operation on a subject last. */
export function findChecker(operation: string, id: string): Sql {
  return sql`
select checker_id from approvals
where operation = ${operation} and state = 'APPROVED' and input::json ->> 'id' = ${id} and not is_alone
order by id desc limit 1`;
}

export function findTokenById(id: number): Sql {
  return { text: `${TOKEN} where t.id = $1`, values: [id] };
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
  /** The user whose token it is; null: nobody's. */
  readonly userId: number | null;
  /** The user that made it; null for the command line. */
  readonly madeBy: number | null;
  /** The user that approved it, and so has seen it. */
  readonly shownTo: number | null;
  readonly expiresAt: Date;
  readonly now: Date;
};

export function insertToken(token: NewToken): Sql {
  return sql`
insert into operator_tokens (name, token_hash, roles, merchant_id, networks, step_up, created_by, user_id,
  made_by, shown_to, expires_at, created_at)
values (${token.name}, ${token.hash}, ${token.roles}, ${token.merchantId}, ${token.networks}, ${token.stepUp},
  ${token.createdBy}, ${token.userId}, ${token.madeBy}, ${token.shownTo}, ${token.expiresAt}, ${token.now})
returning id`;
}

/** Lists tokens before an id, newest first. */
export function listTokenRows(before: number | null, limit: number): Sql {
  return {
    text: `${TOKEN} where $1::integer is null or t.id < $1 order by t.id desc limit $2`,
    values: [before, limit],
  };
}

export function lockToken(id: number): Sql {
  return sql`select id, user_id, made_by from operator_tokens where id = ${id} for update`;
}

export function revokeTokenRow(id: number, now: Date): Sql {
  return sql`update operator_tokens set revoked_at = coalesce(revoked_at, ${now}) where id = ${id}`;
}

export type ApprovalRow = {
  readonly id: number;
  readonly operation: string;
  readonly input: string;
  /** JSON: the effect in words (agreement.ts). */
  readonly statement: string;
  readonly effect: string | null;
  readonly maker_id: number | null;
  readonly token_id: number | null;
  readonly maker: string;
  readonly reason: string | null;
  readonly mode: 'two-people' | 'delay';
  readonly state: 'PENDING' | 'APPROVED' | 'REJECTED' | 'WITHDRAWN';
  readonly created_at: Date;
  readonly not_before: Date;
  readonly expires_at: Date;
  readonly checker: string | null;
  readonly first_checker_id: number | null;
  readonly first_checker: string | null;
  readonly first_checked_at: Date | null;
  readonly is_alone: boolean;
  readonly is_break_glass: boolean;
  readonly comment: string | null;
  readonly decided_at: Date | null;
  readonly output: string | null;
};

const COLUMNS = `id, operation, input, statement, effect, maker_id, token_id, maker, reason, mode, state,
  created_at, not_before, expires_at, checker, first_checker_id, first_checker, first_checked_at, is_alone,
  is_break_glass, comment, decided_at, output`;

export function insertApproval(approval: {
  readonly operation: string;
  readonly input: string;
  readonly effect: string | null;
  readonly statement: string;
  readonly makerId: number | null;
  readonly tokenId: number | null;
  readonly maker: string;
  readonly reason: string | null;
  readonly mode: string;
  readonly now: Date;
  readonly notBefore: Date;
  readonly expiresAt: Date;
}): Sql {
  const { operation, input, statement, effect, makerId, tokenId, maker, reason, mode } = approval;
  const { now, notBefore, expiresAt } = approval;
  return sql`
insert into approvals (operation, input, statement, effect, maker_id, token_id, maker, reason, mode,
  created_at, not_before, expires_at)
values (${operation}, ${input}, ${statement}, ${effect}, ${makerId}, ${tokenId}, ${maker}, ${reason},
  ${mode}, ${now}, ${notBefore}, ${expiresAt})
returning id`;
}

export function findApproval(id: number): Sql {
  return { text: `select ${COLUMNS} from approvals where id = $1`, values: [id] };
}

/** Locks an approval, so that nobody else decides it until the transaction ends. */
export function lockApproval(id: number): Sql {
  return { text: `select ${COLUMNS} from approvals where id = $1 for update`, values: [id] };
}

/** Whose approvals somebody sees: those of some operations, or of all (null), and their own. */
type Seen = { readonly operations: readonly string[] | null; readonly userId: number | null };

/** Lists a page of approvals, newest first; optionally only those that are pending. */
export function listApprovalRows(
  { operations, userId }: Seen,
  waitingAt: Date | null,
  before: number | null,
  count: number,
): Sql {
  return {
    text: `select ${COLUMNS} from approvals
where ($2::integer is null or id < $2) and ($1::timestamptz is null or state = 'PENDING' and expires_at > $1)
  and ($4::text[] is null or operation = any($4) or maker_id = $5)
order by id desc limit $3`,
    values: [waitingAt, before, count, operations, userId],
  };
}

/** Decides a pending approval. Returns no row if it has been decided meanwhile. */
export function decideApproval(decision: {
  readonly id: number;
  readonly state: 'APPROVED' | 'REJECTED' | 'WITHDRAWN';
  readonly checkerId: number | null;
  readonly checker: string;
  readonly isBreakGlass: boolean;
  readonly isAlone: boolean;
  readonly comment: string | null;
  readonly now: Date;
}): Sql {
  const { id, state, checkerId, checker, isBreakGlass, isAlone, comment, now } = decision;
  return sql`
update approvals set
  state = ${state}, checker_id = ${checkerId}, checker = ${checker}, is_break_glass = ${isBreakGlass},
  is_alone = ${isAlone}, comment = ${comment}, decided_at = ${now}
where id = ${id} and state = 'PENDING' returning id`;
}

/**
 * Records the first of two approvals, with the effect that was approved. The second one has to approve the
 * same.
 */
export function setFirstChecker(
  id: number,
  checker: {
    readonly id: number;
    readonly name: string;
    readonly statement: string;
    readonly effect: string | null;
    readonly now: Date;
  },
): Sql {
  return sql`
update approvals set
  first_checker_id = ${checker.id}, first_checker = ${checker.name}, first_checked_at = ${checker.now},
  effect = ${checker.effect}, statement = ${checker.statement}
where id = ${id} and state = 'PENDING'`;
}

/** Keeps the answer of an operation, and what was approved in words. */
export function setApprovalOutput(id: number, output: string, statement: string): Sql {
  return sql`update approvals set output = ${output}, statement = ${statement} where id = ${id}`;
}

/** Lists the audit entries of this transaction. */
export function listOwnEntries(): Sql {
  return sql`
select action, subject, before, after from audit
where xmin = pg_current_xact_id()::xid and sequence > (select max(sequence) - 1000 from audit)
order by sequence`;
}

/** Lists those users and tokens that are a merchant's, named like the actors of the audit. */
export function listActorsOf(merchantId: number, users: readonly number[], tokens: readonly number[]): Sql {
  return sql`
select 'user ' || id as actor from users where merchant_id = ${merchantId} and id = any (${users}::integer[])
union all
select 'token ' || id from operator_tokens
where merchant_id = ${merchantId} and id = any (${tokens}::integer[])`;
}
