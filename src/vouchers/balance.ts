import type { Context } from '../context.ts';
import { AGAIN, calling, type Operation } from '../db/operation.ts';
import type { Database } from '../db/pool.ts';
import { type HotStatement, plainArray } from '../db/sql.ts';
import type { CodeAndPin, LookUp } from '../keyring/ring.ts';
import { permit } from '../merchants/merchants.ts';
import type { Money } from '../money.ts';
import type { RefusalCode } from '../refusal.ts';
import { isoFromJson } from '../time.ts';
import type { Asked } from './declines.ts';
import { lookUp } from './look-up.ts';

export type VoucherBalance = {
  readonly serialNumber: bigint;
  readonly balance: Money;
  /** The balance, or 0 if the voucher is not active, blocked, expired, canceled or replaced. */
  readonly usable: Money;
  /** The value at activation; null before it. */
  readonly value: Money | null;
  /** The transactions in force, oldest first. */
  readonly transactions: readonly {
    readonly transactionId: string;
    readonly type: 'ACTIVATION' | 'REDEMPTION';
    readonly amount: Money;
    /** ISO 8601, UTC, to the millisecond. */
    readonly timestamp: string;
    /** The caller's reference; null if it gave none, and "" for a transaction of another merchant. */
    readonly reference: string | null;
  }[];
};

/** The functions of sql/010-balance.sql. */
export const READ_BALANCES: HotStatement = {
  name: 'read-balances',
  text: 'select * from read_balances($1, $2, $3, $4, $5, $6)',
};

const READ_LONG_BALANCE: HotStatement = {
  name: 'read-long-balance',
  text: 'select * from read_long_balance($1, $2, $3, $4, $5, $6)',
};

export const CHECK_PINS: HotStatement = {
  name: 'check-pins',
  text: 'select * from check_pins($1, $2, $3, $4)',
};

/** The most entries of a history in an answer. They are the newest. */
export const HISTORY_MAX = 50;
/**
 * The rows that are read for a history. If there are fewer, the history is complete, and the rows themselves
 * show which entries are in force.
 */
const HISTORY_ROWS = 60;

type Request = LookUp & { readonly context: Context };

type Entry = readonly [
  id: string,
  kind: 'ACTIVATION' | 'IMPORT' | 'REPLACEMENT' | 'REDEMPTION' | 'REDEMPTION_REVERSAL',
  amountMinor: number,
  /** The time as PostgreSQL writes it in JSON. */
  at: string,
  reference: string | null,
  originalId: string | null,
];

type BalanceRow = {
  readonly serial_number: bigint;
  readonly decimals: number;
  readonly balance_minor: bigint;
  readonly usable_minor: bigint;
  readonly value_minor: bigint | null;
  readonly history: readonly Entry[] | null;
};

type Row = BalanceRow | RefusalCode;

/**
 * First reads all vouchers without a lock. Those that this does not return are then checked under a lock.
 * Both steps are in the same turn of a voucher: the next guess is compared only after the previous one was
 * counted, so a thousand simultaneous guesses gain nothing.
 */
const balances: Operation<Request, Row, Row> = {
  merchantOf: ({ context }) => context.merchant.id,
  keysOf: ({ codeKey }) => [codeKey],
  async run(db, requests, bucket) {
    const rows = await read(db, requests, bucket);
    const rest = requests.filter((_, index) => rows[index] === undefined);
    if (rest.length === 0) return rows as Row[];
    const checked = await check(db, rest, bucket);
    // A right PIN after wrong ones resets the count. A second read then returns the voucher.
    const right = rest.filter((_, index) => checked[index] === 'ok');
    const again = right.length > 0 ? [...(await read(db, right, bucket))] : [];
    return rows.map((row) => {
      if (row !== undefined) return row;
      const outcome = checked.shift();
      return outcome === 'ok' ? (again.shift() ?? AGAIN) : (outcome as RefusalCode);
    });
  },
  answer: (_, row) => row,
};

const read = calling<Request, BalanceRow | undefined>(
  READ_BALANCES,
  (requests) => [
    plainArray(requests.map(({ context }) => context.merchant.id)),
    ...keysOf(requests),
    HISTORY_ROWS,
    requests.at(-1)?.context.now,
  ],
  undefined,
);

