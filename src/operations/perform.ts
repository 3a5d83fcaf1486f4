import { noted } from '../api-keys/daily-limits.ts';
import { inside, kept, type Moved, type Service } from '../context.ts';
import { readSigned, sign } from '../credentials.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { Turns } from '../db/turns.ts';
import { canonicalJson } from '../json.ts';
import { actFor } from '../merchants/merchants.ts';
import { type AnyOperation, type Caller, type Fields, takesKey, withoutSecrets } from '../operation.ts';
import { actorOf, type Principal } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { countMoved, NeedsApproval } from '../settings/limits.ts';
import {
  approvalRequired,
  isAlone,
  markedAlone,
  mayPropose,
  needsApproval,
  previewEffect,
  requireGlass,
} from './four-eyes.ts';
import { propose } from './propose.ts';
import { checkInput } from './validate.ts';

/**
 * The queues of reads. Two quick reads run at a time, and one heavy read beside them, so that quick reads do
 * not wait for a report. Both pause while tills are busy (docs/explanation/performance.md, "A large
 * database").
 */
const lanesOf = kept(({ db }) => ({
  quick: { turns: new Turns(db, { atOnce: 2, rests: true }), insideMax: 200, ofClients: new Map() },
  heavy: { turns: new Turns(db, { atOnce: 1, rests: true }), insideMax: 21, ofClients: new Map() },
}));

type Lane = {
  readonly turns: Turns;
  /**
   * The most reads in the queue. A report takes about a second and a list some milliseconds, so the clients
   * of further reads would time out.
   */
  readonly insideMax: number;
  /** How many of them are of each client. */
  readonly ofClients: Map<string, number>;
};

/** The part of a queue that one client may fill, so that it keeps no other one out. */
const PART_OF_CLIENT = 1 / 3;

/** Whose read waits in a queue: a merchant with all its people, or a person or token of the operator. */
const clientOf = ({ kind, id, merchantId }: Principal) =>
  merchantId === null ? `${kind} ${id}` : `merchant ${merchantId}`;

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

/** The result of a request. */
export type Performed<Output = unknown> = {
  readonly output: Output;
  readonly replayed: boolean;
  /** Whether the operation was proposed to another person instead of performed. */
  readonly proposed?: boolean;
  /** Whether one person performed what two people have to agree on, since there is no second one yet. */
  readonly alone?: boolean;
};

/**
 * Performs an operation. It checks the role, the input and the risk, then runs the operation. A change runs
 * in one transaction with its Idempotency-Key.
 * @throws Problem, or Refusal of the core. Nothing has changed then.
 */
export async function perform(operation: AnyOperation, request: Request): Promise<Performed> {
  const { service, principal } = request;
  checkRole(operation, principal);
  const input = withPosition(operation, service, checkInput(operation.input, request.input) as Fields);
  const performed = await noted(service.db, performOn(operation, request, input));
  return { ...performed, output: withSignedCursor(operation, service, input, performed.output) };
}

async function performOn(operation: AnyOperation, request: Request, input: Fields): Promise<Performed> {
  const { principal } = request;
  const reason = typeof input['reason'] === 'string' ? input['reason'] : (request.reason ?? null);
  const actor = actorOf(principal, reason);
  const asking = { service: request.service, principal, actor, isAgreed: false };
  if (operation.effect !== 'read') await requireActive(asking);
  const terms = await checkRisk(operation, asking, input);
  const caller: Caller = { ...asking, isAgreed: terms !== 'counted' };
  if (operation.effect === 'read') return { output: await read(operation, caller, input), replayed: false };
  const claimed =
    request.idempotencyKey === undefined || !takesKey(operation)
      ? undefined
      : claimOf(operation, caller, request.idempotencyKey, input);
  const task = { operation, caller, input, claimed };
  if (terms === 'propose') return performProposal(task);
  if (terms === 'alone') return performAlone(task);
  if (operation.effect === 'outside') return performOutside(task);
  try {
    return await performChange(task, terms === 'counted');
  } catch (error) {
    if (!(error instanceof NeedsApproval)) throw error;
    if (isMachine(principal)) throw approvalRequired(operation);
    const agreed = { ...task, caller: { ...caller, isAgreed: true } };
    return (await isAlone(request.service, principal)) ? performAlone(agreed) : performProposal(agreed);
  }
}

/** What is performed for whom, once under its Idempotency-Key. */
type Task = {
  readonly operation: AnyOperation;
  readonly caller: Caller;
  readonly input: Fields;
  readonly claimed: Claim | undefined;
};

/** Refuses changes by the people and tokens of a merchant that is suspended: they may read. */
async function requireActive({ service, principal }: Caller): Promise<void> {
  if (principal.merchantId !== null) await actFor(service, principal.merchantId);
}

