import Type, { type Static } from 'typebox';
import { type AuditEntry, listAudit } from '../audit/entries.ts';
import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { ENTRY, none, REQUESTED, when } from '../figure.ts';
import { declined } from '../ledger/journal.ts';
import { maskCode } from '../ledger/transaction.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { type Agreed, type Asked, type Caller, reading } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import {
  At,
  Count,
  MerchantId,
  Money,
  Nullable,
  NullableText,
  NullableTime,
  pastTime,
  SerialNumber,
  Text,
  Time,
  Titled,
  Word,
} from '../schema.ts';
import { findCashiers } from '../transactions/cashiers.ts';
import { declinesOf } from './declines.ts';

/** A voucher as the operator sees it, with its history. Its code is masked, and its PIN is not read. */

export const VOUCHER_STATES = [
  'INACTIVE',
  'ACTIVE',
  'REDEEMED',
  'BLOCKED',
  'EXPIRED',
  'CANCELED',
  'REPLACED',
] as const;

const MOVED = when({ kind: ['decline'] }, REQUESTED, ENTRY);
const VALUE = none('The value that its batch or its activation gave it.');

const TimelineEntry = Type.Object({
  at: Titled('Time', Time),
  kind: Word(['money', 'change', 'decline'] as const, {
    description: '`money`: a movement. `change`: by an operator. `decline`: a request that was refused.',
  }),
  what: Type.String({
    description: 'The kind of movement, the action of the operator, or the operation that was declined.',
  }),
  amount: Nullable(Type.Unsafe<bigint | number>(Money(MOVED)), {
    description:
      'For a movement, the change of the balance: negative if money leaves the voucher; null for the price of a voucher that is not active.',
  }),
  code: Nullable(Type.String(), {
    description: 'The status code of a decline: 55 is a wrong PIN, 75 a locked one.',
  }),
  merchantId: Nullable(MerchantId),
  keyId: Nullable(Type.String(), { description: 'The API key of a movement or a decline.' }),
  actor: Nullable(Type.String(), {
    description: 'Who made a change or a movement: the operator, or a person of the merchant in the portal.',
  }),
  approvedBy: Nullable(Type.String(), { description: 'Who approved what the operator proposed.' }),
  reason: NullableText,
  reference: NullableText,
  transactionId: NullableText,
});

export const VoucherSchema = Type.Object({
  serialNumber: SerialNumber,
  voucherCode: Type.String({ description: 'The code, masked.', examples: ['4829****7641'] }),
  state: Word(VOUCHER_STATES, { 'x-labels': { INACTIVE: 'Not activated', REDEEMED: 'Redeemed' } }),
  merchantId: MerchantId,
  payerId: Nullable(MerchantId, {
    title: 'Paid by',
    description:
      'The merchant whose float paid for its value, and gets the rest if it is canceled; null: none.',
  }),
  batch: Type.String({ description: 'The transaction id of its batch.' }),
  batchReference: Titled('Order', Text),
  product: Text,
  currency: Text,
  balance: Money(none('The movements of its history add up to it.')),
  value: Nullable(Money(VALUE), { description: 'The value at activation; null before it.' }),
  reserved: Nullable(Money(VALUE), {
    description: 'The value that it gets at its activation; null afterwards, and once it has expired.',
  }),
  activatedAt: NullableTime,
  expiresAt: Time,
  blockedAt: NullableTime,
  wrongPins: { ...Count, description: 'Wrong PINs in a row.' },
  pinLocked: Type.Boolean(),
  pinLockedUntil: Nullable(Time, {
    description: 'Null if there is no lock, or no time ends it.',
  }),
  replacedBy: Nullable(SerialNumber),
  timeline: Type.Array(TimelineEntry, {
    description: 'Movements, changes by operators and declines, newest first: at most 100 of each.',
  }),
});

type Voucher = Static<typeof VoucherSchema>;

const { state, wrongPins, pinLocked } = VoucherSchema.properties;

