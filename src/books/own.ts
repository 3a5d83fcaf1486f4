import type { Operator } from '../context.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { type Booked, bookOnce } from './sweep.ts';

/** Movements between the operator's own accounts and its bank: income, tax or goodwill. */

export const INCOME = ['fees', 'breakage', 'vat'] as const;

export type Transfer = {
  readonly account: (typeof INCOME)[number] | 'goodwill';
  readonly currency: string;
  readonly decimals: number;
  readonly amountMinor: bigint;
  readonly reference: string;
};

/**
 * Takes out income or pays tax (fees, breakage or VAT → funding), or pays into goodwill (funding → goodwill):
 * OWN_TRANSFER.
 * @throws Refusal `18`, `94`; `51` if the account holds less
 */
export function transferOwn(operator: Operator, transfer: Transfer): Promise<Booked> {
  const { account, currency, decimals, amountMinor, reference } = transfer;
  const fingerprint = `${account} ${currency} ${amountMinor}`;
  const claim = { merchantId: 0, operation: 'own-transfer', reference, fingerprint } as const;
  return bookOnce(operator, claim, async ({ tx, id, now }) => {
    const funding = await getAccount(tx, 0, currency, 'FUNDING');
    const own = await getAccount(tx, 0, currency, account.toUpperCase() as 'FEES' | 'GOODWILL');
    const [debit, credit] = account === 'goodwill' ? [funding, own] : [own, funding];
    await post(tx, {
      kind: 'OWN_TRANSFER',
      id,
      debit,
      credit,
      amountMinor,
      merchantId: null,
      reference,
      now,
    });
    const after = { account, amount: toSum(currency, { minor: amountMinor, decimals }) };
    const moved = [{ currency, minor: amountMinor }];
    return { action: 'books.transfer', subject: 'books', after, moved };
  });
}

export const OPENED = ['settlement', ...INCOME] as const;

export type Opening = Omit<Transfer, 'account'> & {
  readonly account: (typeof OPENED)[number];
  /** The owner of a settlement account; 0 for the operator's accounts. */
  readonly merchantId: number;
  /** Subtracts the amount: the merchant owes it, or too much was opened. */
  readonly isDebit: boolean;
};

/**
 * Takes over a balance that another system leaves behind: OPENING, from funding or back. Openings add up.
 * @throws Refusal `18`, `94`; `51` if the account would be negative, which only a settlement account may;
 *   `58` once a day is closed
 */
export function openBalance(operator: Operator, opening: Opening): Promise<Booked> {
  const { account, merchantId, currency, decimals, amountMinor, isDebit, reference } = opening;
  const fingerprint = `${account} ${merchantId} ${currency} ${isDebit ? -amountMinor : amountMinor}`;
  const claim = { merchantId: 0, operation: 'opening', reference, fingerprint } as const;
  return bookOnce(operator, claim, async ({ tx, id, now }) => {
    const funding = await getAccount(tx, 0, currency, 'FUNDING');
    const kind = account.toUpperCase() as Uppercase<typeof account>;
    const opened = await getAccount(tx, merchantId, currency, kind);
    const [debit, credit] = isDebit ? [opened, funding] : [funding, opened];
    const movement = { kind: 'OPENING', id, debit, credit, amountMinor, reference, now } as const;
    await post(tx, { ...movement, merchantId: merchantId || null }).catch((error) => {
      if (!(error instanceof Refusal) || error.code !== '58') throw error;
      throw new Refusal('58', { message: 'Balances are taken over before the first day is closed' });
    });
    const minor = isDebit ? -amountMinor : amountMinor;
    const amount = toSum(currency, { minor, decimals });
    const subject = merchantId === 0 ? 'books' : `merchant ${merchantId}`;
    const moved = [{ currency, minor: amountMinor }];
    return { action: 'books.opening', subject, after: { account, amount }, moved };
  });
}
