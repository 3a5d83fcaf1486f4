import Type, { type TObject, type TSchema } from 'typebox';
import { dailyLimits } from '../api-keys/daily-limits.ts';
import { apiKeys } from '../api-keys/keys.ts';
import { type AuditEntry, audits } from '../audit/entries.ts';
import { payIn } from '../bank/pay-in.ts';
import { findBatchOf } from '../batches/batch.ts';
import { batches } from '../batches/batches.ts';
import { download, ownExports } from '../batches/download.ts';
import { releases } from '../batches/release.ts';
import { entries } from '../books/entries.ts';
import { floats } from '../books/floats.ts';
import { redeemedDays } from '../books/redeemed.ts';
import { findLines, findReport, report, reportCsvFile } from '../books/reports/reports.ts';
import { sql } from '../db/sql.ts';
import { merchants } from '../merchants/merchants.ts';
import {
  type AnyOperation,
  type Caller,
  NO_COMMAND,
  type Operation,
  reading,
  tableOf,
} from '../operation.ts';
import { PAGE, Page } from '../page.ts';
import { invitations } from '../people/invite.ts';
import { findUser, users } from '../people/users.ts';
import { PORTAL_ROLES, type PortalRole } from '../principal.ts';
import { notFound } from '../problem.ts';
import { ownProducts } from '../products/own.ts';
import { Input, Nullable, toId, Word } from '../schema.ts';
import { disputes } from '../settlement/disputes.ts';
import { settlementDocument } from '../settlement/document.ts';
import { settlementProof } from '../settlement/proof.ts';
import { findMerchantOf, ownSettlements, withoutPeople } from '../settlement/settlements.ts';
import { showSettlement } from '../settlement/show.ts';
import { showTransaction, transactions } from '../transactions/transactions.ts';
import { declines } from '../vouchers/declines.ts';
import { deliveries } from '../webhooks/deliveries.ts';
import { findEndpoint, webhooks } from '../webhooks/endpoints.ts';
import { listEvents } from '../webhooks/pull.ts';
import { approvalsOf } from './approvals.ts';
import { ownInboxOf } from './inbox.ts';
import { showRequest } from './requests.ts';
import { OF_MERCHANT, ofKey, ownIdOf, TILL } from './till.ts';

/**
 * The operations of a merchant's own users and tokens: those of the operator, bound to their merchant.
 * Anything that belongs to another merchant seems not to exist.
 */

const MONEY: readonly PortalRole[] = ['owner', 'finance', 'operations', 'viewer'];
const FINANCE: readonly PortalRole[] = ['owner', 'finance'];
const ORDER: readonly PortalRole[] = ['owner', 'operations'];
const TEAM: readonly PortalRole[] = ['owner'];
const CONNECT: readonly PortalRole[] = ['owner', 'developer'];

/**
 * The subject of operations, which is named by an id. `of` returns its merchant, or undefined if it does not
 * exist.
 */
type Owned = {
  readonly noun: string;
  readonly field: string;
  of(caller: Caller, id: string): Promise<string | number | null | undefined>;
};

/**
 * Binds operations of the operator to the merchant of their caller: the field that names a merchant is that
 * merchant, and the subject has to be its own.
 */
function bound(
  roles: readonly PortalRole[],
  owner: Owned | null,
  ...originals: readonly { readonly name: string }[]
): AnyOperation[] {
  return tableOf(...originals).map((original) => bind(original, roles, owner));
}

/** Whether the people of a merchant agree on an operation among themselves. */
const isAmongThem = ({ approval }: Pick<AnyOperation, 'approval'>) =>
  approval?.people === 2 && approval.isOfMerchant;