/** A voucher, now or at a time. What the journal does not know of that time is null. */
const VoucherThenSchema = Type.Object({
  ...VoucherSchema.properties,
  ...{ state: Nullable(state), expiresAt: NullableTime },
  ...{ wrongPins: Nullable(wrongPins), pinLocked: Nullable(pinLocked) },
});
type VoucherThen = Static<typeof VoucherThenSchema>;

/**
 * Returns a voucher by its serial number.
 * @throws Refusal `14` if it is unknown, or its batch is not complete: even operators do not see it
 */
export async function showVoucher(
  { db, buckets, keys, clock }: Service,
  serialNumber: bigint,
): Promise<Omit<Voucher, 'timeline'>> {
  const now = clock();
  const [row] = await db.query<Omit<Voucher, 'timeline' | 'voucherCode'> & { voucherCode: Buffer }>(sql`
select serial_number::text as "serialNumber",
  voucher_state(closed, blocked_at, expires_at, activated_at, balance_minor, ${now}) as state,
  merchant_id::text as "merchantId", transaction_id as batch, reference as "batchReference", product, currency,
  activated_at as "activatedAt", expires_at as "expiresAt", blocked_at as "blockedAt",
  wrong_pins as "wrongPins", replaced_by::text as "replacedBy", payer_id::text as "payerId",
  sealed as "voucherCode", balance_minor as balance, value_minor as value,
  case when activated_at is null and payer_id is not null and closed is distinct from 'REPLACED'
    then price_minor end as reserved,
  coalesce(pin_locked_for_good or pin_locked_until > ${now}, false) as "pinLocked",
  case when pin_locked_until > ${now} then pin_locked_until end as "pinLockedUntil"
from show_voucher(${buckets.ofSerial(serialNumber)}, ${serialNumber})`);
  if (!row) throw declined('14');
  return { ...row, voucherCode: maskCode(keys.open(serialNumber, row.voucherCode).code) };
}

/**
 * Returns a voucher as it was at a time, by the movements before it. What changes without a movement is null:
 * its expiry, blocks, wrong PINs and their locks, and so its state.
 * @throws Refusal `14`
 */
async function showAt(service: Service, serialNumber: bigint, at: Date): Promise<VoucherThen> {
  const now = await showVoucher(service, serialNumber);
  const [then] = await service.db.query<{ balance: bigint }>(sql`
select coalesce(sum(change_minor), 0)::bigint as balance
from list_voucher_entries(${service.buckets.ofSerial(serialNumber)}, ${serialNumber}, null)
where occurred_at < ${at}`);
  const wasActive = now.activatedAt !== null && now.activatedAt < at;
  const timeline = (await timelineOf(service, serialNumber)).filter((event) => event.at < at);
  return {
    ...now,
    ...{ balance: then?.balance ?? 0n, timeline, reserved: null },
    ...{ activatedAt: wasActive ? now.activatedAt : null, value: wasActive ? now.value : null },
    ...{ state: null, expiresAt: null, blockedAt: null, replacedBy: null },
    ...{ wrongPins: null, pinLocked: null, pinLockedUntil: null },
  };
}

/** Returns a voucher with its history. @throws Refusal `14` */
export async function showWhole({ service }: Caller, serialNumber: bigint): Promise<Voucher> {
  const voucher = await showVoucher(service, serialNumber);
  return { ...voucher, timeline: await timelineOf(service, serialNumber) };
}

type Timeline = Voucher['timeline'];
type Event = Timeline[number];
type Movement = Pick<
  Event,
  'at' | 'kind' | 'what' | 'amount' | 'merchantId' | 'keyId' | 'reference' | 'transactionId'
>;

const TIMELINE_MAX = 100;
const EMPTY = {
  amount: null,
  code: null,
  merchantId: null,
  keyId: null,
  actor: null,
  approvedBy: null,
  reason: null,
  reference: null,
  transactionId: null,
};

/** Lists the movements of a voucher, newest first. */
export function movementsOf({ db, buckets }: Service, serialNumber: bigint): Promise<Movement[]> {
  return db.query<Movement>(sql`
select occurred_at as at, 'money' as kind, kind as what, change_minor as amount, merchant_id::text as "merchantId",
  key_id as "keyId", nullif(reference, '') as reference, id as "transactionId"
from list_voucher_entries(${buckets.ofSerial(serialNumber)}, ${serialNumber}, ${TIMELINE_MAX})`);
}

