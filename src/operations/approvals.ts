import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { accountNumber, maskedAccount } from '../bank/iban.ts';
import { sql } from '../db/sql.ts';
import { listing } from '../listing.ts';
import { type AnyOperation, alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { ROLES } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { Line, Nullable, toId } from '../schema.ts';
import { approversOf, proposersOf } from './admit.ts';
import { approve } from './approve.ts';
import {
  type Approval,
  ApprovalId,
  ApprovalSchema,
  changeOf,
  columns,
  decideApproval,
  EffectSchema,
  lockPending,
  type Proposal,
  requireApproval,
} from './propose.ts';

/** The operations on approvals. They act on the operations of a table, which contains them, too. */

type Table = () => readonly AnyOperation[];

/** Returns an approval as lists show it: only its own page shows an account number whole, to compare it. */
function listed(approval: Approval): Approval {
  const { iban } = approval.input;
  return typeof iban === 'string'
    ? { ...approval, input: { ...approval.input, iban: maskedAccount(accountNumber(iban)) } }
    : approval;
}

const show = (caller: Caller, id: string) => requireApproval(caller, toId(id));

type RolesOf = (operation: AnyOperation) => readonly string[];

/** Returns the operations that two people agree on, and for which somebody has one of the roles. */
function withRole({ principal }: Caller, table: Table, rolesOf: RolesOf): string[] {
  const roles: readonly string[] = principal.roles;
  return table()
    .filter((each) => each.approval?.people === 2 && rolesOf(each).some((role) => roles.includes(role)))
    .map(({ name }) => name);
}

/** Returns the operations whose proposals somebody can decide. */
const decidedBy = (caller: Caller, table: Table) => withRole(caller, table, approversOf);

/** Returns the operations whose proposals somebody sees, besides their own; null: all. */
function seenBy(caller: Caller, table: Table): string[] | null {
  const { roles } = caller.principal;
  if (roles.includes('owner') || roles.includes('auditor')) return null;
  return withRole(caller, table, (each) => [...each.roles, ...proposersOf(each), ...approversOf(each)]);
}

const list = (table: Table) =>
  listing({
    name: 'approval.list',
    summary: 'List approvals, newest first',
    description:
      'Those that the caller made, or could perform, propose or approve; for owners and auditors, all.',
    path: '/approvals',
    filters: {
      waiting: Type.Optional(Type.Boolean({ description: 'Only those that wait for a decision.' })),
      forMe: Type.Optional(
        Type.Boolean({ description: 'Only those that wait for a decision of the caller.' }),
      ),
      mine: Type.Optional(Type.Boolean({ description: 'Only those that the caller proposed.' })),
    },
    item: ApprovalSchema,
    columns: ['id', 'state', 'statement', 'maker', 'createdAt', 'checker', 'reason'],
    roles: ROLES,
    async rows(caller, { waiting = false, forMe = false, mine = false }, [before = null], count) {
      const { principal, service } = caller;
      const now = service.clock();
      const seen = forMe ? decidedBy(caller, table) : seenBy(caller, table);
      const rows = await service.db.query<Proposal>(sql`
select ${columns(now)} from approvals
where (${before}::integer is null or id < ${before})
  and merchant_id is not distinct from ${principal.merchantId}::integer
  and (not ${waiting || forMe}::boolean or state = 'PENDING' and expires_at > ${now})
  and (not ${forMe}::boolean or maker_id is distinct from ${principal.userId})
  and (not ${mine}::boolean or maker_id = ${principal.userId})
  and (${seen}::text[] is null or operation = any(${seen}) or maker_id = ${principal.userId})
order by approvals.id desc limit ${count}`);
      return rows.map(listed);
    },
  });

const showOne = (table: Table) =>
  reading({
    name: 'approval.show',
    summary: 'Get an approval with its input and its effect',
    path: '/approvals/:id',
    input: { id: ApprovalId },
    output: ApprovalSchema,
    roles: ROLES,
    async run(caller, { id }) {
      const { userId } = caller.principal;
      const approval = await show(caller, id);
      const operations = seenBy(caller, table);
      const isOwn = userId !== null && approval.makerId === userId;
      if (!isOwn && operations && !operations.includes(approval.operation)) throw notFound(`approval ${id}`);
      return approval;
    },
  });

const Comment = Line(500, 'For the person who proposed it, and for the audit.', 'As agreed by telephone.');

const find = (table: Table, name: string) => table().find((each) => each.name === name);

const approveOne = (table: Table) =>
  changing({
    name: 'approval.approve',
    summary: 'Approve what another person proposed, and perform it',
    description:
      'It is performed in one transaction, with everything as it is now. Where the effect is no longer the ' +
      'one that was proposed, the answer is `effect-changed` with the new effect, which is confirmed by sending it as `effect`. ' +
      'What a token of nobody proposed waits for a second approval: the state then stays `PENDING`.',
    path: '/approvals/:id/approve',
    input: {
      id: ApprovalId,
      comment: Type.Optional(Nullable(Comment)),
      effect: Type.Optional(
        Type.Array(EffectSchema, {
          maxItems: 10_000,
          description: 'The effect that is confirmed, where it has changed.',
        }),
      ),
    },
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
    asksReason: false,
    risk: 'step-up',
    effect: 'outside',
    async run(caller, { id, comment = null, effect }) {
      const output = await approve(caller, toId(id), { comment, effect }, (name) => find(table, name));
      return { ...(await show(caller, id)), output: output ?? null };
    },
  });

/**
 * Rejects a proposal with a comment for the maker, or withdraws it on behalf of its maker.
 * @throws Problem `not-found`, `conflict`; `forbidden` for another person or role
 */
async function turnDown(
  caller: Caller,
  id: number,
  { verb, comment }: { readonly verb: 'reject' | 'withdraw'; readonly comment: string | null },
  table: Table,
): Promise<void> {
  const { service, principal } = caller;
  await service.db.transaction(async (tx) => {
    const row = await lockPending(tx, caller, id);
    const isMaker = principal.userId !== null && row.makerId === principal.userId;
    const isMachine = principal.kind === 'command-line' || principal.kind === 'break-glass';
    const isSameToken =
      principal.kind === 'token' && row.maker.kind === 'token' && row.maker.id === principal.id;
    const isOwn = isMaker || isMachine || isSameToken;
    if (verb === 'withdraw' && !isOwn)
      throw new Problem('forbidden', 'only the person who proposed this can withdraw it: reject it instead');
    const operation = find(table, row.operation);
    // An operation that this version does not know is rejected by an owner.
    const roles = operation ? approversOf(operation) : ['owner'];
    if (verb === 'reject' && !isOwn && !principal.roles.some((role) => roles.includes(role)))
      throw new Problem('forbidden', `${row.operation} is rejected by one of the roles ${roles.join(', ')}`);
    const state = verb === 'reject' ? 'REJECTED' : 'WITHDRAWN';
    await decideApproval(tx, caller, row.id, state, { comment });
    await audit(tx, caller, changeOf(row, caller, verb, comment));
  });
}

const turningDown = (verb: 'reject' | 'withdraw', table: Table) => ({
  name: `approval.${verb}`,
  method: 'POST' as const,
  path: `/approvals/:id/${verb}`,
  command: `approval ${verb}`,
  output: ApprovalSchema,
  roles: ROLES,
  approval: alone('Nothing is performed.'),
  asksReason: false,
  async run(caller: Caller, { id, comment = null }: { id: string; comment?: string | null }) {
    await turnDown(caller, toId(id), { verb, comment }, table);
    return show(caller, id);
  },
});

/** Returns the operations on approvals of the operations of a table. */
export const approvalsOf = (table: Table) =>
  tableOf(
    list(table),
    showOne(table),
    approveOne(table),
    changing({
      ...turningDown('reject', table),
      summary: 'Reject what another person proposed',
      input: { id: ApprovalId, comment: Comment },
    }),
    changing({
      ...turningDown('withdraw', table),
      summary: 'Withdraw what you proposed',
      input: { id: ApprovalId, comment: Type.Optional(Nullable(Comment)) },
    }),
  );
