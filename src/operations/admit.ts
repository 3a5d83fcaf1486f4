import type { Actor, Service } from '../context.ts';
import { actFor } from '../merchants/merchants.ts';
import type { AnyOperation, Caller, Fields } from '../operation.ts';
import { isGlassClosed, isOnlyPerson } from '../people/persons.ts';
import { actorOf, type Principal, type Role } from '../principal.ts';
import { Problem } from '../problem.ts';
import { countMoved, NeedsApproval } from '../settings/limits.ts';
import { readSettings } from '../settings/settings.ts';
import { rehearse } from './effect.ts';
import { checkInput } from './validate.ts';

/**
 * Who may perform an operation, and who else has to agree: the roles, a second factor, and the rule of four
 * eyes. What one person proposes, another one approves (docs/how-to/people.md).
 */

/** A request from a door. */
export type Request = {
  readonly service: Service;
  readonly principal: Principal;
  readonly input: unknown;
  /** A write under the same key is performed once. */
  readonly idempotencyKey?: string | undefined;
  /** The reason, if the input has no such field. */
  readonly reason?: string | null;
};

/**
 * How an operation is performed: at once; at once, if what it moves is below the limits; when another person
 * approves it; or alone, since there is no other person.
 */
export type Terms = 'uncounted' | 'counted' | 'propose' | 'alone';

type Admitted = { readonly caller: Caller; readonly input: Fields; readonly terms: Terms };

/**
 * Checks the role, the input and the risk of a request, in this order. A merchant that is suspended may only
 * read.
 * @throws Problem; Refusal `04`
 */
export async function admit(
  operation: AnyOperation,
  { service, principal, input: given, reason = null }: Request,
): Promise<Admitted> {
  checkRole(operation, principal);
  const input = checkInput(operation.input, given) as Fields;
  const named = input['reason'];
  const actor = actorOf(principal, typeof named === 'string' ? named : reason);
  if (operation.effect !== 'read' && principal.merchantId !== null)
    await actFor(service, principal.merchantId);
  const caller = { service, principal, actor, isAgreed: false };
  const terms = await termsOf(operation, caller, input);
  return { caller: { ...caller, isAgreed: terms !== 'counted' }, input, terms };
}

/** Returns whether the roles of a principal permit an operation. */
function isPermitted({ roles }: AnyOperation, principal: Principal): boolean {
  return principal.roles.some((role) => roles.includes(role));
}

function checkRole(operation: AnyOperation, principal: Principal): void {
  if (operation.isForPeople && principal.kind === 'token')
    throw new Problem('forbidden', `${operation.name} is for people: a token may not call it`);
  if (isPermitted(operation, principal) || mayPropose(operation, principal)) return;
  const { name, roles } = operation;
  const text = `${name} needs one of the roles ${roles.join(', ')}`;
  throw new Problem('forbidden', text, undefined, { roles });
}

const isMachine = ({ kind }: Pick<Principal, 'kind'>) => kind === 'command-line' || kind === 'break-glass';

/**
 * Returns how a request is performed. An account of the machine already has every right on it, and its
 * operations are in the audit.
 */
async function termsOf(operation: AnyOperation, caller: Caller, input: Fields): Promise<Terms> {
  const { service, principal, actor } = caller;
  if (isMachine(principal))
    return (await requireGlass(operation, service, actor, input)) ? 'uncounted' : 'counted';
  if (!isPermitted(operation, principal)) return 'propose';
  if (await needsApproval(operation, caller, input)) return termsOfTwo(operation, caller);
  if (operation.risk !== 'plain' && !principal.steppedUp) {
    // A proposal needs no second factor.
    if (await isAboveLimits(operation, caller, input)) return termsOfTwo(operation, caller);
    requireFactor(operation, principal);
  }
  return principal.merchantId === null ? 'counted' : 'uncounted';
}

/**
 * Returns how an operation is performed on which two people have to agree.
 * @throws Problem `approval-required` for the machine; `step-up-required`
 */
export async function termsOfTwo(
  operation: AnyOperation,
  { service, principal }: Caller,
): Promise<'propose' | 'alone'> {
  if (isMachine(principal)) throw approvalRequired(operation);
  if (!(await isAlone(service, principal))) return 'propose';
  requireFactor(operation, principal);
  return 'alone';
}

function requireFactor({ name }: AnyOperation, { kind, steppedUp }: Principal): void {
  if (steppedUp) return;
  throw new Problem(
    'step-up-required',
    kind === 'token'
      ? `${name} needs a token that was created with --step-up`
      : `${name} needs your second factor again: it is asked for every five minutes`,
  );
}

/** Returns whether another person has to approve what an operation would move. */
async function isAboveLimits(operation: AnyOperation, caller: Caller, input: Fields): Promise<boolean> {
  const { approval, effect } = operation;
  const conditions = approval?.people === 2 ? (approval.when ?? []) : [];
  if (effect !== 'change' || !conditions.some(({ moved }) => moved !== undefined)) return false;
  try {
    await rehearse(operation, caller, input, ({ tx, moved }) => countMoved(tx, operation, caller, moved));
    return false;
  } catch (error) {
    if (error instanceof NeedsApproval) return true;
    throw error;
  }
}

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
async function needsApproval(
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
function approvalRequired({ name }: Pick<AnyOperation, 'name'>): Problem {
  return new Problem(
    'approval-required',
    `${name} is approved by another person: propose it in the console, or do it alone with ` +
      '--break-glass and --reason',
  );
}