async function read(operation: AnyOperation, caller: Caller, input: Fields): Promise<unknown> {
  const { service, principal } = caller;
  const lane: Lane = lanesOf(service)[operation.isHeavy ? 'heavy' : 'quick'];
  const { turns, insideMax, ofClients } = lane;
  const client = clientOf(principal);
  const own = ofClients.get(client) ?? 0;
  if (turns.size >= insideMax)
    throw full(turns, 'the service answers many other requests: ask again in a moment');
  if (own >= insideMax * PART_OF_CLIENT)
    throw full(turns, 'you have many requests in progress: wait for their answers');
  ofClients.set(client, own + 1);
  try {
    return await turns.run(() => operation.run(caller, input));
  } finally {
    const left = (ofClients.get(client) ?? 0) - 1;
    if (left > 0) ofClients.set(client, left);
    else ofClients.delete(client);
  }
}

const full = ({ waitSeconds }: Turns, message: string) =>
  new Problem('too-many-requests', message, undefined, {}, waitSeconds);

/** Returns whether a principal may call an operation, whatever the input. */
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

const isMachine = ({ kind }: Principal) => kind === 'command-line' || kind === 'break-glass';

/**
 * How an operation is performed: at once; at once, if what it moves is below the limits; when another person
 * approves it; or alone, since there is no other person.
 */
type Terms = 'uncounted' | 'counted' | 'propose' | 'alone';

/**
 * Checks the requirements of an operation besides the role. An account of the machine already has every right
 * on it, and its operations are in the audit.
 */
async function checkRisk(operation: AnyOperation, caller: Caller, input: Fields): Promise<Terms> {
  const { service, principal } = caller;
  if (isMachine(principal))
    return (await requireGlass(operation, service, caller.actor, input)) ? 'uncounted' : 'counted';
  if (!isPermitted(operation, principal)) return 'propose';
  if (await needsApproval(operation, caller, input)) {
    if (!(await isAlone(service, principal))) return 'propose';
    requireFactor(operation, principal);
    return 'alone';
  }
  if (operation.risk !== 'plain' && !principal.steppedUp) {
    const isProposed =
      (await isAboveLimits(operation, caller, input)) && !(await isAlone(service, principal));
    if (isProposed) return 'propose';
    requireFactor(operation, principal);
  }
  return principal.merchantId === null ? 'counted' : 'uncounted';
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

/** Performs what two people have to agree on for the only person who could approve anything so far. */
async function performAlone(task: Task): Promise<Performed> {
  requireFactor(task.operation, task.caller.principal);
  const marked = { ...task, caller: markedAlone(task.caller) };
  const performed = await (task.operation.effect === 'outside'
    ? performOutside(marked)
    : performChange(marked, false));
  return { ...performed, alone: true };
}

/** Returns whether what an operation would move has to be approved. A proposal needs no second factor. */
async function isAboveLimits(operation: AnyOperation, caller: Caller, input: Fields): Promise<boolean> {
  const { approval, effect } = operation;
  const conditions = approval?.people === 2 ? (approval.when ?? []) : [];
  if (effect !== 'change' || !conditions.some(({ moved }) => moved !== undefined)) return false;
  try {
    await previewEffect(operation, caller, input, countMoved);
    return false;
  } catch (error) {
    if (error instanceof NeedsApproval) return true;
    throw error;
  }
}

type Claim = {
  readonly actor: string;
  readonly key: string;
  readonly operation: string;
  readonly fingerprint: Buffer;
};

/**
 * Returns the claim of a request. The fingerprint is keyed, so a reader of the table cannot guess the input.
 */
function claimOf(operation: AnyOperation, { service, principal }: Caller, key: string, input: object): Claim {
  return {
    actor: `${principal.kind} ${principal.id ?? principal.name}`,
    key,
    operation: operation.name,
    fingerprint: service.keys.fingerprintOf(canonicalJson([operation.name, input])),
  };
}

/**
 * Claims a key. If another transaction has claimed it, this one waits until that has ended.
 * @returns the answer to the first request under it, or undefined if this is the first
 */
async function claim(
  tx: Queries,
  { actor, key, operation, fingerprint }: Claim,
  now: Date,
): Promise<Performed | undefined> {
  const [claimed] = await tx.query(sql`
insert into operator_requests (actor, idempotency_key, operation, fingerprint, created_at)
values (${actor}, ${key}, ${operation}, ${fingerprint}, ${now}) on conflict do nothing
returning 1 as claimed`);
  if (claimed) return undefined;
  const [known] = await tx.query<{
    operation: string;
    fingerprint: Buffer;
    output: string | null;
    isProposal: boolean;
  }>(sql`
select operation, fingerprint, output, is_proposal as "isProposal" from operator_requests
where actor = ${actor} and idempotency_key = ${key}`);
  if (!known || known.operation !== operation || !known.fingerprint.equals(fingerprint)) {
    throw new Problem('idempotency-key-reused', undefined, [
      { field: 'Idempotency-Key', rule: 'unique', message: 'was used for another request: choose a new one' },
    ]);
  }
  if (known.output === null) throw new Problem('in-progress');
  return { output: JSON.parse(known.output), replayed: true, proposed: known.isProposal };
}

/** Stores the answer to a request. @param isProposal whether it was proposed, and not performed */
const finishRequest = ({ actor, key }: Claim, output: string, isProposal = false) => sql`
update operator_requests set output = ${output}, is_proposal = ${isProposal}
where actor = ${actor} and idempotency_key = ${key}`;

/** Releases the key of a declined operation. */
const forgetRequest = ({ actor, key }: Claim) => sql`
delete from operator_requests where actor = ${actor} and idempotency_key = ${key} and output is null`;

async function performChange(
  { operation, caller, input, claimed }: Task,
  isCounted: boolean,
): Promise<Performed> {
  const { service } = caller;
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const known = claimed && (await claim(tx, claimed, service.clock()));
      if (known) return known;
      const moved: Moved[] = [];
      const onMoved = (each: Moved) => moved.push(each);
      const output = await operation.run({ ...caller, service: inside(service, tx), onMoved }, input);
      if (isCounted) await countMoved(tx, operation, caller, moved);
      if (claimed) await tx.query(finishRequest(claimed, withoutSecrets(operation, output)));
      return { output, replayed: false };
    }),
  );
}