async function check(
  db: Database,
  requests: readonly Request[],
  bucket: number,
): Promise<(RefusalCode | 'ok')[]> {
  const outcomes: (RefusalCode | 'ok')[] = [];
  const values = [bucket, ...keysOf(requests), requests.at(-1)?.context.now];
  const rows = await db.hot<{ ord: number; outcome: RefusalCode | 'ok' }>(CHECK_PINS, values, bucket);
  for (const { ord, outcome } of rows) outcomes[ord - 1] = outcome;
  return outcomes;
}

function keysOf(requests: readonly Request[]): [codeKeys: string, pinKeys: string] {
  return [
    plainArray(requests.map(({ codeKey }) => codeKey)),
    plainArray(requests.map(({ pinKey }) => pinKey)),
  ];
}

/**
 * Returns the balance, usable amount and history of a voucher, for a caller with its code and PIN.
 * @throws Refusal `03`, `14`, `75`, `55`; `91` under overload
 */
export function balance(context: Context, voucher: CodeAndPin): Promise<VoucherBalance> {
  permit(context, 'balance');
  return readByPin(context, voucher, { operation: 'balance', amountUnits: null, reference: null });
}

/**
 * Returns what is on a voucher once its PIN was checked, for an operation that has its own permission.
 * @throws Refusal `14`, `75`, `55`; `91` under overload
 */
export async function readByPin(
  context: Context,
  voucher: CodeAndPin,
  asked: Asked,
): Promise<VoucherBalance> {
  const { service } = context;
  return lookUp(
    context,
    voucher,
    async (keys) => {
      for (;;) {
        const row = await service.batcher.add(balances, keys.bucket, { context, ...keys });
        if (typeof row === 'string') return row;
        if ((row.history ?? []).length < HISTORY_ROWS) return toBalance(row);
        // Only the database knows which entries of a longer history are in force.
        const { bucket, codeKey, pinKey } = keys;
        const values = [bucket, context.merchant.id, codeKey, pinKey, HISTORY_MAX, context.now];
        const [long] = await service.db.hot<BalanceRow>(READ_LONG_BALANCE, values, bucket);
        // Otherwise another process has counted a wrong PIN in between, and the PIN is checked again.
        if (long) return toBalance(long);
      }
    },
    asked,
  );
}

/**
 * Returns the entries in force, oldest first, without reversals and reversed redemptions. The movements that
 * filled a replacement voucher count as one activation. A reversal may have a smaller id than its redemption:
 * ids are drawn when a request arrives, and an update may have arrived before the redemption that it waited
 * for.
 */
export function inForce(newestFirst: readonly Entry[]): Entry[] {
  const reversed = new Set<string | null>();
  for (const [, kind, , , , originalId] of newestFirst)
    if (kind === 'REDEMPTION_REVERSAL') reversed.add(originalId);
  const oldestFirst = newestFirst
    .filter(([id, kind]) => kind !== 'REDEMPTION_REVERSAL' && !reversed.has(id))
    .slice(0, HISTORY_MAX)
    .reverse();
  const [first, ...more] = oldestFirst.filter(([, kind]) => kind === 'REPLACEMENT');
  if (!first) return oldestFirst;
  const takenOver = more.reduce((sum, [, , amountMinor]) => sum + amountMinor, first[2]);
  const activation: Entry = [first[0], 'ACTIVATION', takenOver, first[3], first[4], null];
  return [activation, ...oldestFirst.filter(([, kind]) => kind !== 'REPLACEMENT')];
}

function toBalance({ decimals, value_minor: value, ...row }: BalanceRow): VoucherBalance {
  return {
    serialNumber: row.serial_number,
    balance: { minor: row.balance_minor, decimals },
    usable: { minor: row.usable_minor, decimals },
    value: value === null ? null : { minor: value, decimals },
    transactions: inForce(row.history ?? []).map(([transactionId, kind, amountMinor, at, reference]) => ({
      transactionId,
      type: kind === 'REDEMPTION' ? 'REDEMPTION' : 'ACTIVATION',
      amount: { minor: BigInt(amountMinor), decimals },
      timestamp: isoFromJson(at),
      reference,
    })),
  };
}
