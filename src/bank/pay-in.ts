import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { listingAll } from '../listing.ts';
import { changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { Currency, Nullable, NullableText, requireDecimals, Text } from '../schema.ts';
import { readLetterhead } from '../settings/letterhead.ts';
import { changeSetting, readSetting } from '../settings/settings.ts';
import { requireIban } from './iban.ts';

/** The accounts to which merchants transfer money for their floats, one for each currency. */

const NAME = 'pay-in';

const AccountSchema = Type.Object({
  currency: Text,
  iban: Text,
  holder: Nullable(Text, {
    title: 'Account holder',
    description: 'The name of the operator, from its letterhead.',
  }),
});
type Account = Static<typeof AccountSchema>;

type Ibans = Readonly<Record<string, string>>;

async function listAccounts(db: Queries): Promise<Account[]> {
  const { sender: holder } = await readLetterhead(db);
  const ibans = Object.entries(await readSetting<Ibans>(db, NAME, {})).sort(([one], [other]) =>
    one < other ? -1 : 1,
  );
  return ibans.map(([currency, iban]) => ({ currency, iban, holder }));
}

const list = listingAll({
  name: 'bank.pay-in',
  summary: 'List the accounts to which merchants transfer money for their floats',
  path: '/bank/pay-in',
  item: AccountSchema,
  roles: SEE,
  rows: ({ service: { readDb } }) => listAccounts(readDb),
});

const set = changing({
  name: 'bank.set-pay-in',
  title: 'Set the account for pay-ins',
  summary: 'Set the account to which merchants transfer money for their floats in a currency',
  path: '/bank/pay-in/:currency',
  input: {
    currency: Currency,
    iban: Nullable(
      Type.String({
        pattern: '^ *[A-Za-z]{2} *[0-9]( *[A-Za-z0-9]){12,32} *$',
        maxLength: 50,
        examples: ['DE89370400440532013000'],
      }),
      { description: 'Its IBAN; null: the portal names none.' },
    ),
  },
  output: Type.Object({ currency: Text, iban: NullableText }),
  roles: MONEY,
  approval: twoPeople({ why: 'Merchants transfer their money to it.' }),
  agreement: {
    sentence: 'Let merchants transfer {currency} to {account} instead of {accountBefore}',
    of(asked) {
      const { before, after } = changeIn(asked);
      return {
        ...{ currency: asked.input.currency, account: after['iban'] ?? '–' },
        ...{ accountBefore: before['iban'] ?? '–', link: '/settings' },
      };
    },
  },
  async run(caller, { currency, iban }) {
    requireDecimals(currency);
    const number = iban === null ? null : requireIban(iban, 'iban');
    await setPayIn(caller, currency, number);
    return { currency, iban: number };
  },
});

/** Sets the account for a currency. @param iban null: none */
export async function setPayIn(operator: Operator, currency: string, iban: string | null): Promise<void> {
  await changeSetting<Ibans>(operator, NAME, {}, ({ [currency]: old = null, ...others }) => ({
    value: iban === null ? others : { ...others, [currency]: iban },
    audited: { action: 'bank.set-pay-in', before: { currency, iban: old }, after: { currency, iban } },
  }));
}

export const payIn = { list, set };

export const OPERATIONS = tableOf(...Object.values(payIn));