/**
 * Proposes an operation, once under its Idempotency-Key. If it would change nothing, there is nothing to
 * approve: a repetition returns the first result.
 */
async function performProposal({ operation, caller, input, claimed }: Task): Promise<Performed> {
  const { db, clock } = caller.service;
  const known = claimed && (await claim(db, claimed, clock()));
  if (known) return known;
  const forget = async () => claimed && db.query(forgetRequest(claimed));
  try {
    const { effect, output, statement } = await previewEffect(operation, caller, input);
    if (statement === null) {
      await forget();
      return { output, replayed: true };
    }
    const proposed = await propose(operation, caller, { input, effect, statement }, async (tx, made) => {
      if (claimed) await tx.query(finishRequest(claimed, JSON.stringify(made), true));
    });
    return { output: proposed, replayed: false, proposed: true };
  } catch (error) {
    await forget();
    throw error;
  }
}

/**
 * Performs an operation outside a transaction. If it fails after its effect, its key stays claimed, so that
 * it is not performed again under that key.
 */
async function performOutside({ operation, caller, input, claimed }: Task): Promise<Performed> {
  const { db, clock } = caller.service;
  if (!claimed) return { output: await operation.run(caller, input), replayed: false };
  const known = await claim(db, claimed, clock());
  if (known) return known;
  try {
    const output = await operation.run(caller, input);
    await db.query(finishRequest(claimed, withoutSecrets(operation, output)));
    return { output, replayed: false };
  } catch (error) {
    // A declined operation has changed nothing.
    if (error instanceof Problem || error instanceof Refusal) await db.query(forgetRequest(claimed));
    throw error;
  }
}

/**
 * Cursors of lists are signed where they leave the service, and read where they come back, for all lists: a
 * position reaches a statement as it is.
 */

/** A cursor is one of a list with its filters. */
const purposeOf = (
  { name }: AnyOperation,
  { cursor: _cursor, limit: _limit, reason: _reason, ...filters }: Fields,
) => `cursor ${name} ${canonicalJson(filters)}` as const;

const isList = ({ input }: AnyOperation) => 'cursor' in input.properties;

/**
 * Returns the input of an operation with the position of its cursor, without the signature.
 * @throws Problem for a cursor that this service has not made for this operation and these filters
 */
function withPosition(operation: AnyOperation, { keys }: Service, input: Fields): Fields {
  const { cursor } = input;
  if (!isList(operation) || typeof cursor !== 'string') return input;
  const position = readSigned(keys, purposeOf(operation, input), Buffer.from(cursor, 'base64url'));
  if (position) return { ...input, cursor: Buffer.from(position).toString('base64url') };
  const message = 'is not a cursor of this list with these filters: begin with its first page';
  throw invalid('cursor', 'cursor', message);
}

function withSignedCursor(
  operation: AnyOperation,
  { keys }: Service,
  input: Fields,
  output: unknown,
): unknown {
  const { nextCursor } = (output ?? {}) as Fields;
  if (!isList(operation) || typeof nextCursor !== 'string') return output;
  const signed = sign(keys, purposeOf(operation, input), Buffer.from(nextCursor, 'base64url'));
  return { ...(output as object), nextCursor: signed.toString('base64url') };
}
