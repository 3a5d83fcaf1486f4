import Type, { type TObject, type TSchema } from 'typebox';
import { countCall, isBlockedToday } from '../api-keys/guesses.ts';
import { apiKeys, findKeyInfo } from '../api-keys/keys.ts';
import { type AuditEntry, audits } from '../audit/entries.ts';
import { findBatchOf } from '../batches/batch.ts';
import { batches } from '../batches/batches.ts';
import { download, ownExports } from '../batches/download.ts';
import { floats } from '../books/floats.ts';
import { findLines, findReport, report, reportCsvFile } from '../books/reports/reports.ts';
import type { Context } from '../context.ts';
import { sql } from '../db/sql.ts';
import { actFor, merchants } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import {
  type AnyOperation,
  alone,
  type Caller,
  changing,
  type Operation,
  reading,
  tableOf,
} from '../operation.ts';
import { PAGE, Page } from '../page.ts';
import { invitations } from '../people/invite.ts';
import { findUser, users } from '../people/users.ts';
import type { PortalRole } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { GivenUp, giveUpRedemption } from '../redemptions/give-up.ts';
import { Input, Line, Nullable, SerialNumber, Text, Time, toId, Word } from '../schema.ts';
import { disputes } from '../settlement/disputes.ts';
import { settlementDocument } from '../settlement/document.ts';
import { findMerchantOf, ownSettlements, withoutPeople } from '../settlement/settlements.ts';
import { showSettlement } from '../settlement/show.ts';
import { showTransaction, transactions } from '../transactions/transactions.ts';
import { balance } from '../vouchers/balance.ts';
import { declines } from '../vouchers/declines.ts';
import { showVoucher } from '../vouchers/show.ts';
import { deliveries } from '../webhooks/deliveries.ts';
import { findEndpoint, webhooks } from '../webhooks/endpoints.ts';

/**
 * The operations of a merchant's own users and tokens: those of the operator, bound to their merchant.
 * Anything that belongs to another merchant seems not to exist.
 */

const ALL: readonly PortalRole[] = ['owner', 'finance', 'operations', 'cashier', 'developer', 'viewer'];
const MONEY: readonly PortalRole[] = ['owner', 'finance', 'operations', 'viewer'];
const FINANCE: readonly PortalRole[] = ['owner', 'finance'];
const ORDER: readonly PortalRole[] = ['owner', 'operations'];
const TEAM: readonly PortalRole[] = ['owner'];
const CONNECT: readonly PortalRole[] = ['owner', 'developer'];

const NO_COMMAND = { none: 'the portal belongs to merchants, and the command line to the operator' };

const ownIdOf = ({ principal }: Caller) => {
  if (principal.merchantId === null) throw new Problem('forbidden');
  return String(principal.merchantId);
};

const OF_MERCHANT = alone('The people of a merchant need no approval of the operator.');

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

