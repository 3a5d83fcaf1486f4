import { type Sql, sql } from '../db/sql.ts';
import type { Link } from './chain.ts';

/** Lets one transaction at a time append, until it ends. No other lock has this number. */
export function lockChain(): Sql {
  return sql`select pg_advisory_xact_lock(7311990002)`;
}

/** Counts the entries of an actor with an action since a time, up to a limit. */
export function countSince(action: string, kind: string, id: string, since: Date, most: number): Sql {
  return sql`
select count(*)::int as count from (
  select from audit
  where occurred_at > ${since} and action = ${action} and actor_kind = ${kind} and actor_id = ${id}
  limit ${most}
) a`;
}

export function findHead(): Sql {
  return sql`select sequence, hash, occurred_at from audit order by sequence desc limit 1`;
}

export function findSealedHead(): Sql {
  return sql`select sealed from audit_head`;
}

export function setSealedHead(sealed: Buffer): Sql {
  return sql`
    insert into audit_head (sealed) values (${sealed})
    on conflict (only_row) do update set sealed = excluded.sealed`;
}

export function insertEntry(link: Link, hash: Buffer): Sql {
  return sql`
insert into audit (sequence, occurred_at, actor_kind, actor_id, actor, origin, request_id, action, subject,
  reason, before, after, states, previous_hash, hash)
values (${link.sequence}, ${link.occurredAt}, ${link.actorKind}, ${link.actorId}, ${link.actor},
  ${link.origin}, ${link.requestId}, ${link.action}, ${link.subject}, ${link.reason}, ${link.before},
  ${link.after}, ${link.states}, ${link.previousHash}, ${hash})`;
}

/**
 * Lists a page of the chain after a number. The time is read as text, since a Date would lose microseconds.
 */
export function listLinks(after: bigint, count: number): Sql {
  return sql`
select sequence, to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as occurred_at,
  actor_kind, actor_id, actor, origin, request_id, action, subject, reason, before, after, states,
  previous_hash, hash
from audit where sequence > ${after} order by sequence limit ${count}`;
}

/** Selects the entries that are listed. Null selects all. */
export type AuditFilter = {
  readonly subject: string | null;
  readonly actor: string | null;
  readonly kind: string | null;
  readonly action: string | null;
  readonly from: Date | null;
  readonly until: Date | null;
};

/** Lists entries before a sequence number, newest first. Each filter has an index (sql/019-operator.sql). */
export function listEntries(filter: AuditFilter, before: bigint | null, count: number): Sql {
  const values: unknown[] = [count];
  const conditions = ['true'];
  const add = (condition: (parameter: string) => string, value: unknown) => {
    if (value !== null) conditions.push(condition(`$${values.push(value)}`));
  };
  add((value) => `sequence < ${value}::bigint`, before);
  add((value) => `subject = ${value}::text`, filter.subject);
  add((value) => `actor = ${value}::text`, filter.actor);
  add((value) => `action = ${value}::text`, filter.action);
  add((value) => `actor_kind = ${value}::text`, filter.kind);
  // Entries are almost in the order of their times, so the entries around a time show where a list begins and
  // ends.
  add(
    (value) => `occurred_at < ${value}::timestamptz and sequence <= coalesce((
      select max(e.sequence) from (
        select n.sequence from audit n where n.occurred_at < ${value}::timestamptz
        order by n.occurred_at desc, n.sequence desc limit 100
      ) e), 0)`,
    filter.until,
  );
  add(
    (value) => `occurred_at >= ${value}::timestamptz and sequence >= coalesce((
      select min(e.sequence) from (
        select n.sequence from audit n where n.occurred_at >= ${value}::timestamptz
        order by n.occurred_at, n.sequence limit 100
      ) e), 9223372036854775807)`,
    filter.from,
  );
  return {
    text: `
select sequence, occurred_at, actor_kind, actor_id, actor, origin, request_id, action, subject, reason,
  before, after, hash
from audit where ${conditions.join(' and ')} order by sequence desc limit $1`,
    values,
  };
}

/** Lists operations that need two people but that an account of the machine performed alone, newest first. */
export function listBreakGlass(since: Date, count: number): Sql {
  return sql`
select sequence, occurred_at, actor_kind, actor_id, actor, origin, request_id, action, subject, reason,
  before, after, hash
from audit where actor_kind = 'break-glass' and occurred_at >= ${since}
order by sequence desc limit ${count}`;
}