function bind(original: AnyOperation, roles: readonly PortalRole[], owner: Owned | null): AnyOperation {
  const { input, run, ...rest } = original;
  const { merchantId, ...properties } = input.properties;
  if (merchantId === undefined && owner === null)
    throw new Error(`nothing binds ${original.name} to a merchant`);
  // What a merchant owns has to be named, also where the operator may leave it out.
  const named = owner && properties[owner.field];
  const required = named && Type.Required(Type.Object({ [owner.field]: named })).properties;
  return {
    ...rest,
    // The people of a merchant approve each other's proposals only where the merchant has chosen so.
    ...(!isAmongThem(rest) && {
      approval: rest.approval && OF_MERCHANT,
      risk: rest.risk === 'four-eyes' ? 'step-up' : rest.risk,
    }),
    roles,
    command: NO_COMMAND,
    input: Input({ ...properties, ...required }),
    async run(caller, fields: Record<string, unknown>) {
      const own = ownIdOf(caller);
      if (owner) {
        const id = String(fields[owner.field]);
        if (String(await owner.of(caller, id)) !== own) throw notFound(`${owner.noun} ${id}`);
      }
      return run(caller, merchantId === undefined ? fields : { ...fields, merchantId: own });
    },
  };
}

const ofBatch = {
  noun: 'batch',
  field: 'transactionId',
  of: async ({ service }: Caller, id: string) => (await findBatchOf(service.readDb, id))?.merchantId,
};
const ofTransaction = {
  noun: 'transaction',
  field: 'transactionId',
  of: async ({ service }: Caller, id: string) => (await showTransaction(service, id)).merchantId,
};
const ofEndpoint = {
  noun: 'endpoint',
  field: 'id',
  of: async ({ service }: Caller, id: string) => (await findEndpoint(service.db, toId(id)))?.merchantId,
};
const ofUser = {
  noun: 'user',
  field: 'id',
  of: async ({ service }: Caller, id: string) => (await findUser(service.db, toId(id)))?.merchantId,
};

const showOwn = {
  ...merchants.show,
  path: '/merchant',
  command: NO_COMMAND,
  input: Input({}),
  roles: PORTAL_ROLES,
  run: (caller: Caller) => merchants.show.run(caller, { id: ownIdOf(caller) }),
};

/** The fields of an entry that its merchant sees. */
const CHANGE = ['sequence', 'occurredAt', 'action', 'subject', 'before', 'after', 'requestId'] as const;

/** It shows a merchant what is its own. */
const ownRequest = { ...showRequest, command: NO_COMMAND, roles: MONEY };

const ownChanges = reading({
  name: audits.list.name,
  summary: audits.list.summary,
  path: '/audit',
  command: NO_COMMAND,
  input: PAGE,
  output: Page(
    Type.Object({
      ...Type.Pick(audits.list.output.properties.items.items, CHANGE).properties,
      by: Word(['merchant', 'operator']),
      actor: Nullable(Type.String(), {
        description: 'The name of your person or token; null: the operator.',
      }),
      reason: Nullable(Type.String(), { description: 'The reason of your person or token.' }),
    }),
  ),
  columns: ['sequence', 'occurredAt', 'actor', 'action', 'subject', 'reason', 'before', 'after'],
  roles: ['owner', 'viewer'],
  async run(caller, input) {
    const merchantId = ownIdOf(caller);
    const page = await audits.list.run(caller, { ...input, subject: `merchant ${merchantId}` });
    const own = await ownActors(caller, Number(merchantId), page.items);
    // Names and reasons of the operator's people are their own affair. The schema leaves out the rest.
    const items = page.items.map((entry) =>
      own.has(`${entry.actorKind} ${entry.actorId}`)
        ? { ...entry, by: 'merchant' as const }
        : { ...entry, by: 'operator' as const, actor: null, reason: null },
    );
    return { ...page, items };
  },
});

/** Returns which actors of some entries are people and tokens of a merchant. */
async function ownActors(
  { service }: Caller,
  merchantId: number,
  entries: readonly Pick<AuditEntry, 'actorKind' | 'actorId'>[],
): Promise<ReadonlySet<string>> {
  const ids = (kind: string) =>
    entries.flatMap(({ actorKind, actorId }) => (actorKind === kind ? [Number(actorId)] : []));
  const rows = await service.readDb.query<{ actor: string }>(sql`
select 'user ' || id as actor from users
where merchant_id = ${merchantId} and id = any (${ids('user')}::integer[])
union all
select 'token ' || id from operator_tokens
where merchant_id = ${merchantId} and id = any (${ids('token')}::integer[])`);
  return new Set(rows.map(({ actor }) => actor));
}

/** The books as a merchant sees them: its approved settlements, and its statements. */

