import { type Sql, sql } from '../db/sql.ts';

/** Who is a person of their own, and who may stand behind an account, a token or a proposal. */

/** Those who know the link of an account. */
export type Holders = {
  /** The user that made the link, or proposed it; null for the command line. */
  readonly invitedBy: number | null;
  /** The user that received it; null for the command line. */
  readonly handedTo: number | null;
};

/**
 * Records who knows the link of a user. An earlier confirmation becomes void, since it was given without
 * knowledge of this link.
 */
export function setHolders(id: number, { invitedBy, handedTo }: Holders, confirmedAt: Date | null): Sql {
  return sql`
update users set
  invited_by = ${invitedBy}, handed_to = ${handedTo}, confirmed_at = ${confirmedAt}, confirmed_by = null
where id = ${id}`;
}

export function setConfirmed(id: number, by: number | null, now: Date): Sql {
  return sql`update users set confirmed_at = ${now}, confirmed_by = ${by} where id = ${id}`;
}

/** Returns the users that an account may belong to (sql/020-people.sql). */
export function findPeopleBehind(id: number): Sql {
  return sql`select people_behind(array[${id}::integer]) as makers`;
}

/** Returns the users that a proposal may belong to (sql/022-approvals.sql). */
export function findMakers(approvalId: number): Sql {
  return sql`select people_behind(makers) as makers from approvals where id = ${approvalId}`;
}

/** Returns which users are people of their own. */
export function findPersons(ids: readonly number[]): Sql {
  return sql`select u.id from unnest(${ids}::integer[]) u (id) where is_person(u.id)`;
}

/** Keeps users as they are until the transaction ends: no one is disabled or loses a role meanwhile. */
export function holdUsers(ids: readonly number[]): Sql {
  return sql`select id from users where id = any (${ids}::integer[]) order by id for share`;
}

/**
 * Counts the people who could approve at some time: owners and finance users of the operator, at most two. A
 * second account that nobody else has confirmed is not counted.
 */
export function countApprovers(): Sql {
  return sql`
    select count(*)::integer as count from (select from users where was_approver limit 2) u`;
}

export function findApprover(id: number): Sql {
  return sql`
    select from users where id = ${id} and was_approver and is_person(id) and roles && array['owner', 'finance']`;
}
