import Type from 'typebox';
import { type Statement, toStatementJson } from '../agreement.ts';
import { accountNumber, maskedAccount } from '../bank/iban.ts';
import { type AnyOperation, alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { type Principal, ROLES } from '../principal.ts';
import { notFound } from '../problem.ts';
import {
  Id,
  Input,
  Line,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { approve, turnDown } from './approvals.ts';
import { approversOf, type Effect, parsed, proposersOf } from './four-eyes.ts';
import { type ApprovalRow, findApproval, listApprovalRows } from './queries.ts';

/** The operations on approvals. */

const ApprovalId = Id('approval');
const STATES = ['PENDING', 'APPROVED', 'REJECTED', 'WITHDRAWN', 'EXPIRED'] as const;
const Anything = Type.Unsafe<unknown>({});

const EffectSchema = Type.Object({
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
    description: 'What it does, in words. Until it is decided, what it would have done when it was proposed.',
  },
);

const ApprovalSchema = Type.Object({
  id: ApprovalId,
  state: Word(STATES),
  operation: Type.String({ description: 'The proposed operation, such as `float.refund`.' }),
  input: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
  statement: StatementSchema,
  effect: Type.Unsafe<Effect[] | null>({
    type: ['array', 'null'],
    items: EffectSchema,
    description: 'The effect that it would have had when it was proposed; null if that cannot be known.',
  }),
  maker: Type.Object({ kind: Text, id: NullableText, name: Text }),
  reason: NullableText,
  createdAt: Time,
  notBefore: Nullable(Time, {
    description: 'The time from which its author can approve it, if one person alone may.',
  }),
  expiresAt: Time,
  approvers: Type.Integer({
    minimum: 1,
    maximum: 2,
    description: "How many people have to approve it: two, if a token that is nobody's proposed it.",
  }),
  firstChecker: Nullable(Text, { description: 'The first of two approvers. It waits for the second one.' }),
  checker: NullableText,
  alone: Type.Boolean({
    description: 'Whether one person approved it alone, since nobody else could have approved anything yet.',
  }),
  breakGlass: Type.Boolean({ description: 'Whether one person approved it with --break-glass.' }),
  comment: NullableText,
  decidedAt: NullableTime,
  output: Type.Unsafe<unknown>({ description: 'The answer of the operation, without secrets.' }),
});

/** Returns an approval as every door shows it. */
function toJson(row: ApprovalRow, now: Date) {
  const { kind, id, name } = JSON.parse(row.maker) as Principal;
  return {
    id: String(row.id),
    state: row.state === 'PENDING' && row.expires_at <= now ? ('EXPIRED' as const) : row.state,
    operation: row.operation,
    input: parsed(row.input) as Record<string, unknown>,
    statement: toStatementJson(parsed(row.statement) as Statement),
    effect: parsed(row.effect) as Effect[] | null,
    maker: { kind: kind as string, id, name },
    reason: row.reason,
    createdAt: row.created_at,
    notBefore: row.mode === 'delay' ? row.not_before : null,
    expiresAt: row.expires_at,
    approvers: row.mode === 'two-people' && row.maker_id === null ? 2 : 1,
    firstChecker: row.first_checker,
    checker: row.checker,
    alone: row.is_alone,
    breakGlass: row.is_break_glass,
    comment: row.comment,
    decidedAt: row.decided_at,
    output: parsed(row.output),
  };
}

export type Approval = ReturnType<typeof toJson>;

/** Returns an approval as lists show it: only its own page shows an account number whole, to compare it. */
function listed(approval: Approval): Approval {
  const { iban } = approval.input;
  return typeof iban === 'string'
    ? { ...approval, input: { ...approval.input, iban: maskedAccount(accountNumber(iban)) } }
    : approval;
}

async function show({ service }: Caller, id: string): Promise<Approval> {
  const [row] = await service.db.query<ApprovalRow>(findApproval(toId(id)));
  if (!row) throw notFound(`approval ${id}`);
  return toJson(row, service.clock());
}

/** Returns the operations whose proposals somebody sees, besides their own; null: all. */
async function seenBy({ principal: { roles } }: Caller): Promise<string[] | null> {
  if (roles.includes('owner') || roles.includes('auditor')) return null;
  // biome-ignore lint/suspicious/noImportCycles: it is loaded when the operation runs
  const { OPERATIONS } = await import('./table.ts');
  const concerns = (operation: AnyOperation) =>
    [...operation.roles, ...proposersOf(operation), ...approversOf(operation)].some((role) =>
      (roles as readonly string[]).includes(role),
    );
  return OPERATIONS.filter(({ approval }) => approval?.people === 2)
    .filter(concerns)
    .map(({ name }) => name);
}

export const listApprovals = reading({
  name: 'approval.list',
  summary: 'List approvals, newest first',
  description:
    'Those that the caller made, or could perform, propose or approve; for owners and auditors, all.',
  method: 'GET',
  path: '/approvals',
  command: 'approval list',
  input: Input({
    waiting: Type.Optional(Type.Boolean({ description: 'Only those that wait for a decision.' })),
    ...PAGE,
  }),
  output: Page(ApprovalSchema),
  roles: ROLES,
  async run(caller, { waiting = false, cursor, limit = 50 }) {
    const { service } = caller;
    const filters = { waiting };
    const [before] = readCursor('approvals', filters, cursor) ?? [];
    const now = service.clock();
    const last = before === undefined ? null : Number(before);
    const seen = { operations: await seenBy(caller), userId: caller.principal.userId };
    const list = listApprovalRows(seen, waiting ? now : null, last, limit + 1);
    const rows = await service.db.query<ApprovalRow>(list);
    const items = rows.map((row) => listed(toJson(row, now)));
    return pageOf('approvals', filters, items, limit, ({ id }) => [Number(id)]);
  },
});

export const showApproval = reading({
  name: 'approval.show',
  summary: 'Get an approval with its input and its effect',
  method: 'GET',
  path: '/approvals/:id',
  command: 'approval show',
  input: Input({ id: ApprovalId }),
  output: ApprovalSchema,
  roles: ROLES,
  async run(caller, { id }) {
    const { principal, service } = caller;
    const [row] = await service.db.query<ApprovalRow>(findApproval(toId(id)));
    const operations = await seenBy(caller);
    const isOwn = principal.userId !== null && row?.maker_id === principal.userId;
    if (!row || !(isOwn || operations === null || operations.includes(row.operation)))
      throw notFound(`approval ${id}`);
    return toJson(row, service.clock());
  },
});

/**
 * Finds an operation in the table. The table also contains this operation, so it does not exist yet when
 * this file is loaded.
 */
async function findOperation(): Promise<(name: string) => AnyOperation | undefined> {
  // biome-ignore lint/suspicious/noImportCycles: it is loaded when the operation runs
  const { OPERATIONS } = await import('./table.ts');
  return (name) => OPERATIONS.find((each) => each.name === name);
}

const Comment = Line(500, 'For the person who proposed it, and for the audit.', 'As agreed by telephone.');

export const approveApproval = changing({
  name: 'approval.approve',
  summary: 'Approve what another person proposed, and perform it',
  description:
    'It is performed in one transaction, with everything as it is now. Where the effect is no longer the ' +
    'one that was proposed, the answer is `effect-changed` with the new effect, which is confirmed by sending it as `effect`. ' +
    'What a token of nobody proposed waits for a second approval: the state then stays `PENDING`.',
  method: 'POST',
  path: '/approvals/:id/approve',
  command: 'approval approve',
  input: Input({
    id: ApprovalId,
    comment: Type.Optional(Nullable(Comment)),
    effect: Type.Optional(
      Type.Array(EffectSchema, {
        maxItems: 10_000,
        description: 'The effect that is confirmed, where it has changed.',
      }),
    ),
    reason: Reason,
  }),
  output: Type.Object({
    ...ApprovalSchema.properties,
    output: Type.Unsafe<unknown>({
      secret: true,
      description:
        'The answer of the operation with its secrets, shown once; null if the request is repeated under its Idempotency-Key.',
    }),
  }),
  isForPeople: true,
  roles: ROLES,
  approval: alone('The caller is the second person.'),
  risk: 'step-up',
  effect: 'outside',
  async run(caller, { id, comment = null, effect }) {
    const find = await findOperation();
    const output = await approve(caller, toId(id), { comment, effect }, find);
    return { ...(await show(caller, id)), output: output ?? null };
  },
});

const decide = (verb: 'reject' | 'withdraw') => ({
  name: `approval.${verb}`,
  method: 'POST' as const,
  path: `/approvals/:id/${verb}`,
  command: `approval ${verb}`,
  output: ApprovalSchema,
  roles: ROLES,
  approval: alone('Nothing is performed.'),
  async run(caller: Caller, { id, comment = null }: { id: string; comment?: string | null }) {
    const find = await findOperation();
    // An operation that this version does not know is rejected by an owner.
    await turnDown(caller, toId(id), { verb, comment }, (name) => {
      const operation = find(name);
      return operation ? approversOf(operation) : ['owner'];
    });
    return show(caller, id);
  },
});

export const rejectApproval = changing({
  ...decide('reject'),
  summary: 'Reject what another person proposed',
  input: Input({ id: ApprovalId, comment: Comment, reason: Reason }),
});

export const withdrawApproval = changing({
  ...decide('withdraw'),
  summary: 'Withdraw what you proposed',
  input: Input({ id: ApprovalId, comment: Type.Optional(Nullable(Comment)), reason: Reason }),
});

export const APPROVALS = tableOf(
  listApprovals,
  showApproval,
  approveApproval,
  rejectApproval,
  withdrawApproval,
);
