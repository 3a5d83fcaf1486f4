import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Operator } from '../context.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { merchantNamed, requireMerchant } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { changing, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { invalid } from '../problem.ts';
import { currencyOf } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import {
  Amount,
  Currency,
  Major,
  MerchantId,
  minorOf,
  Reference,
  requireDecimals,
  Text,
  TransactionId,
  Word,
} from '../schema.ts';
import { type Booked, bookOnce } from './sweep.ts';

/** Movements between the operator's own accounts and its bank: income, tax or goodwill. */

const INCOME = ['fees', 'breakage', 'vat'] as const;

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

const OPENED = ['settlement', ...INCOME] as const;

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

export const BookedAmount = Type.Object({
  currency: Text,
  amount: Major(),
  transactionId: TransactionId,
  replayed: Type.Boolean(),
});

export const transfer = changing({
  name: 'books.transfer',
  summary: 'Book income that you took out, tax that you paid, or money for goodwill',
  path: '/books/transfer',
  input: {
    account: Word([...INCOME, 'goodwill'] as const, {
      positional: true,
      description: 'The account of the operator.',
    }),
    amount: Amount('In major units.'),
    currency: Type.Optional(Currency),
    reference: Reference,
  },
  output: BookedAmount,
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book {amount} between the bank and your account {account}',
    of: (asked) => ({
      ...{ account: asked.input.account, amount: changeIn(asked).after['amount'] },
      ...{ reference: asked.input.reference, link: '/books' },
    }),
  },
  async run(caller, { account, amount, currency: given, reference }) {
    const currency = await currencyOf(caller, given);
    const decimals = requireDecimals(currency);
    const amountMinor = minorOf(amount, currency, 'amount');
    const booked = await transferOwn(caller, { account, currency, decimals, amountMinor, reference });
    return { currency, amount, ...booked };
  },
});

export const opening = changing({
  name: 'books.opening',
  summary: 'Take over a balance that another system leaves behind, before the first day is closed',
  description: 'Openings of an account add up. Floats are opened by a top-up, and vouchers by an import.',
  path: '/books/opening',
  input: {
    account: Word(OPENED, {
      positional: true,
      description: '`settlement`: what the operator owes a merchant.',
    }),
    merchantId: Type.Optional(Type.String({ ...MerchantId, description: 'The merchant of `settlement`.' })),
    amount: Amount('In major units.'),
    debit: Type.Optional(
      Type.Boolean({ description: 'Subtracts: the merchant owes the amount, or too much was opened.' }),
    ),
    currency: Type.Optional(Currency),
    reference: Reference,
  },
  output: BookedAmount,
  roles: MONEY,
  approval: twoPeople({ why: 'It gives money to a merchant or to the operator.' }),
  agreement: {
    sentence: 'Take over {amount} into the account {account} of {merchant}',
    async of(asked) {
      const { account, merchantId, reference } = asked.input;
      const merchant = await merchantNamed(asked, merchantId);
      const link = merchantId === undefined ? '/books' : `/merchants/${merchantId}`;
      return { account, merchant, amount: changeIn(asked).after['amount'], reference, link };
    },
  },
  async run(caller, { account, merchantId, amount, debit = false, currency: given, reference }) {
    if ((account === 'settlement') !== (merchantId !== undefined))
      throw invalid('merchantId', 'dependent', 'belongs to settlement, which needs it');
    const currency = await currencyOf(caller, given);
    const booked = await openBalance(caller, {
      account,
      merchantId: merchantId === undefined ? 0 : (await requireMerchant(caller, merchantId, 'merchantId')).id,
      currency,
      decimals: requireDecimals(currency),
      amountMinor: minorOf(amount, currency, 'amount'),
      isDebit: debit,
      reference,
    });
    return { currency, amount, ...booked };
  },
});
