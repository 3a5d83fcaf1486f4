import { lookup } from 'node:dns/promises';
import { audit, type Change } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { newWebhookSecret } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import type { Sql } from '../db/sql.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { ForbiddenAddress, isPublic, readEndpointUrl } from './address.ts';
import type { EventType } from './outbox.ts';
import {
  countDeliveries,
  countEndpoints,
  enableEndpointRow,
  insertEndpoint,
  listEndpointRows,
  lockEndpoint,
  lockMerchant,
  nextEndpointId,
  removeEndpointRow,
  rotateSecretRow,
} from './queries.ts';

/** A URL that receives a merchant's events. */
export type Endpoint = {
  readonly id: number;
  readonly merchantId: number;
  readonly url: string;
  /** The events that are sent; null: all. */
  readonly events: readonly string[] | null;
  readonly full: boolean;
  readonly createdAt: Date;
  readonly failingSince: Date | null;
  readonly disabledAt: Date | null;
  readonly disabledReason: string | null;
  readonly pending: number;
  readonly failed: number;
};

type EndpointRow = {
  id: number;
  merchant_id: number;
  url: string;
  events: string[] | null;
  full_vouchers: boolean;
  created_at: Date;
  failing_since: Date | null;
  disabled_at: Date | null;
  disabled_reason: string | null;
};

type CountRow = { id: number; pending: bigint; failed: bigint };

/** The most endpoints of a merchant: every event is written once for each endpoint that takes it. */
const ENDPOINTS_MAX = 20;
const OVERLAP_MS = 24 * 3_600_000;

/** The merchant has the highest number of endpoints. */
export class TooManyEndpoints extends Error {}

type NewEndpoint = {
  readonly merchantId: number;
  readonly url: string;
  /** The events that are sent; null: all. */
  readonly events: readonly EventType[] | null;
  readonly full: boolean;
};

/**
 * Adds an endpoint to an existing merchant.
 * @returns its id, and its secret, which is shown once
 * @throws ForbiddenAddress if webhooks may not be sent there; TooManyEndpoints
 */
export async function addEndpoint(
  operator: Operator,
  { merchantId, url, events, full }: NewEndpoint,
  allowPrivate: boolean,
): Promise<{ id: number; secret: string }> {
  const { db, keys, clock } = operator.service;
  const target = await checkTarget(url, allowPrivate);
  if (full && target.protocol !== 'https:')
    throw new ForbiddenAddress(
      'codes and PINs are sent to https addresses only: leave out --full, or use https',
    );
  const secret = newWebhookSecret();
  return db.transaction(async (tx) => {
    await tx.query(lockMerchant(merchantId));
    const [counted] = await tx.query<{ count: number }>(countEndpoints(merchantId));
    if ((counted?.count ?? 0) >= ENDPOINTS_MAX)
      throw new TooManyEndpoints(`a merchant has at most ${ENDPOINTS_MAX} endpoints`);
    await holdKeyRing(tx, keys);
    const [next] = await tx.query<{ id: number }>(nextEndpointId());
    const id = next?.id as number;
    const sealed = keys.sealText(ownerOf(id), secret);
    await tx.query(
      insertEndpoint({ id, merchantId, url: target.href, events, full, secret: sealed, now: clock() }),
    );
    const after = { merchantId, url: target.href, events, full };
    await audit(tx, operator, { action: 'webhook.add', subject: subjectOf(id), after });
    return { id, secret };
  });
}

/** Returns the owner under which a secret is sealed. */
export function ownerOf(endpointId: number): string {
  return `webhook:${endpointId}`;
}

/** Refuses a name that resolves to a private address. A name that does not resolve may do so later. */
async function checkTarget(text: string, allowPrivate: boolean): Promise<URL> {
  const url = readEndpointUrl(text, allowPrivate);
  if (allowPrivate) return url;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const found = await lookup(host, { all: true }).catch(() => []);
  if (found.some(({ address }) => !isPublic(address)))
    throw new ForbiddenAddress(`${host} resolves to an address that is not public`);
  return url;
}

