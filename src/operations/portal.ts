import Type from 'typebox';
import { countCall, isBlockedToday } from '../api-keys/guesses.ts';
import { apiKeys, findKeyInfo } from '../api-keys/keys.ts';
import { type AuditEntry, audits } from '../audit/entries.ts';
import { findBatchOf } from '../batches/batch.ts';
import { batches } from '../batches/batches.ts';
import { floats } from '../books/floats.ts';
import type { Context } from '../context.ts';
import { sql } from '../db/sql.ts';
import { actFor, merchants } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { type AnyOperation, type Caller, operation, tableOf } from '../operation.ts';
import { Page } from '../page.ts';
import { invitations } from '../people/invite.ts';
import { findUser, users } from '../people/users.ts';
import { notFound, Problem } from '../problem.ts';
import { Input, Nullable, SerialNumber, Text, Time, toId, Word } from '../schema.ts';
import { showTransaction, transactions } from '../transactions/transactions.ts';
import { balance } from '../vouchers/balance.ts';
import { declines } from '../vouchers/declines.ts';
import { showVoucher } from '../vouchers/show.ts';
import { deliveries } from '../webhooks/deliveries.ts';
import { findEndpoint, webhooks } from '../webhooks/endpoints.ts';
import { ALL, bound, CONNECT, MONEY, NO_COMMAND, ORDER, ownIdOf, TEAM } from './portal-binding.ts';
import { PORTAL_BOOKS } from './portal-books.ts';

/**
 * The operations of a merchant's own users and tokens: those of the operator, bound to their merchant.
 * Anything that belongs to another merchant seems not to exist.
 */

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

