import { type Actor, byService, type Moved, type Operator, type Service } from '../context.ts';
import { sqlState } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { insertInto, sql } from '../db/sql.ts';
import { canonicalJson } from '../json.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { Problem } from '../problem.ts';
import { storedAs } from '../row.ts';
import { MINUTE_MS } from '../time.ts';
import { type Details, type End, GENESIS, hashOf, isSealed, readSealed, SaidRow, sealEnd } from './chain.ts';
import { kindOf, listStates } from './states.ts';

/** A change by an operator. */
export type Change = {
  /** The action, such as `merchant.suspend`. */
  readonly action: string;
  /** The subject of the change, such as `merchant 5`. */
  readonly subject: string;
  /** The values before and after, without secrets; undefined if there are none. */
  readonly before?: Details | undefined;
  readonly after?: Details | undefined;
  /** Money that was moved by hand, and what it concerns besides the subject. */
  readonly moved?: readonly (Pick<Moved, 'currency' | 'minor'> & Partial<Moved>)[];
  /** Other subjects that the change has set something on. */
  readonly touches?: readonly string[];
  /** How often one person or token may do it within a minute; undefined: no limit. */
  readonly perMinute?: number;
  /** Whether the entry is about a refused request, and so does not record the state of its subject. */
  readonly setsNothing?: boolean;
};

/** The action of the entry that is added if the chain does not end with the sealed entry. */
export const BROKEN = 'audit.broken';
const GUARD = byService(
  'the audit',
  'the chain did not end with the entry that was sealed: it was cut off, rewritten, or added to from outside',
);

/**
 * Adds a change to the audit in the transaction of the change, so that both exist or neither. Call it last in
 * the transaction. Until the transaction ends no other process can append, and waiting for a row lock after
 * this call could deadlock.
 * @param tx the transaction of the change; never the database itself
 * @param operator the author; its clock gives the time
 * @throws Problem `too-many-requests` for a change that its author has made too often within a minute
 */
export async function audit(
  tx: Queries,
  { actor, service, onMoved }: Operator,
  ...changes: readonly Change[]
): Promise<void> {
  const { keys } = service;
  await holdKeyRing(tx, keys);
  // One transaction at a time appends, until it ends. No other lock has this number.
  await tx.query(sql`select pg_advisory_xact_lock(7311990002)`);
  const [head] = await tx.query<End>(sql`select sequence, hash from audit order by sequence desc limit 1`);
  let end = head ?? { sequence: 0n, hash: GENESIS };
  const occurredAt = service.clock().toISOString().replace('Z', '000Z');
  const append = async (by: Actor, change: Change) => {
    // Other changes of the subject are visible: they hold the lock until they are committed.
    const states = change.setsNothing
      ? null
      : await readStates(tx, service, [change.subject, ...(change.touches ?? [])]);
    end = await insert(tx, end, occurredAt, by, change, states);
  };
  if (!isSealed(keys, await readSealed(tx), end)) {
    const after = { sequence: end.sequence, hash: end.hash.toString('hex') };
    await append(GUARD, { action: BROKEN, subject: 'audit', after });
  }
  for (const change of changes) {
    await requireRare(tx, service, actor, change);
    await append(actor, change);
    for (const { subjects = [], ...moved } of change.moved ?? [])
      onMoved?.({ ...moved, subjects: [change.subject, ...subjects] });
  }
  await sealEnd(tx, keys, end);
}

/**
 * Records a change before it is made, in a transaction of its own. The chain of the audit is locked until a
 * transaction ends, so one that also waited for tills would make all other changes wait for them.
 */
export function auditFirst(operator: Operator, change: Change): Promise<void> {
  return operator.service.db.transaction((tx) => audit(tx, operator, change));
}

/** Refuses what its author does too often. The chain is locked, so concurrent changes count one by one. */
async function requireRare(
  tx: Queries,
  { clock }: Service,
  { kind, id }: Actor,
  { action, perMinute }: Change,
): Promise<void> {
  if (perMinute === undefined || id === null) return;
  const since = new Date(clock().getTime() - MINUTE_MS);
  const [row] = await tx.query<{ count: number }>(sql`
select count(*)::int as count from (
  select from audit
  where occurred_at > ${since} and action = ${action} and actor_kind = ${kind} and actor_id = ${id}
  limit ${perMinute}
) a`);
  if ((row?.count ?? 0) < perMinute) return;
  const text = `it was done ${perMinute} times within a minute: wait a minute`;
  throw new Problem('too-many-requests', text, undefined, {}, MINUTE_MS / 1_000);
}

/**
 * Returns whether this process can append. Without the key ring of the database it cannot seal the end of the
 * chain.
 * @throws errors of the database
 */
export async function canAudit(tx: Queries, { keys }: Service): Promise<boolean> {
  try {
    await holdKeyRing(tx, keys);
    keys.sealText('', '');
    return true;
  } catch (error) {
    if (sqlState(error)) throw error;
    return false;
  }
}

/** Returns digests of what operators have set on subjects, as JSON; null if nothing can be set on them. */
async function readStates(
  tx: Queries,
  { buckets }: Service,
  subjects: readonly string[],
): Promise<string | null> {
  const states: Record<string, string | null> = {};
  for (const [kind, own] of Map.groupBy(subjects, kindOf)) {
    if (kind === undefined) continue;
    for (const subject of own) states[subject] = null;
    const rows = await tx.query<{ subject: string; digest: string }>(listStates(kind, own, buckets.ofSerial));
    for (const { subject, digest } of rows) states[subject] = digest;
  }
  return Object.keys(states).length === 0 ? null : JSON.stringify(states);
}

/** Returns the values after a change, and who approved it. */
function withApprover({ approvedBy }: Actor, after: Details | undefined): string | null {
  if (approvedBy === undefined) return after === undefined ? null : canonicalJson(after);
  return canonicalJson({ ...after, approvedBy } as Details);
}

/** Appends one entry after an end. @returns the new end */
async function insert(
  tx: Queries,
  end: End,
  occurredAt: string,
  actor: Actor,
  change: Change,
  states: string | null,
): Promise<End> {
  const { action, subject, before, after } = change;
  const said = {
    sequence: end.sequence + 1n,
    occurredAt,
    actorKind: actor.kind,
    actorId: actor.id,
    actor: actor.name,
    origin: actor.origin,
    requestId: actor.requestId,
    action,
    subject,
    reason: actor.reason,
    before: before === undefined ? null : canonicalJson(before),
    after: withApprover(actor, after),
    states,
  };
  const hash = hashOf({ ...said, previousHash: end.hash });
  await tx.query(insertInto('audit', { ...storedAs(SaidRow, said), previous_hash: end.hash, hash }));
  return { sequence: said.sequence, hash };
}
