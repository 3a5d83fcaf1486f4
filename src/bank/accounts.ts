import Type, { type Static, type TObject } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { SETTING } from '../figure.ts';
import { listingAll } from '../listing.ts';
import { toSum } from '../money.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid, requireRow } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import {
  AMOUNT_MAX,
  Currency,
  checkDay,
  Day,
  Line,
  Money,
  minorOf,
  Nullable,
  Positional,
  requireDecimals,
  Text,
  Titled,
} from '../schema.ts';
import { requireOpen, today } from '../zone.ts';
import { accountNumber, isIban, looksLikeIban, maskedAccount } from './iban.ts';

/** The operator's bank accounts, and the operator's own money in them, which the books do not contain. */

export const BankName = Line(100, 'The bank account, as you name it.', 'House bank');

const AccountSchema = Type.Object({
  name: Text,
  currency: Text,
  iban: Nullable(Text, { description: 'Its ends; null: not known until a statement names it.' }),
  own: Titled('Own money', Money(SETTING)),
  from: Nullable(Day, { description: 'The first day of this own money; null: the beginning.' }),
});

/** A bank account with its whole number. The own money is in minor units. */
export type BankAccount = Static<typeof AccountSchema>;

/** Returns an account as every door shows it. */
const masked = (account: BankAccount): BankAccount => ({
  ...account,
  iban: account.iban && maskedAccount(account.iban),
});

const accountsOn = (day: string): Sql => sql`
select a.name, a.currency, a.number as iban, coalesce(o.own_minor, 0)::bigint as own,
  nullif(o.valid_from, '-infinity')::text as "from"
from bank_accounts a
left join lateral (
  select * from bank_own where account = a.name and valid_from <= ${day}::date
  order by valid_from desc limit 1
) o on true`;

async function accountOn(db: Queries, name: string, day: string): Promise<BankAccount> {
  return requireRow(db, sql`${accountsOn(day)} where a.name = ${name}`, 'such bank account; make it first');
}

/** Returns a bank account as it is today. @throws Problem if there is no such account */
export async function getBankAccount({ service }: Operator, name: string): Promise<BankAccount> {
  return accountOn(service.db, name, await today(service));
}

async function lockAccount(tx: Queries, name: string): Promise<void> {
  await tx.query(sql`select name from bank_accounts where name = ${name} for update`);
}

async function setNumber(tx: Queries, name: string, number: string): Promise<void> {
  await tx.query(sql`update bank_accounts set number = ${number} where name = ${name}`);
}

const detailsOf = ({ currency, iban, own, from }: BankAccount) => ({
  currency,
  number: iban && maskedAccount(iban),
  own: toSum(currency, own),
  from,
});

/**
 * Remembers the number of an account that a statement names, if none is known yet.
 * @throws Refusal `94` if another statement has named another number meanwhile
 */
export async function rememberNumber(tx: Queries, name: string, number: string): Promise<void> {
  await lockAccount(tx, name);
  const { iban } = await accountOn(tx, name, '9999-12-31');
  if (iban && iban !== number) throw new Refusal('94', { message: `the account is ${iban} meanwhile` });
  await setNumber(tx, name, number);
}

const list = listingAll({
  name: 'bank.accounts',
  summary: 'List your bank accounts',
  path: '/bank/accounts',
  item: AccountSchema,
  roles: SEE,
  async rows({ service }) {
    const accounts = sql`${accountsOn(await today(service))} order by a.currency, a.name limit 1000`;
    return (await service.readDb.query<BankAccount>(accounts)).map(masked);
  },
});

const Iban = Type.String({
  pattern: '^ *[A-Za-z0-9./-]( *[A-Za-z0-9./-]){0,33} *$',
  maxLength: 50,
  description:
    'Its IBAN, or another number, as the statements state it; left out: that of the first statement.',
  examples: ['DE89370400440532013000'],
});

const NewAccount = {
  name: Positional(BankName),
  currency: Currency,
  iban: Type.Optional(Iban),
  own: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: AMOUNT_MAX,
      description: 'Your own money in it, which is not in the books.',
    }),
  ),
  from: Type.Optional(
    Type.String({ ...Day, description: 'The first day of the own money; left out: today.' }),
  ),
};

/**
 * Makes a bank account, or changes its number or how much of its money is the operator's own, from a day on.
 * The own money of a new account may begin on any day, by default at the beginning: nothing was reported of
 * the account before.
 * @returns the account with what was set
 * @throws Problem; Refusal `94` for another currency; `17` if the day is closed
 */
export async function setBankAccount(
  operator: Operator,
  { name, currency, iban, own: amount, from: given }: Static<TObject<typeof NewAccount>>,
): Promise<BankAccount> {
  const { service } = operator;
  checkDay(given, 'from');
  if (given !== undefined && amount === undefined)
    throw invalid('from', 'dependent', 'is the first day of `own`, which is missing');
  const number = iban && accountNumber(iban);
  if (number && looksLikeIban(number) && !isIban(number))
    throw invalid('iban', 'iban', 'is not an IBAN: its check digits are wrong');
  const decimals = requireDecimals(currency);
  const own = amount ? minorOf(amount, currency, 'own') : amount === 0 ? 0n : undefined;
  const day = await today(service);
  return service.db.transaction(async (tx) => {
    const [made] = await tx.query(sql`
insert into bank_accounts (name, currency, decimals) values (${name}, ${currency}, ${decimals})
on conflict do nothing returning name`);
    await lockAccount(tx, name);
    const before = await accountOn(tx, name, day);
    if (before.currency !== currency)
      throw new Refusal('94', { message: `the account is in ${before.currency}` });
    if (number !== undefined) await setNumber(tx, name, number);
    const from = given ?? (made ? null : day);
    if (own !== undefined) {
      if (!made) await requireOpen(tx, from ?? day, 'changes of own money');
      await tx.query(sql`
insert into bank_own (account, valid_from, own_minor)
values (${name}, coalesce(${from}::date, '-infinity'), ${own})
on conflict (account, valid_from) do update set own_minor = excluded.own_minor`);
    }
    const after = await accountOn(tx, name, given ?? day);
    const was = made ? undefined : detailsOf(before);
    const subject = `bank account ${name}`;
    await audit(tx, operator, { action: 'bank.account', subject, before: was, after: detailsOf(after) });
    return masked(after);
  });
}

const set = changing({
  name: 'bank.account',
  title: 'Add account',
  summary: 'Name one of your bank accounts, or change its number or the amount of your own money in it',
  description:
    'Statements of another account are refused. The own money of a new account counts from the beginning, a ' +
    'change of it from a day that is not closed.',
  path: '/bank/accounts',
  input: NewAccount,
  output: AccountSchema,
  roles: MONEY,
  approval: alone('It moves no money: it names the accounts of the operator whose statements are imported.'),
  run: setBankAccount,
});

export const accounts = { list, set };

export const OPERATIONS = tableOf(...Object.values(accounts));
