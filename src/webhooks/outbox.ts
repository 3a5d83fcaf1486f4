import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, sql } from '../db/sql.ts';
import type { CodeAndPin, KeyRing } from '../keyring/ring.ts';
import { newId } from '../ledger/id.ts';
import {
  type TransactionRow,
  toTransaction,
  toUpdate,
  transactionData,
  type UpdateRow,
  updateData,
} from '../ledger/transaction.ts';

/** The events (docs/reference/webhooks.md). An endpoint takes some of these, or all. */
export const EVENTS = [
  'voucher.batch.completed',
  'voucher.batch.canceled',
  'voucher.activated',
  'voucher.redeemed',
  'redemption.updated',
  'float.low',
  'limit.reached',
  'voucher.blocked',
  'voucher.unblocked',
  'voucher.expired',
  'voucher.canceled',
  'voucher.replaced',
  'api-key.expiring',
  'api-key.expired',
  'api-key.revoked',
  'webhook.disabled',
  'day.closed',
  'settlement.approved',
  'settlement.paid',
  'settlement.returned',
] as const;

export type EventType = (typeof EVENTS)[number];

/** The events whose data is built from the journal. A delivery to the operator stores only the merchant. */
const JOURNALED: ReadonlySet<string> = new Set<EventType>([
  'voucher.activated',
  'voucher.redeemed',
  'redemption.updated',
]);

/** The event by which the operator tests whether an endpoint answers. */
export const TEST_EVENT = 'webhook.test';

/** Returns the id of an event as receivers see it, also in the header `webhook-id`. */
export const webhookId = (eventId: string) => `msg_${eventId.replaceAll('-', '')}`;

/** The owner of the operator's own endpoints, which take the events of all merchants. */
export const OPERATOR = 0;

type OutboxEvent = {
  /** The merchant, or the operator (`OPERATOR`). */
  readonly merchantId: number;
  readonly type: EventType;
  /** The time-ordered and unique id, by which receivers recognize repetitions. */
  readonly eventId: string;
  /** The journal row or batch of the event. */
  readonly subjectId: string | null;
  /** The data, if it is stored with the event. Never a full code or a PIN. */
  readonly data: object | null;
  readonly now: Date;
};

/**
 * Adds an event to the outbox: a delivery for each endpoint of the merchant or the operator that takes it, in
 * the transaction of the change. Functions of the hot path do the same in SQL.
 */
export async function enqueueEvent(tx: Queries, event: OutboxEvent): Promise<void> {
  const { merchantId, type, eventId, subjectId, data, now } = event;
  await tx.query(sql`
select announce_to(${merchantId}, ${type}, ${eventId}::uuid, ${subjectId}::uuid,
  ${data && JSON.stringify(data)}::json, ${now})`);
}

/** The events about changes of single vouchers. */
export type VoucherEventType = Extract<EventType, `voucher.${string}`>;

type VoucherEvent = {
  readonly bucket: number;
  readonly serialNumber: bigint;
  readonly type: VoucherEventType;
  /** What left the voucher; null if nothing moved. */
  readonly amountMinor: bigint | null;
  readonly now: Date;
};

/** Adds an event about a voucher to the outbox of the merchant that generated it. */
export async function announceVoucher(tx: Queries, event: VoucherEvent): Promise<void> {
  const { bucket, serialNumber, type, amountMinor, now } = event;
  await tx.query(sql`
select announce_vouchers(${bucket}, ${type}, array[${serialNumber}::bigint], array[${amountMinor}::bigint],
  array[${newId(now)}::uuid], ${now})`);
}

/**
 * Builds the body of a delivery when it is sent. The rows behind it never change, so every attempt has the
 * same body.
 */

/** An event for one endpoint. */
export type KeptEvent = {
  readonly bucket: number;
  readonly eventId: string;
  readonly type: string;
  readonly subjectId: string | null;
  readonly data: object | null;
  readonly occurredAt: Date;
};

/** A claimed delivery, with its endpoint. */
export type Delivery = KeptEvent & {
  readonly endpointId: number;
  /** The end of this sender's lease. */
  readonly leaseUntil: Date;
  /** All attempts before this one, and those since an operator last sent it again. */
  readonly attempts: number;
  readonly tries: number;
  readonly url: string;
  readonly full: boolean;
  readonly secret: Buffer;
  readonly previousSecret: Buffer | null;
  readonly failingSince: Date | null;
};

