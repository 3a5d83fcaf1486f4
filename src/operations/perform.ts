import { noted } from '../api-keys/daily-limits.ts';
import { inside, kept, type Moved, type Service } from '../context.ts';
import { readSigned, sign } from '../credentials.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { Turns } from '../db/turns.ts';
import { canonicalJson } from '../json.ts';
import { type AnyOperation, type Caller, type Fields, takesKey, withoutSecrets } from '../operation.ts';
import type { Principal } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { countMoved, NeedsApproval } from '../settings/limits.ts';
import { admit, markedAlone, type Request, type Terms, termsOfTwo } from './admit.ts';
import { previewEffect } from './effect.ts';
import { propose } from './propose.ts';

/** The result of a request. */
export type Performed = {
  readonly output: unknown;
  readonly replayed: boolean;
  /** Whether the operation was proposed to another person instead of performed. */
  readonly proposed?: boolean;
  /** Whether one person performed what two people have to agree on, since there is no second one yet. */
  readonly alone?: boolean;
};

/**
 * Performs an operation, if the request may. A change runs in one transaction with its Idempotency-Key.
 * @throws Problem, or Refusal of the core. Nothing has changed then.
 */
export function perform(operation: AnyOperation, request: Request): Promise<Performed> {
  return noted(request.service.db, admitAndPerform(operation, request));
}

async function admitAndPerform(operation: AnyOperation, request: Request): Promise<Performed> {
  const { service, idempotencyKey } = request;
  const { caller, input: given, terms } = await admit(operation, request);
  const input = withPosition(operation, service, given);
  const claimed =
    idempotencyKey === undefined || !takesKey(operation)
      ? undefined
      : claimOf(operation, caller, idempotencyKey, input);
  const performed = await performOn(terms, { operation, caller, input, claimed });
  return { ...performed, output: withSignedCursor(operation, service, input, performed.output) };
}

/** What is performed for whom, once under its Idempotency-Key. */
type Task = {
  readonly operation: AnyOperation;
  readonly caller: Caller;
  readonly input: Fields;
  readonly claimed: Claim | undefined;
};

async function performOn(terms: Terms, task: Task): Promise<Performed> {
  const { operation, caller, input } = task;
  if (operation.effect === 'read') return { output: await read(operation, caller, input), replayed: false };
  if (terms === 'propose') return performProposal(task);
  if (terms === 'alone') {
    const marked = { ...task, caller: markedAlone(caller) };
    return { ...(await performNow(marked, false)), alone: true };
  }
  try {
    return await performNow(task, terms === 'counted');
  } catch (error) {
    if (!(error instanceof NeedsApproval)) throw error;
    const agreed = { ...task, caller: { ...caller, isAgreed: true } };
    return performOn(await termsOfTwo(operation, caller), agreed);
  }
}

/** @param isCounted whether what it moves counts against the limits */
const performNow = (task: Task, isCounted: boolean) =>
  task.operation.effect === 'outside' ? performOutside(task) : performChange(task, isCounted);

