import Type, { type Static, type TObject } from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit } from '../audit/audit.ts';
import type { Moved, Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import { none } from '../figure.ts';
import { createJob, type JobRuns, JobSchema } from '../jobs/jobs.ts';
import { toSum } from '../money.ts';
import {
  ABOVE_LIMIT,
  type Agreed,
  type Asked,
  type Caller,
  changing,
  MOVES_MONEY,
  reading,
  twoPeople,
} from '../operation.ts';
import { CARE, MANAGE } from '../principal.ts';
import { invalid } from '../problem.ts';
import {
  Count,
  End,
  Money,
  NullableText,
  Positional,
  SerialNumber,
  SerialNumbers,
  Text,
  Titled,
  TransactionId,
  Word,
} from '../schema.ts';
import { MANY_VOUCHERS, UNBLOCKS_OR_EXTENDS_MANY } from '../settings/limits.ts';
import { toEnd } from '../zone.ts';
import { type FoundVoucher, requireBatchId, stateAt } from './find.ts';
import { blockVoucher, cancelVoucher, extendVoucher, unblockVoucher } from './operate.ts';

/**
 * The same change of many vouchers: a list of serial numbers, a range of a batch, or a whole batch. A preview
 * shows the effect; a job then performs it.
 */

const SERIALS_MAX = 10_000;
const SHOWN_MAX = 200;

const ACTIONS = ['block', 'unblock', 'extend'] as const;
const ALL_ACTIONS = [...ACTIONS, 'cancel'] as const;
type Action = (typeof ALL_ACTIONS)[number];
/** A list of 10,000 serial numbers is 180 kB. */
const BODY_MAX_BYTES = 256 * 1024;

const NAMED = {
  serialNumbers: Type.Optional(SerialNumbers(SERIALS_MAX, 'The vouchers.')),
  batch: Type.Optional(TransactionId),
  from: Type.Optional({ ...SerialNumber, description: 'The first of a range of vouchers of one batch.' }),
  to: Type.Optional({ ...SerialNumber, description: 'The last voucher of the range.' }),
};

const what = { description: 'The operation on each voucher.', examples: ['block'] };

const CHANGE = {
  action: Positional(Word(ALL_ACTIONS, what)),
  ...NAMED,
  expiry: Type.Optional(Titled('New expiry', End('With `extend`: when they expire from now on.'))),
};

type BulkInput = Static<TObject<typeof CHANGE>>;

/**
 * Checks the fields that depend on each other, and returns the expiry; null if it does not change.
 * @throws Problem
 */
async function checkExpiry(
  caller: Caller,
  { action, serialNumbers, batch, from, to, expiry }: BulkInput,
): Promise<Date | null> {
  if ([serialNumbers, batch, from].filter((each) => each !== undefined).length !== 1)
    throw invalid('serialNumbers', 'required', 'or `batch` or `from` is required, and only one of them');
  if ((from === undefined) !== (to === undefined)) throw invalid('to', 'required', 'is required with `from`');
  if ((action === 'extend') !== (expiry !== undefined))
    throw invalid('expiry', 'dependent', action === 'extend' ? 'is required to extend' : 'belongs to extend');
  return expiry === undefined ? null : toEnd(caller, expiry, 'expiry');
}

type Selected = Pick<FoundVoucher, 'serialNumber' | 'state' | 'expiresAt' | 'activatedAt' | 'balance'>;

/** Returns the condition of a selection. @throws Problem if the batch or the range does not exist */
async function conditionOf(db: Queries, { serialNumbers, batch, from, to }: BulkInput): Promise<Sql> {
  if (serialNumbers) return sql`v.serial_number = any (${plainArray(serialNumbers)}::bigint[])`;
  if (batch) return sql`v.batch_id = ${await requireBatchId(db, batch)}`;
  const [found] = await db.query<{ batch: number; ends: number }>(sql`
select batch_id as batch, count(*)::int as ends from vouchers
where serial_number in (${from}::bigint, ${to}::bigint) group by batch_id`);
  // Between vouchers of two batches, there are vouchers of others.
  if (!found || found.ends < (from === to ? 1 : 2))
    throw invalid('to', 'range', 'must be a voucher of the same batch as `from`');
  const range = sql`v.serial_number between symmetric ${from}::bigint and ${to}::bigint`;
  return sql`v.batch_id = ${found.batch} and ${range}`;
}

/** Returns the selected vouchers. @throws Problem for a batch that is unknown or too large for a job */
async function vouchersOf({ service: { readDb, clock } }: Caller, input: BulkInput): Promise<Selected[]> {
  const selected = await conditionOf(readDb, input);
  const vouchers = await readDb.query<Selected>(sql`
select v.serial_number::text as "serialNumber", ${stateAt(clock())} as state, v.expires_at as "expiresAt",
  v.activated_at as "activatedAt", v.balance_minor as balance
from vouchers v join batches b on b.id = v.batch_id and b.status = 'COMPLETED'
where ${selected} order by v.serial_number limit ${SERIALS_MAX + 1}`);
  if (vouchers.length <= SERIALS_MAX) return vouchers;
  const rule = `has more than ${SERIALS_MAX} vouchers: name them in parts, by serialNumbers`;
  throw invalid(input.batch ? 'batch' : 'to', 'maxItems', rule);
}

async function serialsOf(caller: Caller, input: BulkInput): Promise<readonly string[]> {
  if (input.serialNumbers) return input.serialNumbers;
  return (await vouchersOf(caller, input)).map(({ serialNumber }) => serialNumber);
}

const CANCEL_OBSTACLES: Partial<Record<FoundVoucher['state'], string>> = { EXPIRED: '54', REDEEMED: '42' };

/** Returns why a voucher will be declined, or null if it will be changed. The job checks again. */
function obstacle(
  { state, expiresAt, activatedAt, balance }: Selected,
  action: Action,
  expiry: Date | null,
): string | null {
  if (state === 'CANCELED' || state === 'REPLACED') return '44';
  if (action === 'cancel') {
    const isSpent = activatedAt !== null && balance === 0n;
    return CANCEL_OBSTACLES[state] ?? (isSpent ? '42' : null);
  }
  return expiry !== null && expiry <= expiresAt ? '17' : null;
}

export const preview = reading({
  name: 'voucher.bulk-preview',
  summary: 'See what a bulk change would do, voucher by voucher; nothing is changed',
  method: 'POST',
  path: '/vouchers/bulk/preview',
  bodyMaxBytes: BODY_MAX_BYTES,
  input: CHANGE,
  output: Type.Object({
    total: Count,
    changes: { ...Count, description: 'How many vouchers will be changed.' },
    declined: Count,
    unknown: Count,
    merchants: Type.Array(Text, { description: 'Whose vouchers will be changed.' }),
    worth: Type.Array(
      Type.Object({ currency: Text, amount: Money(none('The balances of the chosen vouchers.')) }),
      {
        description: 'What they hold, with the prices of those that are not active, by currency.',
      },
    ),
    rows: Type.Array(
      Type.Object({ serialNumber: SerialNumber, state: NullableText, declined: NullableText }),
      { description: `Those that will be declined, with the status code; at most ${SHOWN_MAX}.` },
    ),
  }),
  roles: CARE,
  async run(caller, input) {
    const expiry = await checkExpiry(caller, input);
    const found = await vouchersOf(caller, input);
    const known = new Map(found.map((voucher) => [voucher.serialNumber, voucher]));
    const serials = input.serialNumbers ?? [...known.keys()];
    const rows = serials.map((serialNumber) => {
      const voucher = known.get(serialNumber);
      return {
        serialNumber,
        state: voucher?.state ?? null,
        declined: voucher ? obstacle(voucher, input.action, expiry) : '14',
      };
    });
    const declined = rows.filter((row) => row.declined !== null);
    const changed = rows.filter((row) => row.declined === null).map(({ serialNumber }) => serialNumber);
    const parts = await sumUp(caller.service.readDb, changed);
    return {
      total: rows.length,
      changes: rows.length - declined.length,
      declined: declined.length,
      unknown: rows.filter(({ state }) => state === null).length,
      merchants: merchantsOf(parts),
      worth: worthOf(parts),
      rows: declined.slice(0, SHOWN_MAX),
    };
  },
});

export const bulk = changing({
  name: 'voucher.bulk',
  title: 'Change many',
  summary: 'Block, unblock or extend up to 10,000 vouchers, as a job',
  description:
    'To unblock or extend a long list, a range or a batch needs the approval of another person; to block them ' +
    'does not.',
  path: '/vouchers/bulk',
  bodyMaxBytes: BODY_MAX_BYTES,
  input: { ...CHANGE, action: Positional(Word(ACTIONS, what)) },
  output: JobSchema,
  roles: CARE,
  approval: twoPeople({
    why: 'A mistake concerns many cards, and an extension can give money back that was booked as income.',
    when: [UNBLOCKS_OR_EXTENDS_MANY, MOVES_MONEY],
    approvers: ['owner', 'finance', 'operations'],
  }),
  agreement: {
    sentence: 'Change vouchers of {merchant} ({action}): {vouchers}, worth {worth}',
    of: (asked) => ofMany(asked, asked.input),
  },
  risk: 'step-up',
  status: 202,
  run: (caller, input) => start(caller, 'voucher.bulk', input),
});

export const bulkCancel = changing({
  name: 'voucher.bulk-cancel',
  title: 'Cancel many',
  summary: 'Cancel up to 10,000 vouchers for good, as a job; their balances go back to floats',
  description:
    'A long list, a range, a batch, and a sum above the limit need the approval of another person.',
  path: '/vouchers/bulk/cancel',
  bodyMaxBytes: BODY_MAX_BYTES,
  input: NAMED,
  output: JobSchema,
  roles: MANAGE,
  approval: twoPeople({ why: 'It cannot be undone, and moves money.', when: [MANY_VOUCHERS, ABOVE_LIMIT] }),
  agreement: {
    sentence: 'Cancel vouchers of {merchant} for good: {vouchers}, worth {worth}',
    of: (asked) => ofMany(asked, { ...asked.input, action: 'cancel' }),
  },
  risk: 'step-up',
  status: 202,
  run: (caller, input) => start(caller, 'voucher.bulk-cancel', { ...input, action: 'cancel' }),
});

type Worth = {
  readonly merchantId: string;
  readonly merchant: string;
  readonly currency: string;
  /** What canceling them gives back: balances, and the prices held for those that are not active. */
  readonly held: bigint;
  /** The prices of those that are not active which floats got back. */
  readonly released: bigint;
};

/** Sums up the vouchers of a selection that are not closed, batch by batch. */
function sumUp(db: Queries, serials: readonly string[]): Promise<Worth[]> {
  return db.query<Worth>(sql`
select b.merchant_id::text as "merchantId", m.name as merchant, b.currency,
  (sum(v.balance_minor)
    + coalesce(sum(b.value_minor) filter (where v.activated_at is null and v.payer_id is not null), 0)
  )::bigint as held,
  coalesce(sum(b.value_minor) filter (where v.activated_at is null and v.payer_id is null), 0)::bigint
    as released
from vouchers v join batches b on b.id = v.batch_id join merchants m on m.id = b.merchant_id
where v.serial_number = any (${plainArray(serials)}::bigint[]) and v.closed is null
group by b.id, m.id order by b.id`);
}

/**
 * Returns the money that a change of these vouchers moves. It counts when the job is ordered, so that one
 * person does not order several jobs at once.
 */
async function movedBy(tx: Queries, action: Action, serials: readonly string[]): Promise<Moved[]> {
  if (action === 'block' || action === 'unblock') return [];
  const moved = (await sumUp(tx, serials)).map(({ merchantId, currency, held, released }) => {
    const minor = action === 'cancel' ? held : released;
    return { currency, minor, subjects: [`merchant ${merchantId}`] };
  });
  if (action === 'cancel') return moved.filter(({ minor }) => minor > 0n);
  // Expired amounts that were not given back.
  const expired = await tx.query<{ currency: string; minor: bigint }>(sql`
select b.currency, sum(j.amount_minor)::bigint as minor
from vouchers v join batches b on b.id = v.batch_id
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'EXPIRY'
where v.serial_number = any (${plainArray(serials)}::bigint[]) and v.closed is null
  and not exists (
    select from journal r where r.bucket = j.bucket and r.serial_number = j.serial_number
      and r.kind = 'REINSTATEMENT' and r.original_id = j.id
  )
group by b.currency`);
  return [...moved, ...expired.map((each) => ({ ...each, subjects: [] }))].filter(({ minor }) => minor > 0n);
}

const merchantsOf = (parts: readonly Worth[]) => [...new Set(parts.map(({ merchant }) => merchant))];

/** Returns what vouchers hold, in each currency. */
const worthOf = (parts: readonly Worth[]) =>
  [...Map.groupBy(parts, ({ currency }) => currency)].map(([currency, own]) => ({
    currency,
    amount: own.reduce((sum, { held }) => sum + held, 0n),
  }));

/** Returns whose vouchers a change concerns, how many, and what they hold. */
async function ofMany({ caller, made }: Asked<unknown>, input: BulkInput): Promise<Agreed> {
  const serials = await serialsOf(caller, input);
  const parts = await sumUp(caller.service.db, serials);
  const worth = worthOf(parts).map(({ currency, amount }) => toSum(currency, amount));
  const link = input.batch ? `/batches/${input.batch}` : `/vouchers/${serials[0]}`;
  const expiry = changeIn({ made }).after['expiry'] ?? undefined;
  return {
    action: input.action,
    vouchers: serials.length,
    merchant: merchantsOf(parts),
    worth,
    expiry,
    link,
  };
}

/** Creates the job. */
async function start(caller: Caller, operation: string, input: BulkInput) {
  const expiry = await checkExpiry(caller, input);
  const serials = await serialsOf(caller, input);
  const { action, batch = null, from = null, to = null } = input;
  return caller.service.db.transaction(async (tx) => {
    const moved = await movedBy(tx, action, serials);
    const wanted = { action, expiry: expiry?.toISOString() ?? null };
    const job = await createJob(tx, caller, operation, wanted, serials);
    const after = { action, batch, from, to, expiry, vouchers: serials.length };
    await audit(tx, caller, { action: operation, subject: `job ${job.id}`, after, moved });
    return job;
  });
}

async function changeOne(
  operator: Operator,
  { action, expiry }: { action: Action; expiry: string | null },
  serial: string,
): Promise<void> {
  const serialNumber = BigInt(serial);
  if (action === 'cancel') await cancelVoucher(operator, serialNumber);
  else if (action === 'block') await blockVoucher(operator, serialNumber);
  else if (action === 'unblock') await unblockVoucher(operator, serialNumber);
  else await extendVoucher(operator, serialNumber, new Date(expiry as string));
}

export const BULK_RUNS: JobRuns = {
  'voucher.bulk': { row: changeOne },
  'voucher.bulk-cancel': { row: changeOne },
};
