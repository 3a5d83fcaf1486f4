import { type Statement, statementOf } from '../agreement.ts';
import { inside, type Moved } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { canonicalJson } from '../json.ts';
import type { AnyOperation, Caller, Fields, Made } from '../operation.ts';
import { Problem } from '../problem.ts';

/** The effect of an operation: its changes, as the audit shows them, before or after it is performed. */

/** Returns the changes that a transaction has made so far. */
export async function readEffect(tx: Queries): Promise<Made[]> {
  return tx.query<Made>(sql`
select action, subject, before::json, after::json from audit
where xmin = pg_current_xact_id()::xid and sequence > (select max(sequence) - 1000 from audit)
order by sequence`);
}

/** What an operation did in a rehearsal: its answer, and the money that it moved by hand. */
type Rehearsed = {
  readonly tx: Queries;
  readonly caller: Caller;
  readonly output: unknown;
  readonly moved: readonly Moved[];
};

/**
 * Performs an operation in a transaction that is rolled back.
 * @param look looks at what it did, before that
 * @returns what `look` returns
 */
export async function rehearse<Seen>(
  operation: AnyOperation,
  caller: Caller,
  input: Fields,
  look: (rehearsed: Rehearsed) => Promise<Seen>,
): Promise<Seen> {
  const { service } = caller;
  const rolledBack = Symbol('rolled back');
  let seen: Seen | undefined;
  const run = () =>
    service.db.transaction(async (tx) => {
      const moved: Moved[] = [];
      const within = {
        ...caller,
        service: inside(service, tx),
        onMoved: (each: Moved) => void moved.push(each),
      };
      const output = await operation.run(within, input);
      seen = await look({ tx, caller: within, output, moved });
      throw rolledBack;
    });
  await retrying(run).catch((thrown: unknown) => {
    if (thrown !== rolledBack) throw thrown;
  });
  return seen as Seen;
}

/** The changes that an operation would make, its answer, and what two people would agree on. */
type Preview = {
  readonly effect: Made[];
  readonly output: unknown;
  /** Null if it would change nothing. */
  readonly statement: Statement | null;
};

/**
 * Returns the changes that an operation would make.
 * @returns an empty effect for a repetition, such as the same refund under the same reference
 * @throws Problem or Refusal if it could not be performed now
 */
export async function previewEffect(
  operation: AnyOperation,
  caller: Caller,
  input: Fields,
): Promise<Preview> {
  await operation.prepare?.(caller, input);
  return rehearse(operation, caller, input, async ({ tx, caller: within, output }) => {
    const effect = await readEffect(tx);
    const asked = { caller: within, input, made: effect };
    return { effect, output, statement: effect.length > 0 ? await statementOf(operation, asked) : null };
  });
}

/**
 * Changes whose value before them does not matter to an approver. A float in use changes all the time, and a
 * top-up adds the same to any balance.
 */
const INDEPENDENT = ['float.top-up'];

/**
 * Returns the part of an effect that must not differ from the one the maker saw: the values before the
 * changes. New rows get other numbers each time.
 */
function foundIn(effect: readonly Made[] | null): string {
  return canonicalJson(
    (effect ?? [])
      .filter(({ action, before }) => before !== null && !INDEPENDENT.includes(action))
      .map(({ action, subject, before }) => [action, subject, before]),
  );
}

/** Returns whether two effects do not differ in what an approver has to see. */
export function isSameEffect(one: readonly Made[] | null, other: readonly Made[] | null): boolean {
  return foundIn(one) === foundIn(other);
}

/**
 * Checks that an effect is the confirmed one.
 * @throws Problem `effect-changed` with the new effect if it is not
 */
export function requireSameEffect(
  confirmed: readonly Made[] | null,
  effect: readonly Made[],
  statement: Statement,
): void {
  if (isSameEffect(confirmed, effect)) return;
  const message = 'the effect is not what was proposed: look at the new one, and confirm it';
  throw new Problem('effect-changed', message, undefined, { effect, statement });
}