type BatchVoucher = { readonly serialNumber: bigint } & CodeAndPin;

/** Reads the vouchers of a completed batch, or nothing if there are more than `most`. */
export type ReadBatch = (
  service: Service,
  transactionId: string,
  most: number,
) => Promise<BatchVoucher[] | undefined>;

/** A journal row and, for a reversal, the update that made it. */
type SubjectRow = TransactionRow & { readonly subjectId: string } & (
    | { readonly reversal_id: null }
    | (Omit<UpdateRow, 'original_id' | 'reference'> & {
        readonly original_id: string;
        readonly original_reference: string | null;
      })
  );

/** A larger batch is sent without its vouchers, even to a `full` endpoint. Receivers download it. */
const FULL_VOUCHERS_MAX = 1_000;

/** Builds the bodies of deliveries, in their order; an error for a body that cannot be built. */
export async function makeBodies(
  service: Service,
  deliveries: readonly (KeptEvent | Delivery)[],
  read: ReadBatch,
): Promise<(string | Error)[]> {
  const subjects = Map.groupBy(
    deliveries.filter(({ type }) => JOURNALED.has(type)),
    ({ bucket }) => bucket,
  );
  const found = [...subjects].map(([bucket, each]) => {
    const ids = plainArray(each.map(({ subjectId }) => subjectId));
    // A statement of one bucket goes to its shard; a list of buckets would be asked of every shard.
    return service.db.query<SubjectRow>(sql`
select j.id as "subjectId", j.id, j.kind, j.amount_minor, j.occurred_at, j.reference, j.serial_number,
  j.original_id, false as canceled, v.sealed, b.decimals, o.amount_minor as original_minor,
  o.occurred_at as original_at, o.reference as original_reference, u.reversal_id, u.new_id, u.new_minor,
  u.updated_at
from journal j
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
left join redemption_updates u on u.bucket = j.bucket and u.original_id = j.original_id
  and u.reversal_id = j.id
left join journal o on o.bucket = u.bucket and o.id = u.original_id
where j.bucket = ${bucket} and j.id = any (${ids}::uuid[])`);
  });
  const rows = (await Promise.all(found)).flat();
  const bySubject = new Map(rows.map((row) => [row.subjectId, row]));
  const bodies = deliveries.map((delivery) =>
    makeBody(service, delivery, bySubject.get(delivery.subjectId ?? ''), read).catch((error: Error) => error),
  );
  return Promise.all(bodies);
}

async function makeBody(
  service: Service,
  delivery: KeptEvent | Delivery,
  subject: SubjectRow | undefined,
  read: ReadBatch,
): Promise<string> {
  const { type, occurredAt } = delivery;
  const data = { ...(JOURNALED.has(type) && describe(service.keys, subject)), ...delivery.data };
  const vouchers = tellsVouchers(delivery) ? await vouchersOf(service, delivery, read) : {};
  return JSON.stringify({ type, timestamp: occurredAt.toISOString(), data: { ...data, ...vouchers } });
}

function describe(keys: KeyRing, subject: SubjectRow | undefined): object {
  if (!subject) throw new Error('an event reports a journal row that is not there');
  if (subject.kind !== 'REDEMPTION_REVERSAL') return transactionData(toTransaction(keys, subject));
  if (subject.reversal_id === null) throw new Error('a reversal has no update');
  return updateData(toUpdate(keys, { ...subject, reference: subject.original_reference }));
}

/** Whether a delivery includes codes: only to `full` endpoints, and never unencrypted. */
function tellsVouchers(delivery: KeptEvent | Delivery): boolean {
  if (!('url' in delivery) || delivery.type !== 'voucher.batch.completed') return false;
  return delivery.full && delivery.url.startsWith('https:');
}

async function vouchersOf(service: Service, { subjectId }: KeptEvent, read: ReadBatch): Promise<object> {
  const vouchers = await read(service, subjectId ?? '', FULL_VOUCHERS_MAX);
  const shown = vouchers?.map((each) => ({ ...each, serialNumber: Number(each.serialNumber) }));
  return shown ? { vouchers: shown } : {};
}
