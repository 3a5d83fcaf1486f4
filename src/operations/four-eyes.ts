import { type Statement, statementOf } from '../agreement.ts';
import { type Actor, inside, type Moved, type Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { canonicalJson } from '../json.ts';
import type { AnyOperation, Caller, Fields, Made } from '../operation.ts';
import { isGlassClosed, isOnlyPerson } from '../people/persons.ts';
import type { Principal, Role } from '../principal.ts';
import { Problem } from '../problem.ts';
import type { countMoved } from '../settings/limits.ts';
import { readSettings } from '../settings/settings.ts';

/** The rule of four eyes: what one person proposes, another one approves (docs/how-to/people.md). */

/** Returns the roles that may propose an operation, besides those that may perform it. */
export const proposersOf = ({ approval }: Pick<AnyOperation, 'approval'>): readonly Role[] =>
  approval?.people === 2 ? approval.proposers : [];

/** Returns the roles that may approve an operation, and reject it. */
export const approversOf = ({
  approval,
  roles,
}: Pick<AnyOperation, 'approval' | 'roles'>): readonly string[] =>
  approval?.people === 2 ? (approval.approvers ?? roles) : roles;

/**
 * Returns whether somebody may propose an operation that their roles do not permit. Users of a merchant may
 * not.
 */
export function mayPropose(
  operation: Pick<AnyOperation, 'approval'>,
  { roles, merchantId }: Pick<Principal, 'roles' | 'merchantId'>,
): boolean {
  return merchantId === null && proposersOf(operation).some((role) => roles.includes(role));
}

/**
 * Returns whether an operation with this input needs approval: of the operator's people, or, if the merchant
 * has chosen so, of the merchant's own.
 */
export async function needsApproval(
  { approval }: Pick<AnyOperation, 'approval'>,
  caller: Pick<Caller, 'service' | 'principal'>,
  input: Fields,
): Promise<boolean> {
  if (approval?.people !== 2 || approval.isOfMerchant !== (caller.principal.merchantId !== null))
    return false;
  if (approval.when === null) return true;
  for (const condition of approval.when) if (await condition.applies(caller, input)) return true;
  return false;
}

/**
 * Returns whether a user performs alone what two people have to agree on: the user is the only person who
 * could ever approve anything, and has not chosen the delay instead.
 */
export async function isAlone(
  { db }: Service,
  { kind, userId, merchantId }: Pick<Principal, 'kind' | 'userId' | 'merchantId'>,
): Promise<boolean> {
  if (kind !== 'user' || userId === null || merchantId !== null) return false;
  return (await isOnlyPerson(db, userId)) && (await readSettings(db)).approvalMode === 'two-people';
}

/** Returns a caller whose changes are marked in the audit: one person performed them instead of two. */
export function markedAlone(caller: Caller): Caller {
  return { ...caller, actor: { ...caller.actor, kind: 'alone' } };
}

/**
 * Checks that the command line may perform an operation alone.
 * @returns whether its limits do not count either
 * @throws Problem `approval-required` if another person has to approve it
 */
export async function requireGlass(
  operation: Pick<AnyOperation, 'name' | 'approval'>,
  service: Service,
  actor: Actor,
  input: Fields,
): Promise<boolean> {
  if (actor.kind === 'break-glass') {
    requireReason(actor);
    return true;
  }
  const { approval } = operation;
  if (approval === null || !(await isGlassClosed(service))) return true;
  const principal = { kind: actor.kind, merchantId: null } as Principal;
  if (await needsApproval({ approval }, { service, principal }, input)) throw approvalRequired(operation);
  return false;
}

/** Requires the reason of an act that nobody else approves. */
export function requireReason({ reason }: Actor): void {
  if (reason === null) throw new Problem('invalid', '--break-glass needs --reason');
}

/** Returns the problem of a command that another person has to approve. */
export function approvalRequired({ name }: Pick<AnyOperation, 'name'>): Problem {
  return new Problem(
    'approval-required',
    `${name} is approved by another person: propose it in the console, or do it alone with ` +
      '--break-glass and --reason',
  );
}

/** The effect of an operation: its changes, as the audit shows them. */

/** A change that an operation would make, as the audit would show it. */
export type Effect = Made;

/** Returns the changes that a transaction has made so far. */
export async function readEffect(tx: Queries): Promise<Effect[]> {
  return tx.query<Effect>(sql`
select action, subject, before::json, after::json from audit
where xmin = pg_current_xact_id()::xid and sequence > (select max(sequence) - 1000 from audit)
order by sequence`);
}

/** The changes that an operation would make, its answer, and what two people would agree on. */
type Preview = {
  readonly effect: Effect[] | null;
  readonly output: unknown;
  /** Null if it would change nothing, or is counted. */
  readonly statement: Statement | null;
};

/**
 * Returns the changes that an operation would make. It is performed in a transaction that is rolled back.
 * @returns no effect for an operation that calls something outside the database; an empty one for a
 *   repetition, such as the same refund under the same reference
 * @param count decides about what the operation has moved; left out: nothing does
 * @throws Problem or Refusal if it could not be performed now
 */
export async function previewEffect(
  operation: AnyOperation,
  caller: Caller,
  input: Fields,
  count?: typeof countMoved,
): Promise<Preview> {
  if (operation.effect !== 'change') {
    const statement = await statementOf(operation, { caller, input, made: [] });
    return { effect: null, output: null, statement };
  }
  const previewed = Symbol('rolled back');
  let preview: Preview = { effect: [], output: null, statement: null };
  const run = () =>
    caller.service.db.transaction(async (tx) => {
      const moved: Moved[] = [];
      const onMoved = (each: Moved) => moved.push(each);
      const within = { ...caller, service: inside(caller.service, tx), onMoved };
      const output = await operation.run(within, input);
      await count?.(tx, operation, caller, moved);
      const effect = await readEffect(tx);
      const isStated = count === undefined && effect.length > 0;
      const asked = { caller: within, input, made: effect };
      preview = { effect, output, statement: isStated ? await statementOf(operation, asked) : null };
      throw previewed;
    });
  await retrying(run).catch((thrown: unknown) => {
    if (thrown !== previewed) throw thrown;
  });
  return preview;
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
function foundIn(effect: readonly Effect[] | null): string {
  return canonicalJson(
    (effect ?? [])
      .filter(({ action, before }) => before !== null && !INDEPENDENT.includes(action))
      .map(({ action, subject, before }) => [action, subject, before]),
  );
}

/** Returns whether two effects do not differ in what an approver has to see. */
export function isSameEffect(one: readonly Effect[] | null, other: readonly Effect[] | null): boolean {
  return foundIn(one) === foundIn(other);
}

/**
 * Checks that an effect is the confirmed one.
 * @throws Problem `effect-changed` with the new effect if it is not
 */
export function requireSameEffect(
  confirmed: readonly Effect[] | null,
  effect: readonly Effect[],
  statement: Statement,
): void {
  if (isSameEffect(confirmed, effect)) return;
  const message = 'the effect is not what was proposed: look at the new one, and confirm it';
  throw new Problem('effect-changed', message, undefined, { effect, statement });
}
