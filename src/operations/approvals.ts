import { type Statement, statementOf, toStatementJson } from '../agreement.ts';
import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import type { AnyOperation, Caller, Fields } from '../operation.ts';
import { actorOf, type Principal } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { readSettings } from '../settings/settings.ts';
import { HOUR_MS } from '../time.ts';
import { type Turn, turnOf } from './checkers.ts';
import {
  canonical,
  type Effect,
  inside,
  isSameEffect,
  markedAlone,
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
  setApprovalOutput,
  setFirstChecker,
} from './queries.ts';

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
    readonly statement: ReturnType<typeof toStatementJson>;
    readonly effect: readonly Effect[] | null;
    readonly expiresAt: Date;
    readonly notBefore: Date | null;
  };
};

/**
 * Proposes an operation: stores its input and its effect until another person approves it.
 * @param preview the changes that it would make, and what two people would agree on
 * @param store runs in the transaction that stores the proposal
 */
export async function propose(
  operation: AnyOperation,
  caller: Caller,
  {
    input,
    effect,
    statement,
  }: {
    readonly input: Fields;
    readonly effect: readonly Effect[] | null;
    readonly statement: Statement;
  },
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
        statement: JSON.stringify(statement),
        makerId: principal.userId,
        tokenId: principal.kind === 'token' ? Number(principal.id) : null,
        maker: JSON.stringify(principal),
        reason: actor.reason,
        mode,
        now,
        notBefore,
        expiresAt,
      }),
    );
    const id = String(row?.id);
    const shown = { effect, statement: toStatementJson(statement) };
    const proposed = {
      approval: { id, ...shown, expiresAt, notBefore: mode === 'delay' ? notBefore : null },
    };
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
 * Approves an operation and performs it, once and in one transaction, on the state at that moment. The first
 * approval of a proposal that is nobody's is only recorded.
 * @param find returns the operation with a name, or undefined
 * @returns its output; undefined after a first approval
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
  const deciding = { caller, operation, row: found, decision };
  return operation.effect === 'change' ? approveChange(deciding) : approveOutside(deciding);
}

type Deciding = {
  readonly caller: Caller;
  readonly operation: AnyOperation;
  readonly row: ApprovalRow;
  readonly decision: Decision;
};

type Seen = { readonly effect: readonly Effect[] | null; readonly statement: Statement };

/** Ends the transaction of a first approval: it performs the operation only to see the effect. */
class First {
  readonly seen: Seen;
  constructor(seen: Seen) {
    this.seen = seen;
  }
}

async function approveChange(deciding: Deciding): Promise<unknown> {
  const { caller, operation, decision } = deciding;
  const { service } = caller;
  const run = () =>
    service.db.transaction(async (tx) => {
      const { row, turn } = await decide(tx, deciding);
      const asMaker = makerFor(deciding, inside(service, tx));
      const output = await operation.run(asMaker.caller, asMaker.input);
      const effect = await readEffect(tx);
      const statement = await statementOf(operation, { ...asMaker, made: effect });
      requireSameEffect(decision.effect ?? storedEffect(row), effect, statement);
      if (turn === 'first') throw new First({ effect, statement });
      await tx.query(setApprovalOutput(row.id, withoutSecrets(operation, output), JSON.stringify(statement)));
      await auditApproval(tx, deciding, turn);
      return output;
    });
  return retrying(async () => {
    for (;;) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof First)) throw error;
        // If another first approval has come in between, this one is the second.
        if (await approveFirst(deciding, error.seen)) return undefined;
      }
    }
  });
}

async function approveOutside(deciding: Deciding): Promise<unknown> {
  const { caller, operation, row } = deciding;
  const { db } = caller.service;
  const turn = await db.transaction(async (tx) => {
    const decided = await decide(tx, deciding);
    if (decided.turn !== 'first') await auditApproval(tx, deciding, decided.turn);
    return decided.turn;
  });
  const seen = { effect: null, statement: parsed(row.statement) as Statement };
  if (turn === 'first' && (await approveFirst(deciding, seen))) return undefined;
  if (turn === 'first') return approveOutside(deciding);
  const asMaker = makerFor(deciding, caller.service);
  const output = await operation.run(asMaker.caller, asMaker.input);
  await db.query(setApprovalOutput(row.id, withoutSecrets(operation, output), row.statement));
  return output;
}

const storedEffect = ({ effect }: ApprovalRow) => parsed(effect) as Effect[] | null;

/** Decides what an approval leads to, and marks the proposal as approved unless it waits for a second one. */
async function decide(
  tx: Queries,
  { caller, operation, row: { id }, decision }: Deciding,
): Promise<{ row: ApprovalRow; turn: Turn }> {
  const row = await lockPending(tx, id, caller.service.clock());
  const isOtherEffect = decision.effect !== undefined && !isSameEffect(decision.effect, storedEffect(row));
  const turn = await turnOf(tx, row, operation, caller, isOtherEffect);
  if (turn !== 'first')
    await tx.query(decideApproval(decisionOf(caller, id, 'APPROVED', decision.comment, turn === 'alone')));
  return { row, turn };
}

/** Returns the caller and the input of a proposal, which is performed as its maker. */
function makerFor({ caller, row }: Deciding, service: Service): { caller: Caller; input: Fields } {
  const maker = makerOf(row);
  const approvedBy = [row.first_checker, caller.principal.name].filter(Boolean).join(', ');
  const actor = { ...actorOf(maker, row.reason), approvedBy };
  const checkerId = caller.principal.userId;
  const asMaker = { service, principal: maker, actor, checkerId, isAgreed: true };
  return { caller: asMaker, input: JSON.parse(row.input) as Fields };
}

/**
 * Records the first of two approvals.
 * @param seen what it approves
 * @returns false if another one has been recorded meanwhile, so that this one would be the second
 */
async function approveFirst(deciding: Deciding, { effect, statement }: Seen): Promise<boolean> {
  const { caller, operation, row: found } = deciding;
  const { service, principal } = caller;
  return service.db.transaction(async (tx) => {
    const row = await lockPending(tx, found.id, service.clock());
    const isOtherEffect = !isSameEffect(effect, storedEffect(row));
    if ((await turnOf(tx, row, operation, caller, isOtherEffect)) !== 'first') return false;
    const now = service.clock();
    const checker = { id: principal.userId as number, name: principal.name, now };
    const shown = { effect: effect && canonical(effect), statement: JSON.stringify(statement) };
    await tx.query(setFirstChecker(row.id, { ...checker, ...shown }));
    await auditApproval(tx, deciding, 'first');
    return true;
  });
}

function auditApproval(tx: Queries, { caller, row, decision }: Deciding, turn: Turn): Promise<void> {
  const change = changeOf(row, caller, 'approve', decision.comment);
  const after = { ...change.after, ...(turn === 'first' && { needsAnotherApproval: true }) };
  const by = turn === 'alone' ? markedAlone(caller) : caller;
  return audit(tx, by, { ...change, after });
}

function decisionOf(
  { principal, service }: Caller,
  id: number,
  state: 'APPROVED' | 'REJECTED' | 'WITHDRAWN',
  comment: string | null,
  isAlone = false,
) {
  const checkerId = principal.kind === 'user' ? principal.userId : null;
  const isBreakGlass = principal.kind === 'break-glass';
  const now = service.clock();
  return { id, state, checkerId, checker: principal.name, isBreakGlass, isAlone, comment, now };
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
 * @param rolesOf returns the roles that may approve the operation with a name, and thus reject it
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
