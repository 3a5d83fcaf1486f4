import type { Operator } from '../context.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { toText } from '../money.ts';
import { type Booked, bookOnce } from './sweep.ts';

/**
 * Movements between the operator's own accounts and its bank: income, tax, goodwill, or unclaimed money that
 * is paid to a state.
 */

type Amount = {
  readonly currency: string;
  readonly decimals: number;
  readonly amountMinor: bigint;
  readonly reference: string;
};

export const INCOME = ['fees', 'breakage', 'vat'] as const;
export type Transfer = Amount & { readonly account: (typeof INCOME)[number] | 'goodwill' };

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
    const after = { account, currency, amount: toText({ minor: amountMinor, decimals }) };
    return { action: 'books.transfer', subject: 'books', after };
  });
}

/**
 * Books unclaimed money as paid to a state: ESCHEAT, from unclaimed to funding.
 * @throws Refusal `18`, `94`; `51` if less is unclaimed
 */
export function escheatUnclaimed(operator: Operator, amount: Amount): Promise<Booked> {
  const { currency, decimals, amountMinor, reference } = amount;
  const fingerprint = `${currency} ${amountMinor}`;
  const claim = { merchantId: 0, operation: 'escheat', reference, fingerprint } as const;
  return bookOnce(operator, claim, async ({ tx, id, now }) => {
    const debit = await getAccount(tx, 0, currency, 'UNCLAIMED');
    const credit = await getAccount(tx, 0, currency, 'FUNDING');
    await post(tx, { kind: 'ESCHEAT', id, debit, credit, amountMinor, merchantId: null, reference, now });
    const after = { currency, amount: toText({ minor: amountMinor, decimals }) };
    return { action: 'books.escheat', subject: 'books', after };
  });
}
