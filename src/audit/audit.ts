import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Details, GENESIS, hashOf, writeDetails } from './chain.ts';
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

/**
 * Adds a change to the audit, in the transaction of the change: both are there, or neither. Call it last in the
 * transaction: from here until its end nobody else appends, and who then waits for a row lock could wait for one that
 * waits for this.
 * @param tx the transaction of the change; never the database itself
 * @param operator who changed it; its clock says when
 */
export async function audit(tx: Queries, { actor, service }: Operator, ...changes: readonly Change[]): Promise<void> {
  await tx.query(lockChain());
  const [head] = await tx.query<{ sequence: bigint; hash: Buffer }>(findHead());
  const occurredAt = service.clock().toISOString().replace('Z', '000Z');
  let { sequence, hash } = head ?? { sequence: 0n, hash: GENESIS };
  for (const { action, subject, before, after } of changes) {
    sequence += 1n;
    const link = {
      sequence,
      occurredAt,
      actor: actor.name,
      origin: actor.origin,
      action,
      subject,
      reason: actor.reason,
      before: before === undefined ? null : writeDetails(before),
      after: after === undefined ? null : writeDetails(after),
      previousHash: hash,
    };
    hash = hashOf(link);
    await tx.query(insertEntry(link, hash));
  }
}
