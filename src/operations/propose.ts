import Type, { type Static } from 'typebox';
import type { Statement } from '../agreement.ts';
import { audit } from '../audit/audit.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { canonicalJson } from '../json.ts';
import type { AnyOperation, Caller, Fields, Made } from '../operation.ts';
import type { Principal } from '../principal.ts';
import { Problem, requireRow } from '../problem.ts';
import { columnsOf } from '../row.ts';
import { Id, Nullable, NullableText, NullableTime, Text, Time, Titled, Word } from '../schema.ts';
import { readSettings, type Settings } from '../settings/settings.ts';
import { HOUR_MS } from '../time.ts';

/**
 * Approvals: an operation that one person proposes is performed when another person approves it, once and
 * within 72 hours.
 */

const OPEN_MS = 72 * HOUR_MS;
/**
 * The delay before an operator with one person may approve its own proposal. It can be withdrawn meanwhile.
 */
const DELAY_MS = HOUR_MS / 4;

export const ApprovalId = Id('approval');
const STATES = ['PENDING', 'APPROVED', 'REJECTED', 'WITHDRAWN', 'EXPIRED'] as const;
const Anything = Type.Unsafe<unknown>({});

export const EffectSchema = Type.Object({
  action: Text,
  subject: Text,
  before: Anything,
  after: Anything,
});

const StatementSchema = Type.Object(
  {
    text: Type.String({ description: 'One sentence: whom it concerns, how much, and what changes.' }),
    sentence: Type.String({ description: 'The same sentence with the names of values in braces.' }),
    values: Type.Unsafe<Statement['values']>({ type: 'object', additionalProperties: true }),
    link: Type.String({ description: 'The page of the console about what it concerns.' }),
  },
  {
    'x-text': 'text',
    description: 'What it does, in words. Until it is decided, what it would have done when it was proposed.',
  },
);

export const ApprovalSchema = Type.Object({
  id: ApprovalId,
  state: Word(STATES, { 'x-labels': { PENDING: 'Waiting' } }),
  operation: Type.String({ description: 'The proposed operation, such as `float.refund`.' }),
  input: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
  statement: StatementSchema,
  effect: Type.Unsafe<Made[] | null>({
    type: ['array', 'null'],
    items: EffectSchema,
    description: 'The effect that it would have had when it was proposed; null if that cannot be known.',
  }),
  maker: Titled(
    'Proposed by',
    Type.Object({ kind: Text, id: NullableText, name: Text }, { 'x-text': 'name' }),
  ),
  reason: NullableText,
  createdAt: Time,
  notBefore: Nullable(Time, {
    description: 'The time from which its author can approve it, if one person alone may.',
  }),
  expiresAt: Time,
  approvers: Type.Integer({
    title: 'People who have to approve',
    minimum: 1,
    maximum: 2,
    description: "How many people have to approve it: two, if a token that is nobody's proposed it.",
  }),
  firstChecker: Nullable(Text, {
    title: 'First approval by',
    description: 'The first of two approvers. It waits for the second one.',
  }),
  checker: Titled('Decided by', NullableText),
  alone: Type.Boolean({
    title: 'Alone, before there were two people',
    description: 'Whether one person approved it alone, since nobody else could have approved anything yet.',
  }),
  breakGlass: Type.Boolean({
    title: 'Without a second person',
    description: 'Whether one person approved it with --break-glass.',
  }),
  comment: NullableText,
  decidedAt: NullableTime,
  output: Type.Unsafe<unknown>({ description: 'The answer of the operation, without secrets.' }),
});

export type Approval = Static<typeof ApprovalSchema>;

/** An approval, with what decides who may approve it. */
export type Proposal = Approval & {
  readonly mode: Settings['approvalMode'];
  /** The merchant whose people agree on it; null: the operator's people. */
  readonly merchantId: number | null;
  readonly maker: Principal;
  readonly makerId: number | null;
  readonly tokenId: number | null;
  readonly firstCheckerId: number | null;
};

/** The columns of an approval, as it is at a time. The schema leaves out what only the service reads. */
export const columns = (now: Date) => sql`
${columnsOf(ApprovalSchema, undefined, {
  state: sql`case when state = 'PENDING' and expires_at <= ${now} then 'EXPIRED' else state end`,
  ...{ input: sql`input::json`, statement: sql`statement::json`, effect: sql`effect::json` },
  ...{ maker: sql`maker::json`, output: sql`output::json` },
  notBefore: sql`case mode when 'delay' then not_before end`,
  approvers: sql`case when mode = 'two-people' and maker_id is null then 2 else 1 end`,
  alone: sql`is_alone`,
  breakGlass: sql`is_break_glass`,
})}, mode, merchant_id as "merchantId", maker_id as "makerId", token_id as "tokenId",
first_checker_id as "firstCheckerId"`;