const ofSettlement = {
  noun: 'settlement',
  field: 'id',
  of: ({ service }: Caller, id: string) => findMerchantOf(service.readDb, id),
};

/** Whether a report can be restricted to one merchant. */
const isOfMerchant = (name: string) => (findReport(name) ?? findLines(name))?.ofMerchant !== undefined;

function ownReport<Output extends TSchema>(
  made: Operation<typeof reportCsvFile.input, Output>,
): AnyOperation {
  const { from, to, format, european } = made.input.properties;
  const path = made.path as string;
  const names = (made.input.properties.report as unknown as { enum: string[] }).enum;
  const input = Input({
    report: Word(names.filter(isOfMerchant), { description: 'Its number or its name.', examples: ['R6'] }),
    from,
    to,
    ...(path.endsWith('/csv') && { format, european }),
  });
  return {
    ...(made as unknown as AnyOperation),
    command: NO_COMMAND,
    roles: MONEY,
    input: input as unknown as TObject,
    run: (caller, given) => made.run(caller, { ...given, merchantId: ownIdOf(caller) } as never),
  };
}

const ownSettlement: typeof showSettlement = {
  ...showSettlement,
  run: async (caller, input) => withoutPeople(await showSettlement.run(caller, input)),
};

/** The entries of a merchant's own float and settlement account. */
const ownEntries = {
  ...entries.list,
  input: Input({
    ...entries.list.input.properties,
    account: Word(['FLOAT', 'SETTLEMENT'], { description: 'The account.', examples: ['SETTLEMENT'] }),
  }),
};

const ownPayIn = { ...payIn.list, command: NO_COMMAND, roles: MONEY };

/** The operations on proposals. The operation that is proposed says who decides, as at the operator. */
const APPROVALS = approvalsOf(() => PORTAL_OPERATIONS).map((each) => ({
  ...each,
  command: NO_COMMAND,
  roles: ORDER,
}));

/** Every operation of /portal/v1, in the order of its documentation. */
export const PORTAL_OPERATIONS: readonly AnyOperation[] = [
  ...tableOf(showOwn),
  ...TILL,
  ...tableOf(ownChanges),
  ...bound(MONEY, null, floats.show, redeemedDays, transactions.list, transactions.find),
  ...tableOf(ownPayIn),
  ...bound(MONEY, ofTransaction, transactions.show),
  ...bound(MONEY, null, declines.list),
  ...tableOf(ownRequest),
  ...bound(MONEY, null, ownProducts),
  ...bound(ORDER, null, batches.generate),
  ...bound(MONEY, null, batches.list),
  ...bound(MONEY, ofBatch, batches.show, ownExports),
  ...bound(ORDER, ofBatch, batches.cancel, download, releases.release),
  ...bound(TEAM, null, releases.setApproval),
  ...APPROVALS,
  ...ownInboxOf(() => PORTAL_OPERATIONS),
  ...bound(MONEY, null, ownSettlements),
  ...bound(MONEY, ofSettlement, ownSettlement, settlementDocument, settlementProof),
  ...bound(FINANCE, ofSettlement, disputes.dispute),
  ...bound(MONEY, null, disputes.list),
  ...bound(MONEY, null, ownEntries),
  ownReport(report as never),
  ownReport(reportCsvFile),
  ...bound(CONNECT, null, apiKeys.create, apiKeys.list),
  ...bound(CONNECT, ofKey, apiKeys.show, apiKeys.rename, apiKeys.rotate, apiKeys.revoke),
  ...bound(MONEY, null, dailyLimits.list),
  ...bound(TEAM, ofKey, dailyLimits.set),
  ...bound(CONNECT, null, webhooks.add, webhooks.list),
  ...bound(CONNECT, ofEndpoint, webhooks.show, webhooks.remove, webhooks.enable, webhooks.rotate),
  ...bound(CONNECT, ofEndpoint, deliveries.test, deliveries.list, deliveries.attempts, deliveries.resend),
  ...bound(CONNECT, null, listEvents),
  ...bound(TEAM, null, users.list, invitations.invite),
  ...bound(TEAM, ofUser, users.setRoles, users.disable, users.enable, users.remove, users.erase),
  ...bound(TEAM, ofUser, invitations.reset, users.endSessions),
];
