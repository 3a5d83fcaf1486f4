import { createService, type Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { within } from '../db/within.ts';
import { listOwnEntries } from './approvals.queries.ts';
import type { AnyOperation, Caller } from './operations.ts';
import { Problem } from './problem.ts';

/** The effect of an operation: the changes that it makes, as the audit shows them. */

/** A change that an operation would make, as the audit would tell it. */
export type Effect = {
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
};

export type Fields = Record<string, unknown>;
type EntryRow = { action: string; subject: string; before: string | null; after: string | null };

/** JSON that was stored, or null. */
export const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text));

/** JSON in one spelling: names in order. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each) && !(each instanceof Date)
      ? Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}

/** A service that works in a transaction. */
export function inside(service: Service, tx: Parameters<typeof within>[1]): Service {
  const db = within(service.db, tx);
  return createService({ ...service, db, readDb: db });
}

/** What a transaction has changed so far. */
export async function readEffect(tx: Queries): Promise<Effect[]> {
  const rows = await tx.query<EntryRow>(listOwnEntries());
  return rows.map(({ action, subject, before, after }) => ({
    action,
    subject,
    before: parsed(before),
    after: parsed(after),
  }));
}

/**
 * What an operation would change: it is performed in a transaction that is rolled back.
 * @returns null for one that calls outside of the database
 * @throws Problem, Refusal where it could not be performed now
 */
export async function previewEffect(
  operation: AnyOperation,
  caller: Caller,
  input: Fields,
): Promise<Effect[] | null> {
  if (operation.effect !== 'change') return null;
  const previewed = Symbol('rolled back');
  let effect: Effect[] = [];
  const run = () =>
    caller.service.db.transaction(async (tx) => {
      await operation.run({ ...caller, service: inside(caller.service, tx) }, input);
      effect = await readEffect(tx);
      throw previewed;
    });
  await retrying(run).catch((thrown: unknown) => {
    if (thrown !== previewed) throw thrown;
  });
  return effect;
}

/**
 * What must be as the maker saw it: what there was before. New rows get other numbers each time.
 */
function foundIn(effect: readonly Effect[] | null): string {
  return canonical(
    (effect ?? [])
      .filter(({ before }) => before !== null)
      .map(({ action, subject, before }) => [action, subject, before]),
  );
}

/**
 * @throws Problem `effect-changed` that carries the new effect, where it is not the one that was confirmed
 */
export function requireSameEffect(confirmed: readonly Effect[] | null, effect: readonly Effect[]): void {
  if (foundIn(confirmed) === foundIn(effect)) return;
  const message = 'the effect is not what was proposed: look at the new one, and confirm it';
  throw new Problem('effect-changed', message, undefined, { effect });
}
