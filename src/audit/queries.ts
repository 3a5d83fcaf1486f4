import { type Sql, sql } from '../db/sql.ts';
import type { Link } from './chain.ts';

/** One transaction appends at a time, until it ends. No other lock has this number. */
export function lockChain(): Sql {
  return sql`select pg_advisory_xact_lock(7311990002)`;
}

export function findHead(): Sql {
  return sql`select sequence, hash, occurred_at from audit order by sequence desc limit 1`;
}

export function findSealedHead(): Sql {
  return sql`select sealed from audit_head`;
}

export function setSealedHead(sealed: Buffer): Sql {
  return sql`
    insert into audit_head (sealed) values (${sealed}) on conflict (only_row) do update
    set sealed = excluded.sealed`;
}

export function insertEntry(link: Link, hash: Buffer): Sql {
  return sql`
insert into audit (sequence, occurred_at, actor_kind, actor_id, actor, origin, request_id, action, subject,
  reason, before, after,
  previous_hash, hash)
values (${link.sequence}, ${link.occurredAt}, ${link.actorKind}, ${link.actorId}, ${link.actor},
  ${link.origin}, ${link.requestId},
  ${link.action}, ${link.subject}, ${link.reason}, ${link.before}, ${link.after}, ${link.previousHash},
    ${hash})`;
}

/** A page of the chain after a number. The time is read as text, since a Date would lose microseconds. */
export function listLinks(after: bigint, count: number): Sql {
  return sql`
select sequence, to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as occurred_at,
  actor_kind, actor_id,
  actor, origin, request_id, action, subject, reason, before, after, previous_hash, hash
from audit where sequence > ${after} order by sequence limit ${count}`;
}

/** The newest entries, newest first; of one subject if it is given. */
export function listNewest(subject: string | null, count: number): Sql {
  return sql`
select sequence, occurred_at, actor_kind, actor_id, actor, origin, request_id, action, subject, reason,
  before, after, hash
from audit where ${subject}::text is null or subject = ${subject} order by sequence desc limit ${count}`;
}
