import { type Sql, sql } from '../db/sql.ts';

/**
 * People of the operator who sign in with a second factor, here or at the identity provider: they could
 * approve. An account that nobody has confirmed may be a second one of the same person.
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
  expires_at, checker,
  is_break_glass, comment, decided_at, output`;

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
insert into approvals
  (operation, input, effect, maker_id, maker, reason, mode, created_at, not_before, expires_at)
values
  (${operation}, ${input}, ${effect}, ${makerId}, ${maker}, ${reason}, ${mode}, ${now}, ${notBefore},
  ${expiresAt})
returning id`;
}

export function findApproval(id: number): Sql {
  return { text: `select ${COLUMNS} from approvals where id = $1`, values: [id] };
}

/** One that nobody else decides until the transaction ends. */
export function lockApproval(id: number): Sql {
  return { text: `select ${COLUMNS} from approvals where id = $1 for update`, values: [id] };
}

/** A page, newest first; of those that wait only, where asked. */
export function listApprovalRows(waitingAt: Date | null, before: number | null, count: number): Sql {
  return {
    text: `select ${COLUMNS} from approvals
where ($2::integer is null or id < $2) and ($1::timestamptz is null or state = 'PENDING' and expires_at > $1)
order by id desc limit $3`,
    values: [waitingAt, before, count],
  };
}

/** Decides one that waits; no row where it was decided meanwhile. */
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
update approvals
set state = ${state}, checker_id = ${checkerId}, checker = ${checker}, is_break_glass = ${isBreakGlass},
  is_same_person = same_person(maker_id, ${checkerId}), comment = ${comment},
  decided_at = ${now}
where id = ${id} and state = 'PENDING' returning id`;
}

export function setApprovalOutput(id: number, output: string): Sql {
  return sql`update approvals set output = ${output} where id = ${id}`;
}

/** What this transaction has put into the audit so far. */
export function listOwnEntries(): Sql {
  return sql`
select action, subject, before, after from audit
where xmin = pg_current_xact_id()::xid and sequence > (select max(sequence) - 1000 from audit)
order by sequence`;
}
