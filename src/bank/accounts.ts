import { audit } from '../audit/audit.ts';
import { requireOpen } from '../books/days.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { today } from '../ledger/zone.ts';
import { toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import {
  type AccountRow,
  findBankAccount,
  insertBankAccount,
  lockBankAccount,
  setNumber,
  upsertMapping,
  upsertOwn,
} from './account.queries.ts';
import type { Mapping } from './csv.ts';
import { accountNumber, maskedAccount } from './iban.ts';

/** The operator's bank accounts, and how their files are read. */

/** Returns a bank account as it is today. @throws Refusal `60` */
export async function getBankAccount({ service }: Operator, name: string): Promise<AccountRow> {
  const [account] = await service.db.query<AccountRow>(findBankAccount(name, await today(service)));
  if (!account)
    throw new Refusal('60', { message: 'Not found: there is no such bank account; make it first' });
  return account;
}

type Wanted = {
  readonly name: string;
  readonly currency: string;
  readonly decimals: number;
  /** The IBAN or another number; undefined: unchanged. */
  readonly number?: string | undefined;
  /** The operator's own money in the account; undefined: unchanged. */
  readonly ownMinor?: bigint | undefined;
  /** The first day of the own money; undefined: the beginning for a new account, else today. */
  readonly from?: string | undefined;
};

/**
 * Makes a bank account, or changes its number or how much of its money is the operator's own, from a day on.
 * The own money of a new account may begin on any day: nothing was reported of the account before.
 * @returns the account with what was set
 * @throws Refusal `94` for another currency; `17` if the day is closed
 */
export async function setBankAccount(operator: Operator, wanted: Wanted): Promise<AccountRow> {
  const { service } = operator;
  const { name, currency, decimals, ownMinor } = wanted;
  const day = await today(service);
  return service.db.transaction(async (tx) => {
    const [made] = await tx.query(insertBankAccount(name, currency, decimals));
    await tx.query(lockBankAccount(name));
    const [before] = await tx.query<AccountRow>(findBankAccount(name, day));
    if (before?.currency !== currency)
      throw new Refusal('94', { message: `the account is in ${before?.currency}` });
    if (wanted.number !== undefined) await tx.query(setNumber(name, accountNumber(wanted.number)));
    const from = wanted.from ?? (made ? null : day);
    if (ownMinor !== undefined) {
      if (!made) await requireOpen(tx, from ?? day, 'changes of own money');
      await tx.query(upsertOwn(name, from, ownMinor));
    }
    const [after] = await tx.query<AccountRow>(findBankAccount(name, wanted.from ?? day));
    if (!after) throw new Error(`the bank account ${name} is gone`);
    const was = made ? undefined : detailsOf(before);
    const subject = `bank account ${name}`;
    await audit(tx, operator, { action: 'bank.account', subject, before: was, after: detailsOf(after) });
    return after;
  });
}

const detailsOf = ({ currency, decimals, number, own_minor: minor, own_from: from }: AccountRow) => ({
  currency,
  number: number === null ? null : maskedAccount(number),
  own: toSum(currency, { minor, decimals }),
  from,
});

/**
 * Remembers the number of an account that a statement names, if none is known yet.
 * @throws Refusal `94` if another statement has named another number meanwhile
 */
export async function rememberNumber(tx: Queries, name: string, number: string): Promise<void> {
  await tx.query(lockBankAccount(name));
  const [account] = await tx.query<AccountRow>(findBankAccount(name, '9999-12-31'));
  if (account?.number && account.number !== number)
    throw new Refusal('94', { message: `the account is ${account.number} meanwhile` });
  await tx.query(setNumber(name, number));
}

/** Saves how the columns of a bank's CSV are read. */
export async function saveMapping(operator: Operator, name: string, mapping: Mapping): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(upsertMapping(name, JSON.stringify(mapping)));
    const columns = Object.entries(mapping).map(([field, column]) => `${field}: ${column}`);
    await audit(tx, operator, {
      action: 'bank.mapping',
      subject: `bank mapping ${name}`,
      after: { columns },
    });
  });
}