function bind(original: AnyOperation, roles: readonly PortalRole[], owner: Owned | null): AnyOperation {
  const { input, run, ...rest } = original;
  const { merchantId, ...properties } = input.properties;
  if (merchantId === undefined && owner === null)
    throw new Error(`nothing binds ${original.name} to a merchant`);
  return {
    ...rest,
    // A merchant's people do not approve each other's proposals.
    approval: rest.approval && OF_MERCHANT,
    risk: rest.risk === 'four-eyes' ? 'step-up' : rest.risk,
    roles,
    command: NO_COMMAND,
    input: Input(properties),
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
const ofKey = {
  noun: 'key',
  field: 'keyId',
  of: async ({ service }: Caller, id: string) => (await findKeyInfo(service, id))?.merchantId,
};

const ofUser = {
  noun: 'user',
  field: 'id',
  of: async ({ service }: Caller, id: string) => (await findUser(service.db, toId(id)))?.merchantId,
};

/**
 * Returns the name under which wrong PINs are counted. All users of a merchant share one count, as for an API
 * key.
 */
const guesserOf = (merchantId: string) => `portal-${merchantId}`;

const checkVoucher = reading({
  name: 'voucher.check',
  summary: 'Check the balance of a voucher by its code and PIN',
  description:
    'Wrong PINs count as at the till: five in a row lock the PIN, and a portal that keeps guessing is stopped (97).',
  // It only reads: a transaction would be rolled back with the answer, and the count of wrong PINs must stay.
  method: 'POST',
  path: '/vouchers/check',
  command: NO_COMMAND,
  input: {
    code: Type.String({
      pattern: '^[0-9]{12}$',
      description: 'The code: 12 digits.',
      examples: ['482913057641'],
    }),
    pin: Type.String({ pattern: '^[0-9]{4}$', description: 'The PIN: 4 digits.', examples: ['0731'] }),
  },
  output: Type.Object({
    serialNumber: SerialNumber,
    balance: Type.Number(),
    usableAmount: Type.Number({
      title: 'Usable',
      description: 'The balance, or 0 where nothing can be redeemed.',
    }),
    currency: Text,
    expiryDate: Time,
  }),
  roles: ALL,
  async run(caller, { code, pin }) {
    const context = await contextOf(caller);
    if (await isBlockedToday(context))
      throw new Problem('too-many-requests', 'too many wrong codes or PINs today');
    countCall(context.service, context.keyId, context.now, true);
    const found = await balance(context, { code, pin });
    const { currency, expiresAt } = await showVoucher(context.service, found.serialNumber);
    return {
      serialNumber: String(found.serialNumber),
      balance: toNumber(found.balance),
      usableAmount: toNumber(found.usable),
      currency,
      expiryDate: expiresAt,
    };
  },
});

/** Returns the context of a till, with the permissions of the merchant. @throws Refusal `04` */
async function contextOf(caller: Caller): Promise<Context> {
  const id = ownIdOf(caller);
  const context = await actFor(caller.service, Number(id));
  if (!context) throw notFound('such merchant');
  return { ...context, keyId: guesserOf(id) };
}

const giveUp = changing({
  name: 'redemption.give-up',
  summary: 'Give up a redemption whose outcome is unknown: reverse it, or ensure that it is never booked',
  description:
    'If it was booked, it is reversed in full, once. If not, its reference is used up, so a late copy of the ' +
    'request is refused (94). It is safe to repeat, and to call while the redemption is still running. The ' +
    'merchant needs the permission update-redemption.',
  path: '/redemptions/give-up',
  command: NO_COMMAND,
  input: {
    reference: Line(100, 'The reference of the redemption.', 'order-10071'),
    keyId: Type.Optional(
      Line(100, 'The API key that sent it: refused unless it belongs to the same merchant.', 'key_4Xa9'),
    ),
  },
  output: GivenUp,
  roles: ['owner', 'cashier'],
  approval: OF_MERCHANT,
  // It waits for redemptions under the same reference, so it holds no lock that others wait for.
  effect: 'outside',
  async run(caller, { reference, keyId }) {
    if (keyId !== undefined && String(await ofKey.of(caller, keyId)) !== ownIdOf(caller))
      throw notFound('API key of this merchant with this id');
    return giveUpRedemption(caller, await contextOf(caller), reference);
  },
});

const showOwn = {
  ...merchants.show,
  path: '/merchant',
  command: NO_COMMAND,
  input: Input({}),
  roles: ALL,
  run: (caller: Caller) => merchants.show.run(caller, { id: ownIdOf(caller) }),
};

/** The fields of an entry that its merchant sees. */
const CHANGE = ['sequence', 'occurredAt', 'action', 'subject', 'before', 'after', 'requestId'] as const;

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
  const { from, to, european } = made.input.properties;
  const path = made.path as string;
  const names = (made.input.properties.report as unknown as { enum: string[] }).enum;
  const input = Input({
    report: Word(names.filter(isOfMerchant), { description: 'Its number or its name.', examples: ['R6'] }),
    from,
    to,
    ...(path.endsWith('/csv') && { european }),
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

/** Every operation of /portal/v1, in the order of its documentation. */
export const PORTAL_OPERATIONS: readonly AnyOperation[] = [
  ...tableOf(showOwn, checkVoucher, giveUp, ownChanges),
  ...bound(MONEY, null, floats.show, transactions.list, transactions.find),
  ...bound(MONEY, ofTransaction, transactions.show),
  ...bound(MONEY, null, declines.list),
  ...bound(ORDER, null, batches.generate),
  ...bound(MONEY, null, batches.list),
  ...bound(MONEY, ofBatch, batches.show, ownExports),
  ...bound(ORDER, ofBatch, batches.cancel, download),
  ...bound(MONEY, null, ownSettlements),
  ...bound(MONEY, ofSettlement, ownSettlement, settlementDocument),
  ...bound(FINANCE, ofSettlement, disputes.dispute),
  ...bound(MONEY, null, disputes.list),
  ownReport(report as never),
  ownReport(reportCsvFile),
  ...bound(CONNECT, null, apiKeys.create, apiKeys.list),
  ...bound(CONNECT, ofKey, apiKeys.show, apiKeys.rotate, apiKeys.revoke),
  ...bound(CONNECT, null, webhooks.add, webhooks.list),
  ...bound(CONNECT, ofEndpoint, webhooks.show, webhooks.remove, webhooks.enable, webhooks.rotate),
  ...bound(CONNECT, ofEndpoint, deliveries.test, deliveries.list, deliveries.attempts, deliveries.resend),
  ...bound(TEAM, null, users.list, invitations.invite),
  ...bound(TEAM, ofUser, users.setRoles, users.disable, users.enable, users.remove),
  ...bound(TEAM, ofUser, invitations.reset, users.endSessions),
];
