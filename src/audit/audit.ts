import type { Actor, Operator, Service } from '../context.ts';
import { sqlState } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { type Details, GENESIS, hashOf, writeDetails } from './chain.ts';
import { type End, isSealed, readSealed, sealEnd } from './head.ts';
import { findHead, insertEntry, lockChain } from './queries.ts';

/** A change by an operator. */
export type Change = {
  /** What was done: `merchant.suspend`. */
  readonly action: string;
  /** To what: `merchant 5`. */
  readonly subject: string;
  /** What the change is about, as it was and as it is, without a secret; left out where there is nothing. */
  readonly before?: Details | undefined;
  readonly after?: Details | undefined;
};

/** What is written where the chain does not end with what was sealed: nobody appends it away. */
export const BROKEN = 'audit.broken';
const GUARD: Actor = {
  kind: 'service',
  id: null,
  name: 'scrip',
  origin: 'the audit',
  requestId: null,
  reason:
    'the chain did not end with the entry that was sealed: it was cut off, written anew, or added to from outside',
};

/**
 * Adds a change to the audit, in the transaction of the change: both are there, or neither. Call it last
 * in the transaction: from here until its end nobody else appends, and who then waits for a row lock
 * could wait for one that waits for this.
 * @param tx the transaction of the change; never the database itself
 * @param operator who changed it; its clock says when
 */
export async function audit(
  tx: Queries,
  { actor, service }: Operator,
  ...changes: readonly Change[]
): Promise<void> {
  const { keys } = service;
  await holdKeyRing(tx, keys);
  await tx.query(lockChain());
  const [head] = await tx.query<End>(findHead());
  let end = head ?? { sequence: 0n, hash: GENESIS };
  const occurredAt = service.clock().toISOString().replace('Z', '000Z');
  const append = async (by: Actor, change: Change) => {
    end = await insert(tx, end, occurredAt, by, change);
  };
  if (!isSealed(keys, await readSealed(tx), end)) {
    const after = { sequence: end.sequence, hash: end.hash.toString('hex') };
    await append(GUARD, { action: BROKEN, subject: 'audit', after });
  }
  for (const change of changes) await append(actor, change);
  await sealEnd(tx, keys, end);
}

/**
 * Whether this process can append: where its key ring is lost, or is not that of the database, it cannot
 * seal the end of the chain.
 * @throws what the database says
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

/** Appends one entry behind an end. @returns the new end */
async function insert(tx: Queries, end: End, occurredAt: string, actor: Actor, change: Change): Promise<End> {
  const { action, subject, before, after } = change;
  const link = {
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
    before: before === undefined ? null : writeDetails(before),
    after: after === undefined ? null : writeDetails(after),
    previousHash: end.hash,
  };
  const hash = hashOf(link);
  await tx.query(insertEntry(link, hash));
  return { sequence: link.sequence, hash };
}