/** Selects an approval among those of the caller's merchant, or of the operator. */
const matching = (id: number, { merchantId }: Principal) =>
  sql`id = ${id} and merchant_id is not distinct from ${merchantId}::integer`;

/** Returns an approval. @throws Problem if there is no such approval */
export function requireApproval({ service, principal }: Caller, id: number): Promise<Proposal> {
  const statement = sql`select ${columns(service.clock())} from approvals where ${matching(id, principal)}`;
  return requireRow(service.db, statement, `approval ${id}`);
}

/**
 * Locks an approval that is pending, so that nobody else decides it until the transaction ends.
 * @throws Problem `not-found`; `conflict` if it was decided or has expired
 */
export async function lockPending(
  tx: Queries,
  { service, principal }: Caller,
  id: number,
): Promise<Proposal> {
  const statement = sql`
select ${columns(service.clock())} from approvals where ${matching(id, principal)} for update`;
  const row = await requireRow<Proposal>(tx, statement, `approval ${id}`);
  if (row.state === 'EXPIRED') throw new Problem('conflict', 'this has expired: propose it again');
  if (row.state !== 'PENDING') throw new Problem('conflict', `this was ${row.state.toLowerCase()} already`);
  return row;
}

/** The answer to a proposal. */
type Proposed = {
  readonly approval: {
    readonly id: string;
    readonly statement: Statement;
    readonly effect: readonly Made[] | null;
    readonly expiresAt: Date;
    readonly notBefore: Date | null;
  };
};

/**
 * Proposes an operation: stores its input and its effect until another person approves it.
 * @param preview the changes that it would make, and what two people would agree on
 */
export async function propose(
  tx: Queries,
  operation: AnyOperation,
  caller: Caller,
  {
    input,
    effect,
    statement,
  }: {
    readonly input: Fields;
    readonly effect: readonly Made[] | null;
    readonly statement: Statement;
  },
): Promise<Proposed> {
  const { service, principal, actor } = caller;
  const now = service.clock();
  const { merchantId } = principal;
  // The people of a merchant never approve what they proposed themselves.
  const mode = merchantId === null ? (await readSettings(tx)).approvalMode : 'two-people';
  const notBefore = new Date(now.getTime() + (mode === 'delay' ? DELAY_MS : 0));
  const expiresAt = new Date(now.getTime() + OPEN_MS);
  const [row] = await tx.query<{ id: string }>(sql`
insert into approvals (merchant_id, operation, input, statement, effect, maker_id, token_id, maker, reason,
  mode, created_at, not_before, expires_at)
values (${merchantId}, ${operation.name}, ${canonicalJson(input)}, ${JSON.stringify(statement)},
  ${effect && canonicalJson(effect)},
  ${principal.userId}, ${principal.kind === 'token' ? Number(principal.id) : null},
  ${JSON.stringify(principal)}, ${actor.reason}, ${mode}, ${now}, ${notBefore}, ${expiresAt})
returning id::text`);
  const id = String(row?.id);
  const after = { operation: operation.name, mode, expiresAt };
  await audit(tx, caller, { action: 'approval.propose', subject: `approval ${id}`, after });
  return { approval: { id, effect, statement, expiresAt, notBefore: mode === 'delay' ? notBefore : null } };
}

export async function decideApproval(
  tx: Queries,
  { principal, service }: Caller,
  id: string,
  state: 'APPROVED' | 'REJECTED' | 'WITHDRAWN',
  { comment, isAlone = false }: { readonly comment: string | null; readonly isAlone?: boolean },
): Promise<void> {
  const checkerId = principal.kind === 'user' ? principal.userId : null;
  await tx.query(sql`
update approvals set
  state = ${state}, checker_id = ${checkerId}, checker = ${principal.name},
  is_break_glass = ${principal.kind === 'break-glass'}, is_alone = ${isAlone}, comment = ${comment},
  decided_at = ${service.clock()}
where id = ${id} and state = 'PENDING'`);
}

/** Returns the change that a decision is in the audit. */
export function changeOf(row: Proposal, { principal }: Caller, verb: string, comment: string | null) {
  const after = {
    operation: row.operation,
    maker: row.maker.name,
    breakGlass: principal.kind === 'break-glass',
    comment,
  };
  return { action: `approval.${verb}`, subject: `approval ${row.id}`, before: { state: row.state }, after };
}
