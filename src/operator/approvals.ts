import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import type { AnyOperation, Caller, Fields } from '../operation.ts';
import { samePerson } from '../people/queries.ts';
import { findUser } from '../people/users.ts';
import { actorOf, type Principal, type Role } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { HOUR_MS } from '../time.ts';
import {
  canonical,
  type Effect,
  inside,
  mayPropose,
  parsed,
  readEffect,
  requireSameEffect,
} from './four-eyes.ts';
import {
  type ApprovalRow,
  decideApproval,
  findApproval,
  insertApproval,
  lockApproval,
  lockToken,
  setApprovalOutput,
} from './queries.ts';
import { readSettings } from './settings.ts';

/**
 * Four eyes: an operation that one person proposes is performed when another person approves it, once and
 * within 72 hours. One transaction performs it on the state at that moment. If the effect then differs from
 * the one that the maker saw, the checker has to confirm the new one.
 */

const OPEN_MS = 72 * HOUR_MS;
/**
 * The delay before an operator with one person may approve its own proposal. It can be withdrawn meanwhile.
 */
const DELAY_MS = HOUR_MS / 4;

/** The answer to a proposal. */
export type Proposed = {
  readonly approval: {
    readonly id: string;
    readonly effect: readonly Effect[] | null;
    readonly expiresAt: Date;
    readonly notBefore: Date | null;
  };
};

/**
 * Proposes an operation: stores its input and its effect until another person approves it.
 * @param effect the changes that it would make
 * @param store runs in the transaction that stores the proposal
 */
export async function propose(
  operation: AnyOperation,
  caller: Caller,
  { input, effect }: { readonly input: Fields; readonly effect: readonly Effect[] | null },
  store: (tx: Queries, proposed: Proposed) => Promise<void>,
): Promise<Proposed> {
  const { service, principal, actor } = caller;
  const now = service.clock();
  const { approvalMode: mode } = await readSettings(service.db);
  const notBefore = new Date(now.getTime() + (mode === 'delay' ? DELAY_MS : 0));
  const expiresAt = new Date(now.getTime() + OPEN_MS);
  return service.db.transaction(async (tx) => {
    const [row] = await tx.query<{ id: number }>(
      insertApproval({
        operation: operation.name,
        input: canonical(input),
        effect: effect && canonical(effect),
        makerId: principal.userId,
        maker: JSON.stringify(principal),
        reason: actor.reason,
        mode,
        now,
        notBefore,
        expiresAt,
      }),
    );
    const id = String(row?.id);
    const proposed = { approval: { id, effect, expiresAt, notBefore: mode === 'delay' ? notBefore : null } };
    await store(tx, proposed);
    const after = { operation: operation.name, mode, expiresAt };
    await audit(tx, caller, { action: 'approval.propose', subject: `approval ${id}`, after });
    return proposed;
  });
}

export type Decision = {
  readonly comment: string | null;
  /** The effect that the checker saw and confirms; undefined for the effect that the maker saw. */
  readonly effect?: readonly Effect[] | undefined;
};

const makerOf = ({ maker }: ApprovalRow) => JSON.parse(maker) as Principal;

/**
 * Locks an approval that is pending.
 * @throws Problem `not-found`; `conflict` if it was decided or has expired
 */
async function lockPending(tx: Queries, id: number, now: Date): Promise<ApprovalRow> {
  const [row] = await tx.query<ApprovalRow>(lockApproval(id));
  if (!row) throw notFound(`approval ${id}`);
  if (row.state !== 'PENDING') throw new Problem('conflict', `this was ${row.state.toLowerCase()} already`);
  if (row.expires_at <= now) throw new Problem('conflict', 'this has expired: propose it again');
  return row;
}

/**
 * Checks that the caller may approve.
 * @throws Problem `forbidden` for the same person as the maker, a token, or a user without the role;
 *   `conflict` before the delay has passed
 */
async function checkChecker(
  db: Queries,
  row: ApprovalRow,
  operation: AnyOperation,
  { principal, actor, service }: Caller,
): Promise<void> {
  if (principal.kind === 'token') throw new Problem('forbidden', 'a token can propose, but never approve');
  if (principal.kind === 'command-line')
    throw new Problem('approval-required', 'the command line approves only with --break-glass and --reason');
  if (principal.kind === 'break-glass') {
    if (actor.reason === null) throw new Problem('invalid', '--break-glass needs --reason');
    return;
  }
  if (!principal.roles.some((role) => operation.roles.includes(role)))
    throw new Problem(
      'forbidden',
      `${operation.name} is approved by one of the roles ${operation.roles.join(', ')}`,
    );
  const [found] = await db.query<{ same: boolean }>(samePerson(row.maker_id, principal.userId));
  if (!found?.same) return;
  if (row.mode !== 'delay')
    throw new Problem(
      'forbidden',
      row.maker_id === principal.userId
        ? 'this was proposed by you: another person has to approve it'
        : 'you and the person who proposed this count as one, since an account of you two was not confirmed ' +
            'by anybody else: a third person confirms it under Users, or approves this',
    );
  if (service.clock() < row.not_before)
    throw new Problem('conflict', `you can approve this yourself from ${row.not_before.toISOString()}`);
}

