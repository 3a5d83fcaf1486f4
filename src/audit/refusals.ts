import { type Actor, inOrder, type RefusedEvent, type Service } from '../context.ts';
import type { Tallied } from '../tally.ts';
import { audit, type Change } from './audit.ts';

/**
 * Refused sign-ins, step-ups, tokens and operations, in the audit. A stranger can cause any number of them,
 * so they are counted (src/tally.ts): an hour adds at most two entries for each subject and actor, and a
 * bounded number in all. The log has a line for each.
 */

/** The subject of a sign-in with an address that nobody has. */
export const UNKNOWN_ACCOUNT = 'unknown account';

/** Counts a refusal. The request does not wait for the audit. */
export function recordRefusal(service: Service, event: RefusedEvent): void {
  const { refusals, clock } = service;
  const { action, subject, actor, address, by } = event;
  const key = JSON.stringify([action, subject, actor?.kind, actor?.id, by]);
  const other = { ...event, subject: 'others', actor: null, by: null };
  refusals.count(key, event, address, other, clock());
  refusals.schedule(() => void flushRefusals(service));
}

/**
 * Writes the counts that are due, after those that are being written. Counts that cannot be written are lost:
 * the log has a line for each refusal.
 * @param all also the counts of the present period, before the process ends
 */
export const flushRefusals = inOrder(async (service, all: boolean = false) => {
  const { refusals, clock, db, log } = service;
  const due = refusals.take(clock(), all);
  if (due.length === 0) return;
  try {
    await db.transaction(async (tx) => {
      for (const each of due) await audit(tx, { service, actor: actorOf(each) }, changeOf(each));
    });
  } catch (error) {
    log.warn({ refusals: due.length, error: (error as Error).message }, 'refusals are not in the audit');
  }
});

function actorOf({ event: { actor, address, requestId } }: Tallied<RefusedEvent>): Actor {
  return actor ?? { kind: 'service', id: null, name: 'stranger', origin: address, requestId, reason: null };
}

function changeOf({ event: { action, subject, by }, count, sources }: Tallied<RefusedEvent>): Change {
  return { action, subject, after: { by, count, addresses: sources }, setsNothing: true };
}