async function performChange(
  { operation, caller, input, claimed }: Task,
  isCounted: boolean,
): Promise<Performed> {
  const { service } = caller;
  if (operation.prepare) {
    const known = claimed && (await findRequest(service.db, claimed));
    if (known) return known;
    await operation.prepare(caller, input);
  }
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
 * Proposes an operation in one transaction with its Idempotency-Key. If it would change nothing, there is
 * nothing to approve: a repetition returns the first result.
 */
async function performProposal({ operation, caller, input, claimed }: Task): Promise<Performed> {
  const { db, clock } = caller.service;
  // What was proposed, and may have been performed since, would be declined or change nothing now.
  const known = claimed && (await findRequest(db, claimed));
  if (known) return known;
  const { effect, output, statement } = await previewEffect(operation, caller, input);
  if (statement === null) return { output, replayed: true };
  return retrying(() =>
    db.transaction(async (tx) => {
      const meanwhile = claimed && (await claim(tx, claimed, clock()));
      if (meanwhile) return meanwhile;
      const proposed = await propose(tx, operation, caller, { input, effect, statement });
      if (claimed) await tx.query(finishRequest(claimed, JSON.stringify(proposed), true));
      return { output: proposed, replayed: false, proposed: true };
    }),
  );
}

/**
 * Performs an operation outside a transaction. If it fails, its key is free again, and if its process is
 * killed, a minute later: the operation can be repeated.
 */
async function performOutside({ operation, caller, input, claimed }: Task): Promise<Performed> {
  const { db, clock } = caller.service;
  if (!claimed) return { output: await operation.run(caller, input), replayed: false };
  const known = (await takeOver(db, claimed, clock())) ? undefined : await claim(db, claimed, clock());
  if (known) return known;
  try {
    const output = await operation.run(caller, input);
    await db.query(finishRequest(claimed, withoutSecrets(operation, output)));
    return { output, replayed: false };
  } catch (error) {
    await db.query(forgetRequest(claimed)).catch(() => {});
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
async function claim(tx: Queries, request: Claim, now: Date): Promise<Performed | undefined> {
  const { actor, key, operation, fingerprint } = request;
  const [claimed] = await tx.query(sql`
insert into operator_requests (actor, idempotency_key, operation, fingerprint, created_at)
values (${actor}, ${key}, ${operation}, ${fingerprint}, ${now}) on conflict do nothing
returning 1 as claimed`);
  if (claimed) return undefined;
  const known = await findRequest(tx, request);
  // Its key has just been released.
  if (!known) throw new Problem('in-progress');
  return known;
}

/** How long a request outside a transaction keeps its key: longer than its client usually waits. */
const LEASE = '1 minute';

const UNFINISHED = 'the same request is still being performed, or was cut off: send it again in a minute';

/** Claims a key again whose request was not finished in time. @returns whether there was one */
async function takeOver(db: Queries, request: Claim, now: Date): Promise<boolean> {
  const { actor, key, operation, fingerprint } = request;
  const [taken] = await db.query(sql`
update operator_requests set created_at = ${now}
where actor = ${actor} and idempotency_key = ${key} and operation = ${operation}
  and fingerprint = ${fingerprint} and output is null
  and created_at < ${now}::timestamptz - ${LEASE}::interval
returning 1 as taken`);
  return taken !== undefined;
}

/** Returns the answer to the first request under a key, or undefined if there was none. */
async function findRequest(
  db: Queries,
  { actor, key, operation, fingerprint }: Claim,
): Promise<Performed | undefined> {
  const [known] = await db.query<{
    operation: string;
    fingerprint: Buffer;
    output: string | null;
    isProposal: boolean;
  }>(sql`
select operation, fingerprint, output, is_proposal as "isProposal" from operator_requests
where actor = ${actor} and idempotency_key = ${key}`);
  if (!known) return undefined;
  if (known.operation !== operation || !known.fingerprint.equals(fingerprint)) {
    throw new Problem('idempotency-key-reused', undefined, [
      { field: 'Idempotency-Key', rule: 'unique', message: 'was used for another request: choose a new one' },
    ]);
  }
  if (known.output === null) throw new Problem('in-progress', UNFINISHED);
  return { output: JSON.parse(known.output), replayed: true, proposed: known.isProposal };
}

/** Stores the answer to a request. @param isProposal whether it was proposed, and not performed */
const finishRequest = ({ actor, key }: Claim, output: string, isProposal = false) => sql`
update operator_requests set output = ${output}, is_proposal = ${isProposal}
where actor = ${actor} and idempotency_key = ${key}`;

/** Releases the key of an operation that failed. */
const forgetRequest = ({ actor, key }: Claim) => sql`
delete from operator_requests where actor = ${actor} and idempotency_key = ${key} and output is null`;

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
