import type { Context } from '../context.ts';
import { AGAIN, gather } from '../db/gather.ts';
import { plainArray } from '../db/sql.ts';
import { permit } from '../merchants/permit.ts';
import type { Money } from '../money.ts';
import type { RefusalCode } from '../refusal.ts';
import type { CodeAndPin } from '../secrets.ts';
import { BALANCE } from './balance.queries.ts';
import { refuseVoucher } from './refuse.ts';

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
    readonly timestamp: Date;
    /** The caller's own; null where it gave none, and "" for a transaction of another merchant. */
    readonly reference: string | null;
  }[];
};

type Request = { readonly context: Context; readonly codeKey: string; readonly pinKey: string };

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

const balanceGathered = gather<Request, VoucherBalance | RefusalCode>({
  keysOf: ({ codeKey }) => [codeKey],
  async run(db, requests) {
    const rows = await db.hot<Row>(BALANCE, [
      plainArray(requests.map(({ context }) => context.merchant.id)),
      plainArray(requests.map(({ codeKey }) => codeKey)),
      plainArray(requests.map(({ pinKey }) => pinKey)),
      requests[requests.length - 1]?.context.now,
    ]);
    const answers: (VoucherBalance | RefusalCode | typeof AGAIN)[] = new Array(requests.length).fill(AGAIN);
    for (const row of rows) {
      if (row.outcome === 'ok') answers[row.ord - 1] = toBalance(row);
      else if (row.outcome !== 'again') answers[row.ord - 1] = row.outcome;
    }
    return answers;
  },
});

function toBalance(row: Row): VoucherBalance {
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
      timestamp: new Date(at),
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
  const { db, keys } = context.service;
  const answer = await balanceGathered(db, { context, codeKey: keys.codeKey(code), pinKey: keys.pinKey(code, pin) });
  return typeof answer === 'string' ? refuseVoucher(context, answer) : answer;
}