/** Checks that the maker may still propose the operation. @throws Problem `conflict` otherwise */
async function checkMaker(db: Queries, row: ApprovalRow, operation: AnyOperation): Promise<void> {
  const { kind, id } = makerOf(row);
  if (kind === 'token') {
    const [token] = await db.query<{ revoked_at: Date | null }>(lockToken(Number(id)));
    if (token?.revoked_at)
      throw new Problem('conflict', 'the token that proposed this was revoked: reject it');
  }
  if (row.maker_id === null) return;
  const user = await findUser(db, row.maker_id);
  const roles = user?.roles ?? [];
  const may =
    roles.some((role) => operation.roles.some((each) => each === role)) ||
    mayPropose(operation, { roles: roles as Role[], merchantId: null });
  if (user?.state !== 'active' || !may)
    throw new Problem('conflict', 'the person who proposed this may not do so any more: reject it');
}

/**
 * Approves an operation and performs it, once and in one transaction, on the state at that moment.
 * @param find returns the operation with a name, or undefined
 * @throws Problem `conflict` with the new effect if it differs from the confirmed one; any error of the
 *   operation. The approval then stays pending.
 */
export async function approve(
  caller: Caller,
  id: number,
  decision: Decision,
  find: (name: string) => AnyOperation | undefined,
): Promise<unknown> {
  const { service } = caller;
  const [found] = await service.db.query<ApprovalRow>(findApproval(id));
  if (!found) throw notFound(`approval ${id}`);
  const operation = find(found.operation);
  if (!operation)
    throw new Problem('conflict', 'this version of the service does not know the operation: reject it');
  const input = JSON.parse(found.input) as Fields;
  const maker = makerOf(found);
  const decide = async (tx: Queries): Promise<ApprovalRow> => {
    const row = await lockPending(tx, id, service.clock());
    await checkChecker(tx, row, operation, caller);
    await checkMaker(tx, row, operation);
    await tx.query(decideApproval(decisionOf(caller, id, 'APPROVED', decision.comment)));
    return row;
  };
  const asMaker = (on: Service): Caller => ({
    service: on,
    principal: maker,
    actor: actorOf(maker, found.reason),
    checkerId: caller.principal.userId,
  });
  if (operation.effect !== 'change') {
    await service.db.transaction(async (tx) => {
      await decide(tx);
      await audit(tx, caller, changeOf(found, caller, 'approve', decision.comment));
    });
    const output = await operation.run(asMaker(service), input);
    await service.db.query(setApprovalOutput(id, withoutSecrets(operation, output)));
    return output;
  }
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const row = await decide(tx);
      const output = await operation.run(asMaker(inside(service, tx)), input);
      const confirmed = decision.effect ?? (parsed(row.effect) as Effect[] | null);
      requireSameEffect(confirmed, await readEffect(tx));
      await tx.query(setApprovalOutput(id, withoutSecrets(operation, output)));
      await audit(tx, caller, changeOf(row, caller, 'approve', decision.comment));
      return output;
    }),
  );
}

function decisionOf(
  { principal, service }: Caller,
  id: number,
  state: 'APPROVED' | 'REJECTED' | 'WITHDRAWN',
  comment: string | null,
) {
  const checkerId = principal.kind === 'user' ? principal.userId : null;
  const isBreakGlass = principal.kind === 'break-glass';
  return { id, state, checkerId, checker: principal.name, isBreakGlass, comment, now: service.clock() };
}

function changeOf(row: ApprovalRow, { principal }: Caller, verb: string, comment: string | null) {
  const { name } = makerOf(row);
  const after = {
    operation: row.operation,
    maker: name,
    breakGlass: principal.kind === 'break-glass',
    comment,
  };
  return { action: `approval.${verb}`, subject: `approval ${row.id}`, before: { state: row.state }, after };
}

/**
 * Rejects a proposal with a comment for the maker, or withdraws it on behalf of its maker.
 * @param rolesOf returns the roles that may call the operation with a name, and thus reject it
 * @throws Problem `not-found`, `conflict`; `forbidden` for another person or role
 */
export async function turnDown(
  caller: Caller,
  id: number,
  { verb, comment }: { readonly verb: 'reject' | 'withdraw'; readonly comment: string | null },
  rolesOf: (name: string) => readonly string[],
): Promise<void> {
  const { service, principal } = caller;
  await service.db.transaction(async (tx) => {
    const row = await lockPending(tx, id, service.clock());
    const isMaker = principal.userId !== null && row.maker_id === principal.userId;
    const isMachine = principal.kind === 'command-line' || principal.kind === 'break-glass';
    const isSameToken =
      principal.kind === 'token' && makerOf(row).kind === 'token' && makerOf(row).id === principal.id;
    const isOwn = isMaker || isMachine || isSameToken;
    if (verb === 'withdraw' && !isOwn)
      throw new Problem('forbidden', 'only the person who proposed this can withdraw it: reject it instead');
    const roles = rolesOf(row.operation);
    if (verb === 'reject' && !isOwn && !principal.roles.some((role) => roles.includes(role)))
      throw new Problem('forbidden', `${row.operation} is rejected by one of the roles ${roles.join(', ')}`);
    const state = verb === 'reject' ? 'REJECTED' : 'WITHDRAWN';
    await tx.query(decideApproval(decisionOf(caller, id, state, comment)));
    await audit(tx, caller, changeOf(row, caller, verb, comment));
  });
}

/** Returns an output as it is stored, without secrets. A secret is shown once, to the person who approves. */
export function withoutSecrets({ output: schema }: AnyOperation, output: unknown): string {
  const { properties = {} } = schema as { properties?: Record<string, { secret?: boolean }> };
  return JSON.stringify(output, (name, value) => (properties[name]?.secret ? null : value));
}