const checkVoucher = operation({
  name: 'voucher.check',
  summary: 'Check the balance of a voucher by its code and PIN',
  description:
    'Wrong PINs count as at the till: five in a row lock the PIN, and a portal that keeps guessing is stopped (97).',
  method: 'POST',
  path: '/vouchers/check',
  command: NO_COMMAND,
  input: Input({
    code: Type.String({
      pattern: '^[0-9]{12}$',
      description: 'The code: 12 digits.',
      examples: ['482913057641'],
    }),
    pin: Type.String({ pattern: '^[0-9]{4}$', description: 'The PIN: 4 digits.', examples: ['0731'] }),
  }),
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
  risk: 'plain',
  approval: null,
  audit: null,
  // The transaction must not be rolled back with the answer: the count of wrong PINs has to stay.
  effect: 'read',
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

const showOwn = operation({
  ...merchants.show,
  path: '/merchant',
  command: NO_COMMAND,
  input: Input({}),
  roles: ALL,
  run: (caller) => merchants.show.run(caller, { id: ownIdOf(caller) }),
});

/** The fields of an entry that its merchant sees. */
const CHANGE = ['sequence', 'occurredAt', 'action', 'subject', 'before', 'after', 'requestId'] as const;

const ownChanges = operation({
  ...audits.list,
  path: '/audit',
  command: NO_COMMAND,
  input: Input({ cursor: audits.list.input.properties.cursor, limit: audits.list.input.properties.limit }),
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
  roles: ['owner', 'viewer'],
  async run(caller, input) {
    const merchantId = ownIdOf(caller);
    const page = await audits.list.run(caller, { ...input, subject: `merchant ${merchantId}` });
    const own = await ownActors(caller, Number(merchantId), page.items);
    // Names and reasons of the operator's people are their own affair.
    const items = page.items.map(({ actorKind, actorId, actor, reason, ...entry }) => {
      const isOwn = own.has(`${actorKind} ${actorId}`);
      const shown = Object.fromEntries(CHANGE.map((name) => [name, entry[name]])) as Pick<
        typeof entry,
        (typeof CHANGE)[number]
      >;
      return isOwn
        ? { ...shown, by: 'merchant' as const, actor, reason }
        : { ...shown, by: 'operator' as const, actor: null, reason: null };
    });
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

/** Every operation of /portal/v1, in the order of its documentation. */
export const PORTAL_OPERATIONS: readonly AnyOperation[] = [
  ...tableOf(showOwn, checkVoucher, ownChanges),
  bound(floats.show, { path: '/floats', roles: MONEY, merchant: 'merchantId' }),
  bound(transactions.list, { path: '/transactions', roles: MONEY, merchant: 'merchantId' }),
  bound(transactions.find, { path: '/transactions/find', roles: MONEY, merchant: 'merchantId' }),
  bound(transactions.show, { path: '/transactions/:transactionId', roles: MONEY, owner: ofTransaction }),
  bound(declines.list, { path: '/declines', roles: MONEY, merchant: 'merchantId' }),
  bound(batches.generate, { path: '/batches', roles: ORDER, merchant: 'merchantId' }),
  bound(batches.list, { path: '/batches', roles: MONEY, merchant: 'merchantId' }),
  bound(batches.show, { path: '/batches/:transactionId', roles: MONEY, owner: ofBatch }),
  bound(batches.cancel, { path: '/batches/:transactionId/cancel', roles: ORDER, owner: ofBatch }),
  ...PORTAL_BOOKS,
  bound(apiKeys.create, { path: '/api-keys', roles: CONNECT, merchant: 'merchantId' }),
  bound(apiKeys.list, { path: '/api-keys', roles: CONNECT, merchant: 'merchantId' }),
  bound(apiKeys.show, { path: '/api-keys/:keyId', roles: CONNECT, owner: ofKey }),
  bound(apiKeys.rotate, { path: '/api-keys/:keyId/rotate', roles: CONNECT, owner: ofKey }),
  bound(apiKeys.revoke, {
    path: '/api-keys/:keyId/revoke',
    roles: CONNECT,
    owner: ofKey,
    merchant: 'merchantId',
  }),
  bound(webhooks.add, { path: '/webhooks', roles: CONNECT, merchant: 'merchantId' }),
  bound(webhooks.list, { path: '/webhooks', roles: CONNECT, merchant: 'merchantId' }),
  bound(webhooks.show, { path: '/webhooks/:id', roles: CONNECT, owner: ofEndpoint }),
  bound(webhooks.remove, { path: '/webhooks/:id/remove', roles: CONNECT, owner: ofEndpoint }),
  bound(webhooks.enable, { path: '/webhooks/:id/enable', roles: CONNECT, owner: ofEndpoint }),
  bound(webhooks.rotate, { path: '/webhooks/:id/rotate', roles: CONNECT, owner: ofEndpoint }),
  bound(deliveries.test, { path: '/webhooks/:id/test', roles: CONNECT, owner: ofEndpoint }),
  bound(deliveries.list, {
    path: '/webhooks/:id/deliveries',
    roles: CONNECT,
    owner: ofEndpoint,
  }),
  bound(deliveries.attempts, {
    path: '/webhooks/:id/deliveries/:eventId',
    roles: CONNECT,
    owner: ofEndpoint,
  }),
  bound(deliveries.resend, { path: '/webhooks/:id/resend', roles: CONNECT, owner: ofEndpoint }),
  bound(users.list, { path: '/users', roles: TEAM, merchant: 'merchantId' }),
  bound(invitations.invite, { path: '/users', roles: TEAM, merchant: 'merchantId' }),
  bound(users.setRoles, { path: '/users/:id/set-roles', roles: TEAM, owner: ofUser }),
  bound(users.disable, { path: '/users/:id/disable', roles: TEAM, owner: ofUser }),
  bound(users.enable, { path: '/users/:id/enable', roles: TEAM, owner: ofUser }),
  bound(users.remove, { path: '/users/:id/remove', roles: TEAM, owner: ofUser }),
  bound(invitations.reset, { path: '/users/:id/reset-2fa', roles: TEAM, owner: ofUser }),
  bound(users.endSessions, { path: '/users/:id/end-sessions', roles: TEAM, owner: ofUser }),
];
