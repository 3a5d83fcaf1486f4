import type { Queries } from '../db/pool.ts';
import { type AuditFilter, findHead, listBreakGlass, listEntries } from './queries.ts';

export type AuditEntry = {
  readonly sequence: bigint;
  readonly occurredAt: Date;
  readonly actorKind: string;
  readonly actorId: string | null;
  readonly actor: string;
  readonly origin: string;
  readonly requestId: string | null;
  readonly action: string;
  readonly subject: string;
  readonly reason: string | null;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
  readonly hash: string;
};

/**
 * The end of the chain. Once it is published, it proves that nothing before it was changed or cut off.
 */
export type Head = { readonly sequence: bigint; readonly hash: string; readonly occurredAt: Date };

type Row = {
  sequence: bigint;
  occurred_at: Date;
  actor_kind: string;
  actor_id: string | null;
  actor: string;
  origin: string;
  request_id: string | null;
  action: string;
  subject: string;
  reason: string | null;
  before: string | null;
  after: string | null;
  hash: Buffer;
};

/** The newest entries, newest first; of one subject (`merchant 5`) if it is given. */
export function listAudit(db: Queries, subject: string | null, count: number): Promise<AuditEntry[]> {
  return pageOfAudit(db, { ...ANY, subject }, null, count);
}

const ANY: AuditFilter = {
  subject: null,
  actor: null,
  kind: null,
  action: null,
  from: null,
  until: null,
};

/** A page of entries, newest first, before a sequence number. */
export async function pageOfAudit(
  db: Queries,
  filter: AuditFilter,
  before: bigint | null,
  count: number,
): Promise<AuditEntry[]> {
  return (await db.query<Row>(listEntries(filter, before, count))).map(toEntry);
}

/** What accounts of the machine did alone since a time, though it takes two people; newest first. */
export async function pageOfBreakGlass(db: Queries, since: Date, count: number): Promise<AuditEntry[]> {
  return (await db.query<Row>(listBreakGlass(since, count))).map(toEntry);
}

function toEntry({ occurred_at, actor_kind, actor_id, request_id, before, after, hash, ...rest }: Row) {
  return {
    ...rest,
    occurredAt: occurred_at,
    actorKind: actor_kind,
    actorId: actor_id,
    requestId: request_id,
    before: before === null ? null : JSON.parse(before),
    after: after === null ? null : JSON.parse(after),
    hash: hash.toString('hex'),
  };
}

/** @returns undefined if there is no entry yet */
export async function auditHead(db: Queries): Promise<Head | undefined> {
  const [row] = await db.query<{ sequence: bigint; hash: Buffer; occurred_at: Date }>(findHead());
  return row && { sequence: row.sequence, hash: row.hash.toString('hex'), occurredAt: row.occurred_at };
}
