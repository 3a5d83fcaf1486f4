import type { Operator } from '../context.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { toSum } from '../money.ts';
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
