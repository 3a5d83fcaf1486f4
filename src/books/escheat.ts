import { hash } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Operator, Service } from '../context.ts';
import type { Database, Queries } from '../db/pool.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import { ENTRY, sumOf } from '../figure.ts';
import { type Expiry, getAccount, lockExpiries, post } from '../ledger/journal.ts';
import { currencyOf } from '../merchants/floats.ts';
import { toSum } from '../money.ts';
import { changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import {
  Amount,
  Currency,
  Day,
  Money,
  minorOf,
  Reference,
  SerialNumber,
  SerialNumbers,
  Time,
} from '../schema.ts';
import { toStart } from '../zone.ts';
import { type Booked, BookedAmount, bookOnce } from './once.ts';

/**
 * Lists the amounts that expired before a time, and were unclaimed at an instant: neither given back nor paid
 * to a state by then. Days are those of the zone.
 */
export function listUnclaimed(wanted: {
  readonly currency: string | null;
  /** Null: all. */
  readonly expiredBefore: Date | null;
  /** Null: now. */
  readonly at: Date | null;
  readonly zone: string;
  readonly countMax: number;
}): Sql {
  const { currency, zone, countMax } = wanted;
  const [before, at] = [wanted.expiredBefore, wanted.at].map((time) => time?.toISOString() ?? 'infinity');
  return sql`
select j.serial_number as "serialNumber", p.code as product, j.currency, j.amount_minor as amount,
  (v.activated_at at time zone ${zone})::date::text as "issuedOn",
  (greatest(u.used_at, v.earlier_use_at, v.activated_at) at time zone ${zone})::date::text as "lastUsedOn",
  (e.expired_at at time zone ${zone})::date::text as "expiredOn"
from batches b
join products p on p.id = b.product_id
join vouchers v on v.batch_id = b.id and v.activated_at is not null
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'EXPIRY'
-- A voucher that was imported after its expiry expired in the other system.
cross join lateral (select least(j.occurred_at, v.expires_at) as expired_at) e
left join (
  select r.bucket, r.serial_number, max(r.occurred_at) as used_at from journal r
  where r.kind = 'REDEMPTION' and r.original_id is null and r.occurred_at < ${at}::timestamptz group by 1, 2
) u on u.bucket = v.bucket and u.serial_number = v.serial_number
left join (
  select r.expiry_id from escheated_expiries r where r.escheated_at < ${at}::timestamptz
) s on s.expiry_id = j.id
where b.expiry_policy = 'unclaimed' and b.status = 'COMPLETED'
  and (${currency}::text is null or b.currency = ${currency})
  and e.expired_at < ${before}::timestamptz and s.expiry_id is null
  and not exists (
    select from journal r
    where r.bucket = v.bucket and r.serial_number = v.serial_number and r.kind = 'REINSTATEMENT'
      and r.original_id = j.id and r.occurred_at < ${at}::timestamptz
  )
order by j.currency, j.serial_number, j.id limit ${countMax}`;
}

/** Records the amounts that a movement paid to a state, in columns of equal length. */
function insertEscheated(
  escheatId: string,
  now: Date,
  columns: {
    readonly ids: readonly string[];
    readonly serials: readonly bigint[];
    readonly amounts: readonly bigint[];
    readonly times: readonly Date[];
  },
): Sql {
  const { ids, serials, amounts, times } = columns;
  return sql`
insert into escheated_expiries (expiry_id, escheat_id, serial_number, amount_minor, expired_at, escheated_at)
select u.id, ${escheatId}, u.serial_number, u.amount_minor, u.expired_at, ${now}
from unnest(${plainArray(ids)}::uuid[], ${plainArray(serials)}::bigint[], ${plainArray(amounts)}::bigint[],
  ${plainArray(times.map((time) => time.toISOString()))}::timestamptz[])
  as u (id, serial_number, amount_minor, expired_at)`;
}

/** Unclaimed money that is paid to a state, voucher by voucher. */

/** The vouchers whose money is paid: these, or all whose money expired before a time (null: all). */
export type Selection =
  | { readonly serialNumbers: readonly bigint[] }
  | { readonly expiredBefore: Date | null };

type Wanted = {
  readonly currency: string;
  readonly of: Selection;
  /** The expected sum; undefined: any sum. */
  readonly amountMinor?: bigint | undefined;
  readonly reference: string;
};

const EscheatedVoucher = Type.Object({ serialNumber: SerialNumber, amount: Money(ENTRY), expiredAt: Time });

type Escheated = Booked & {
  readonly amount: bigint;
  readonly vouchers: Static<typeof EscheatedVoucher>[];
};

/** The most vouchers in one payment: all of them are locked until it is booked, and named in its answer. */
const VOUCHERS_MAX = 10_000;

/**
 * Books unclaimed money of vouchers as paid to a state: one ESCHEAT, from unclaimed to funding, which names
 * each expired amount that it pays. Such an amount is not given back to its voucher any more.
 * @throws Refusal `18`, `94`; `51` if a voucher has no unclaimed money in the currency, or none has; `13` if
 *   the sum is not the expected one
 */
export async function escheatUnclaimed(operator: Operator, wanted: Wanted): Promise<Escheated> {
  const { service } = operator;
  const { currency, of, amountMinor: expected, reference } = wanted;
  const named =
    'serialNumbers' in of
      ? hash('sha256', of.serialNumbers.map(String).sort().join())
      : (of.expiredBefore?.toISOString() ?? 'all');
  const fingerprint = `${currency} ${expected ?? 'any'} ${named}`;
  const claim = { merchantId: 0, operation: 'escheat', reference, fingerprint } as const;
  const booked = await bookOnce(operator, claim, async ({ tx, id, now }) => {
    const debit = await getAccount(tx, 0, currency, 'UNCLAIMED');
    const credit = await getAccount(tx, 0, currency, 'FUNDING');
    const expiries = await lockUnclaimed(service, tx, wanted, debit);
    const amountMinor = expiries.reduce((sum, each) => sum + each.amountMinor, 0n);
    const amount = toSum(currency, amountMinor);
    if (amountMinor === 0n)
      throw new Refusal('51', { message: 'Insufficient balance: nothing is unclaimed' });
    if (expected !== undefined && expected !== amountMinor)
      throw new Refusal('13', {
        message: `Invalid amount: ${amount} of these vouchers is unclaimed`,
      });
    await post(tx, { kind: 'ESCHEAT', id, debit, credit, amountMinor, merchantId: null, reference, now });
    await tx.query(
      insertEscheated(id, now, {
        ids: expiries.map((each) => each.id),
        serials: expiries.map((each) => each.serialNumber),
        amounts: expiries.map((each) => each.amountMinor),
        times: expiries.map((each) => each.expiredAt),
      }),
    );
    const after = { amount, expiries: expiries.length };
    const moved = [{ currency, minor: amountMinor }];
    return { action: 'books.escheat', subject: 'books', after, moved };
  });
  // The amounts that a movement paid to a state.
  const vouchers = await service.db.query<Static<typeof EscheatedVoucher>>(sql`
select serial_number::text as "serialNumber", amount_minor as amount, expired_at as "expiredAt"
from escheated_expiries where escheat_id = ${booked.transactionId}
order by escheated_expiries.serial_number, expired_at`);
  return { ...booked, amount: vouchers.reduce((sum, { amount }) => sum + amount, 0n), vouchers };
}

/** Locks the selected vouchers, and returns their unclaimed amounts. @throws Refusal `51` */
async function lockUnclaimed(
  { buckets, db }: Service,
  tx: Queries,
  { currency, of }: Wanted,
  account: bigint,
): Promise<Expiry[]> {
  const serials =
    'serialNumbers' in of ? of.serialNumbers : await findUnclaimed(db, currency, of.expiredBefore);
  const expiries: Expiry[] = [];
  for (const bucket of buckets.all) {
    const own = serials.filter((serial) => buckets.ofSerial(serial) === bucket);
    if (own.length > 0) expiries.push(...(await lockExpiries(tx, bucket, own)));
  }
  const before = 'expiredBefore' in of ? of.expiredBefore : null;
  const left = expiries.filter(
    (each) =>
      each.account === account && each.escheatId === null && (before === null || each.expiredAt < before),
  );
  const found = new Set(left.map(({ serialNumber }) => serialNumber));
  const missing = 'serialNumbers' in of && of.serialNumbers.find((serial) => !found.has(serial));
  if (missing)
    throw new Refusal('51', {
      message: `Insufficient balance: voucher ${missing} has no unclaimed money in ${currency}`,
    });
  return left;
}

/**
 * Finds the vouchers to lock, in a transaction of its own: their amounts are read again under the locks. On
 * several shards, the service's role cannot read where the booking has written as the owner.
 */
async function findUnclaimed(db: Database, currency: string, expiredBefore: Date | null): Promise<bigint[]> {
  const wanted = { currency, expiredBefore, at: null, zone: 'UTC', countMax: VOUCHERS_MAX + 1 };
  const rows = await db.transaction(async (tx) => {
    // An escheat reads all vouchers whose money may be unclaimed, which takes longer than a request.
    await tx.query(sql`set local statement_timeout = '10min'`);
    return tx.query<{ serialNumber: bigint }>(listUnclaimed(wanted));
  });
  if (rows.length > VOUCHERS_MAX)
    throw new Refusal('30', {
      message: `Invalid request: more than ${VOUCHERS_MAX} vouchers; pay them in parts, by serial number`,
    });
  return [...new Set(rows.map(({ serialNumber }) => serialNumber))];
}

/** A list of 10,000 serial numbers is 180 kB. */
const BODY_MAX_BYTES = 256 * 1024;

export const escheat = changing({
  name: 'books.escheat',
  title: 'Hand over unclaimed money',
  summary: 'Book the unclaimed money of expired vouchers as paid to a state; they do not get it back',
  description:
    'Names the vouchers or a day, and pays all of their unclaimed money under one movement. Without either, ' +
    'it pays all that is unclaimed, and needs the amount.',
  path: '/books/escheat',
  bodyMaxBytes: BODY_MAX_BYTES,
  input: {
    serialNumbers: Type.Optional(SerialNumbers(VOUCHERS_MAX, 'The vouchers.')),
    expiredBefore: Type.Optional(
      Type.String({ ...Day, description: 'All vouchers whose money expired before this day.' }),
    ),
    amount: Type.Optional(
      Amount('What was paid, in major units: another sum of the vouchers is refused. Left out: any sum.'),
    ),
    currency: Type.Optional(Currency),
    reference: Reference,
  },
  output: Type.Object({
    ...BookedAmount.properties,
    amount: Money(sumOf('vouchers.amount')),
    vouchers: Type.Array(EscheatedVoucher),
  }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book {amount} of the unclaimed money of vouchers as paid to a state; amounts: {expiries}',
    of(asked) {
      const { amount, expiries } = changeIn(asked).after;
      const { reference, expiredBefore } = asked.input;
      return { amount, expiries, expiredBefore, reference, link: '/books' };
    },
  },
  async run(caller, { serialNumbers, expiredBefore: day, amount, currency: given, reference }) {
    const currency = await currencyOf(caller, given);
    if (serialNumbers !== undefined && day !== undefined)
      throw invalid('expiredBefore', 'dependent', 'and `serialNumbers`: name one of them');
    if (serialNumbers === undefined && day === undefined && amount === undefined)
      throw invalid('amount', 'required', 'is required to pay all that is unclaimed');
    const expiredBefore = day === undefined ? null : await toStart(caller, day, 'expiredBefore');
    const booked = await escheatUnclaimed(caller, {
      ...{ currency, reference },
      of: serialNumbers ? { serialNumbers: serialNumbers.map(BigInt) } : { expiredBefore },
      amountMinor: amount === undefined ? undefined : minorOf(amount, currency, 'amount'),
    });
    return { currency, ...booked };
  },
});

export const OPERATIONS = tableOf(escheat);