/** Lists the payments of a voucher's expired money to a state, with that of others, newest first. */
function escheatsOf({ readDb }: Service, serialNumber: bigint) {
  return readDb.query<Pick<Event, 'at' | 'kind' | 'what' | 'transactionId'>>(sql`
select max(escheated_at) as at, 'change' as kind, 'books.escheat' as what, escheat_id as "transactionId"
from escheated_expiries where serial_number = ${serialNumber}
group by escheat_id order by at desc limit ${TIMELINE_MAX}`);
}

/** Lists the events of a voucher, newest first. The lock of a PIN is derived from the declines. */
async function timelineOf(service: Service, serialNumber: bigint): Promise<Timeline> {
  const movements = await movementsOf(service, serialNumber);
  const ids = movements.flatMap(({ transactionId }) => transactionId ?? []);
  const cashiers = await findCashiers(service.readDb, ids);
  const [changes, declines] = await Promise.all([
    listAudit(service.readDb, `voucher ${serialNumber}`, TIMELINE_MAX),
    declinesOf(service.readDb, serialNumber, TIMELINE_MAX),
  ]);
  const escheats = await escheatsOf(service, serialNumber);
  // A movement that an operator made is one event, with its author.
  const author = new Map(changes.map((each) => [transactionOf(each), each]));
  const isMoved = new Set<unknown>(movements.map(({ transactionId }) => transactionId));
  const entries: Timeline = [
    ...movements.map((each) => {
      const id = each.transactionId ?? '';
      const change = author.get(id);
      return {
        ...EMPTY,
        ...each,
        ...(change ? peopleOf(change) : { actor: cashiers.get(id) ?? null }),
      };
    }),
    ...changes
      .filter((each) => !isMoved.has(transactionOf(each)))
      .map((each) => ({
        ...EMPTY,
        at: each.occurredAt,
        kind: 'change' as const,
        what: each.action,
        ...peopleOf(each),
      })),
    ...escheats.map((each) => ({ ...EMPTY, ...each })),
    ...declines.map(({ id: _id, serialNumber: _serialNumber, operation: what, ...each }) => ({
      ...EMPTY,
      kind: 'decline' as const,
      what,
      ...each,
    })),
  ];
  return entries.sort((one, other) => other.at.getTime() - one.at.getTime());
}

/** Returns the movement that a change in the audit made. */
const transactionOf = ({ after }: Pick<AuditEntry, 'after'>) => after?.['transactionId'];

/** Returns who made a change and why, and who approved it. */
function peopleOf({ actor, reason, after }: AuditEntry) {
  const approvedBy = after?.['approvedBy'];
  return {
    actor,
    approvedBy: typeof approvedBy === 'string' ? approvedBy : null,
    reason,
  };
}

/** Returns a voucher, the merchant that had it generated, and its page. */
export async function ofVoucher(asking: Pick<Asked, 'caller'>, serialNumber: string): Promise<Agreed> {
  const { merchantId } = await showVoucher(asking.caller.service, BigInt(serialNumber));
  const merchant = await merchantNamed(asking, merchantId);
  return { voucher: serialNumber, merchant, link: `/vouchers/${serialNumber}` };
}

export const show = reading({
  name: 'voucher.show',
  summary: 'Get a voucher and its history, now or at a past time',
  description:
    'At a past time, its balance and its history are those by then. What changes without a movement is null: ' +
    'its state, its expiry, blocks, wrong PINs and their locks.',
  path: '/vouchers/:serialNumber',
  input: { serialNumber: SerialNumber, at: At },
  output: VoucherThenSchema,
  roles: SEE_VOUCHERS,
  run(caller, { serialNumber, at: text }): Promise<VoucherThen> {
    const at = pastTime(text, caller.service.clock());
    const serial = BigInt(serialNumber);
    return at === undefined ? showWhole(caller, serial) : showAt(caller.service, serial, at);
  },
});