/** Lists a page of endpoints that were not removed, of one merchant or of all, oldest first, after an id. */
export async function pageOfEndpoints(
  db: Queries,
  merchantId: number | null,
  after: number,
  limit: number,
): Promise<Endpoint[]> {
  return withCounts(db, await db.query<EndpointRow>(listEndpointRows(merchantId, null, limit, after)));
}

export async function findEndpoint(db: Queries, id: number): Promise<Endpoint | undefined> {
  const [row] = await db.query<EndpointRow>(listEndpointRows(null, id, 1));
  return row && (await withCounts(db, [row]))[0];
}

async function withCounts(db: Queries, rows: readonly EndpointRow[]): Promise<Endpoint[]> {
  const counts = await db.query<CountRow>(countDeliveries(rows.map(({ id }) => id)));
  const byId = new Map(counts.map((each) => [each.id, each]));
  return rows.map((row) => toEndpoint(row, byId.get(row.id)));
}

function toEndpoint(row: EndpointRow, counts: CountRow | undefined): Endpoint {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    url: row.url,
    events: row.events,
    full: row.full_vouchers,
    createdAt: row.created_at,
    failingSince: row.failing_since,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
    pending: Number(counts?.pending),
    failed: Number(counts?.failed),
  };
}

const subjectOf = (id: number) => `webhook ${id}`;

/**
 * Removes an endpoint: no more events are sent to it. Its attempts stay visible for 90 days.
 * @returns whether it exists
 */
export function removeEndpoint(operator: Operator, id: number): Promise<boolean> {
  const now = operator.service.clock();
  return change(operator, id, 'webhook.remove', removeEndpointRow(id, now), (old) => ({
    before: {
      merchantId: old.merchant_id,
      url: old.url,
      events: old.events,
      full: old.full_vouchers,
      removedAt: null,
    },
    after: { removedAt: now },
  }));
}

/**
 * Enables an endpoint. Events since it was disabled are not sent automatically.
 * @returns whether it exists
 */
export function enableEndpoint(operator: Operator, id: number): Promise<boolean> {
  const now = operator.service.clock();
  return change(operator, id, 'webhook.enable', enableEndpointRow(id, now), (old) => ({
    before: {
      failingSince: old.failing_since,
      disabledAt: old.disabled_at,
      disabledReason: old.disabled_reason,
    },
    after: { failingSince: null, disabledAt: null, disabledReason: null },
  }));
}

/**
 * Gives an endpoint a new secret. For 24 hours, deliveries are signed with both secrets, so that the receiver
 * can switch.
 * @returns the new secret, which is shown once, and the end of the old one; undefined if there is no
 *   endpoint
 */
export async function rotateSecret(
  operator: Operator,
  id: number,
): Promise<{ secret: string; previousUntil: Date } | undefined> {
  const { keys, clock } = operator.service;
  const secret = newWebhookSecret();
  const previousUntil = new Date(clock().getTime() + OVERLAP_MS);
  const rotate = async (tx: Queries) => {
    await holdKeyRing(tx, keys);
    return rotateSecretRow(id, keys.sealText(ownerOf(id), secret), previousUntil);
  };
  const rotated = await change(operator, id, 'webhook.rotate', rotate, (old) => ({
    before: { previousSecretUntil: old.previous_until },
    after: { previousSecretUntil: previousUntil },
  }));
  return rotated ? { secret, previousUntil } : undefined;
}

type Locked = Omit<EndpointRow, 'pending' | 'failed'> & { previous_until: Date | null };

/**
 * Changes the row of an endpoint under its lock, and writes both versions to the audit. Returns false if
 * there is no such endpoint.
 */
function change(
  operator: Operator,
  id: number,
  action: string,
  statement: Sql | ((tx: Queries) => Promise<Sql>),
  describe: (old: Locked) => Pick<Change, 'before' | 'after'>,
): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    const text = typeof statement === 'function' ? await statement(tx) : statement;
    const [old] = await tx.query<Locked>(lockEndpoint(id));
    if (!old) return false;
    await tx.query(text);
    await audit(tx, operator, { action, subject: subjectOf(id), ...describe(old) });
    return true;
  });
}
