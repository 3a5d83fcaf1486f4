import type { Context } from '../context.ts';
import { AGAIN, gather } from '../db/gather.ts';
import type { Database } from '../db/pool.ts';
import { plainArray } from '../db/sql.ts';
import { permit } from '../merchants/permit.ts';
import type { Money } from '../money.ts';
import type { RefusalCode } from '../refusal.ts';
import type { CodeAndPin } from '../secrets.ts';
import { isoFromJson } from '../time.ts';
import { BALANCE, HISTORY, READ_BALANCE } from './balance.queries.ts';
import { lookUp } from './look-up.ts';

export type VoucherBalance = {
  readonly serialNumber: bigint;
  readonly balance: Money;
  /** The balance, or 0 when the voucher is not active, blocked, expired, canceled or replaced. */
  readonly usable: Money;
  /** The value at activation; null before it. */
  readonly value: Money | null;
  /** What is in force, oldest first. */
  readonly transactions: readonly {
    readonly transactionId: string;
    readonly type: 'ACTIVATION' | 'REDEMPTION';
    readonly amount: Money;
    /** ISO 8601, UTC, to the millisecond. */
    readonly timestamp: string;
    /** The caller's own; null where it gave none, and "" for a transaction of another merchant. */
    readonly reference: string | null;
  }[];
};

/** What a balance is asked for with, once the code and the PIN are keys. */
export type BalanceRequest = { readonly context: Context; readonly codeKey: string; readonly pinKey: string };

type HistoryEntry = [
  id: string,
  kind: 'ACTIVATION' | 'REDEMPTION',
  amountMinor: number,
  at: string,
  reference: string | null,
];

type Row = {
  ord: number;
  outcome: RefusalCode | 'ok' | 'again';
  serial_number: bigint;
  decimals: number;
  balance_minor: bigint;
  usable_minor: bigint;
  value_minor: bigint | null;
  history: HistoryEntry[] | null;
};

type PlainEntry = [
  id: string,
  kind: string,
  amountMinor: number,
  at: string,
  reference: string | null,
  originalId: string | null,
];

type PlainRow = Omit<Row, 'outcome' | 'history'> & { history: PlainEntry[] | null };

type Answer = VoucherBalance | RefusalCode;

/**
 * A plain read for all, and the look under the lock for those it gives nothing for. Both belong to one turn of a voucher: if
 * the read did not wait for the counting of the guess before it, a thousand guesses at once would all be looked at.
 */
const balanceGathered = gather<BalanceRequest, Answer>({
  callerOf: ({ context }) => context.merchant.id,
  keysOf: ({ codeKey }) => [codeKey],
  run: findBalances,
});

/** The balances of a list of requests, which are decided together. */
export async function findBalances(
  db: Database,
  requests: readonly BalanceRequest[],
): Promise<(Answer | typeof AGAIN)[]> {
  const answers = await read(db, requests);
  const left = requests.filter((_, index) => answers[index] === undefined);
  const looked = left.length === 0 ? [] : await lookUnderLock(db, left);
  return answers.map((answer) => answer ?? (looked.shift() as Answer | typeof AGAIN));
}

/** The same by the statement that counts what is wrong: it decides alone what becomes of each. */
export async function lookUnderLock(
  db: Database,
  requests: readonly BalanceRequest[],
): Promise<(Answer | typeof AGAIN)[]> {
  const answers: (Answer | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
  for (const row of await db.hot<Row>(BALANCE, columnsOf(requests))) {
    if (row.outcome === 'ok') answers[row.ord - 1] = toBalance(row);
    else if (row.outcome !== 'again') answers[row.ord - 1] = row.outcome;
  }
  return answers;
}

function columnsOf(requests: readonly BalanceRequest[]): unknown[] {
  return [
    plainArray(requests.map(({ context }) => context.merchant.id)),
    plainArray(requests.map(({ codeKey }) => codeKey)),
    plainArray(requests.map(({ pinKey }) => pinKey)),
    requests.at(-1)?.context.now,
  ];
}

/** What a plain read gives; undefined where something has to be counted, or is refused. */
async function read(db: Database, requests: readonly BalanceRequest[]): Promise<(Answer | undefined)[]> {
  const answers: (Answer | undefined)[] = new Array(requests.length).fill(undefined);
  for (const row of await db.hot<PlainRow>(READ_BALANCE, columnsOf(requests))) {
    const entries = row.history ?? [];
    // Of a history that was cut off, the database itself has to say what is in force.
    if (entries.length < HISTORY) answers[row.ord - 1] = toBalance({ ...row, history: inForce(entries) });
  }
  return answers;
}

/**
 * What is in force, oldest first: no reversal, and no redemption that one has reversed. A reversal can have the smaller id:
 * ids are drawn when a request comes, and an update may have come before the redemption that it waited for.
 */
export function inForce(newestFirst: readonly PlainEntry[]): HistoryEntry[] {
  const reversed = new Set<string | null>();
  for (const [, kind, , , , originalId] of newestFirst) if (kind === 'REDEMPTION_REVERSAL') reversed.add(originalId);
  const entries: HistoryEntry[] = [];
  for (const [id, kind, amountMinor, at, reference] of newestFirst) {
    if ((kind === 'ACTIVATION' || kind === 'REDEMPTION') && !reversed.has(id))
      entries.push([id, kind, amountMinor, at, reference]);
  }
  return entries.reverse();
}

function toBalance(row: Omit<Row, 'outcome'>): VoucherBalance {
  const { decimals } = row;
  return {
    serialNumber: row.serial_number,
    balance: { minor: row.balance_minor, decimals },
    usable: { minor: row.usable_minor, decimals },
    value: row.value_minor === null ? null : { minor: row.value_minor, decimals },
    transactions: (row.history ?? []).map(([transactionId, type, amountMinor, at, reference]) => ({
      transactionId,
      type,
      amount: { minor: BigInt(amountMinor), decimals },
      timestamp: isoFromJson(at),
      reference,
    })),
  };
}

/**
 * A voucher's balance, usable amount and history, for who knows code and PIN.
 * @throws Refusal `03`, `14`, `75`, `55`; `91` under overload
 */
export async function balance(context: Context, { code, pin }: CodeAndPin): Promise<VoucherBalance> {
  permit(context, 'balance');
  const { db } = context.service;
  return lookUp(context, { code, pin }, ({ codeKey, pinKey }) => balanceGathered(db, { context, codeKey, pinKey }));
}
