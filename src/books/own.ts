import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Operator } from '../context.ts';
import { currencyOf } from '../merchants/floats.ts';
import { merchantNamed, requireMerchant } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { Amount, Currency, MerchantId, minorOf, Reference, Word } from '../schema.ts';
import { type Booked, BookedAmount, moveOnce } from './once.ts';

/** Movements between the operator's own accounts and its bank: income, tax or goodwill. */

const INCOME = ['fees', 'breakage', 'vat'] as const;

type Transfer = {
  readonly account: (typeof INCOME)[number] | 'goodwill';
  readonly currency: string;
  readonly amountMinor: bigint;
  readonly reference: string;
};

/**
 * Takes out income or pays tax (fees, breakage or VAT → funding), or pays into goodwill (funding → goodwill):
 * OWN_TRANSFER.
 * @throws Refusal `18`, `94`; `51` if the account holds less
 */
export function transferOwn(operator: Operator, { account, ...wanted }: Transfer): Promise<Booked> {
  const own = kindOf(account);
  return moveOnce(operator, {
    ...wanted,
    ...(account === 'goodwill' ? { debit: 'FUNDING', credit: own } : { debit: own, credit: 'FUNDING' }),
    ...{ kind: 'OWN_TRANSFER', operation: 'own-transfer', merchantId: 0, ownerId: 0 },
    fingerprint: `${account} ${wanted.currency} ${wanted.amountMinor}`,
    change: { action: 'books.transfer', subject: 'books', after: { account } },
  });
}

const OPENED = ['settlement', ...INCOME] as const;

const kindOf = <Account extends Transfer['account'] | Opening['account']>(account: Account) =>
  account.toUpperCase() as Uppercase<Account>;

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
  const { account, merchantId: ownerId, isDebit, ...wanted } = opening;
  const opened = kindOf(account);
  const minor = isDebit ? -wanted.amountMinor : wanted.amountMinor;
  return moveOnce(operator, {
    ...wanted,
    ...(isDebit ? { debit: opened, credit: 'FUNDING' } : { debit: 'FUNDING', credit: opened }),
    ...{ kind: 'OPENING', operation: 'opening', merchantId: 0, ownerId },
    fingerprint: `${account} ${ownerId} ${wanted.currency} ${minor}`,
    change: {
      action: 'books.opening',
      subject: ownerId === 0 ? 'books' : `merchant ${ownerId}`,
      after: { account, amount: toSum(wanted.currency, minor) },
    },
  }).catch((error) => {
    if (!(error instanceof Refusal) || error.code !== '58') throw error;
    throw new Refusal('58', { message: 'Balances are taken over before the first day is closed' });
  });
}

export const transfer = changing({
  name: 'books.transfer',
  title: 'Book an own transfer',
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
    const amountMinor = minorOf(amount, currency, 'amount');
    const booked = await transferOwn(caller, { account, currency, amountMinor, reference });
    return { currency, amount, ...booked };
  },
});

export const opening = changing({
  name: 'books.opening',
  title: 'Take over a balance',
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
      amountMinor: minorOf(amount, currency, 'amount'),
      isDebit: debit,
      reference,
    });
    return { currency, amount, ...booked };
  },
});

export const OPERATIONS = tableOf(transfer, opening);
