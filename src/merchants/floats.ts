import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit, type Change } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { balance } from '../figure.ts';
import { checkReference, claimIn } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { accountOf, ensureAccounts } from '../ledger/journal.ts';
import { MINOR_MAX, toSum } from '../money.ts';
import { ABOVE_LIMIT, alone, type Caller, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { Problem } from '../problem.ts';
import { DEFAULT_PRODUCT, requireProduct } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import {
  Amount,
  Currency,
  Major,
  MerchantId,
  Money,
  minorOf,
  Nullable,
  Reference,
  requireDecimals,
  Text,
  Titled,
} from '../schema.ts';
import { type Float, listFloats, ofMerchant, requireMerchant } from './merchants.ts';

/**
 * Returns the currency of an operation: by default that of a product.
 * @param product the default product of the merchant concerned, in whose currency it generates vouchers
 */
export async function currencyOf(
  caller: Caller,
  given: string | undefined,
  product = DEFAULT_PRODUCT,
): Promise<string> {
  const currency = given ?? (await requireProduct(caller.service.db, product)).currency;
  requireDecimals(currency);
  return currency;
}

export const FloatCurrency = Type.Optional(
  Type.String({
    ...Currency,
    description: "A code of ISO 4217; left out: the currency of the merchant's default product.",
  }),
);

type TopUp = {
  readonly merchantId: number;
  readonly currency: string;
  /** Above zero, in minor units. */
  readonly amountMinor: bigint;
  /** The operator's reference. If the same top-up is sent again, it is booked only once. */
  readonly reference?: string | undefined;
};

type ToppedUp = { readonly float: Float; readonly transactionId: string; readonly replayed: boolean };

/**
 * Adds money to a merchant's float: the journal row and the balance in one transaction. The same top-up again
 * under its reference is a replay.
 * @throws Refusal `18`; `94` if the reference was used for another top-up; `13` if the float would exceed the
 *   amounts that a JSON number represents exactly
 */
export async function topUp(operator: Operator, wanted: TopUp): Promise<ToppedUp> {
  return retrying(() =>
    operator.service.db.transaction(async (tx) => {
      const { change, ...done } = await bookTopUp(operator.service, tx, wanted);
      if (change) await audit(tx, operator, change);
      return done;
    }),
  );
}

/** Books a top-up within a transaction, and adds `change` to the audit. A replay changes nothing. */
export async function bookTopUp(
  service: Service,
  tx: Queries,
  { merchantId, currency, amountMinor, reference }: TopUp,
): Promise<ToppedUp & { readonly change?: Change }> {
  const now = service.clock();
  const id = newId(now);
  await ensureAccounts(tx, merchantId, currency);
  if (reference !== undefined) {
    checkReference(reference);
    const fingerprint = `${currency} ${amountMinor}`;
    const claim = await claimIn(tx, service, { merchantId, operation: 'top-up', reference, id, fingerprint });
    if (claim.fingerprint !== fingerprint) throw new Refusal('94');
    if (claim.id !== id) {
      const float = (await listFloats(tx, merchantId)).find((each) => each.currency === currency) as Float;
      return { float, transactionId: claim.id, replayed: true };
    }
  }
  const credit = (await accountOf(tx, merchantId, currency, 'FLOAT')) as bigint;
  const debit = (await accountOf(tx, 0, currency, 'FUNDING')) as bigint;
  const [row] = await tx.query<{ balance: bigint }>(sql`
update floats set balance_minor = balance_minor + ${amountMinor},
  topped_up_minor = balance_minor + ${amountMinor}
where account_id = ${credit} returning balance_minor as balance`);
  if (!row) throw new Error('a float that was made sure of is not there');
  const { balance } = row;
  if (balance > MINOR_MAX) throw new Refusal('13', { message: 'the float would hold too much' });
  await tx.query(sql`
select post(${id}, 'TOP_UP', ${debit}, ${credit}, ${amountMinor}, ${merchantId}, ${reference ?? null}, ${now})`);
  const sum = (minor: bigint) => toSum(currency, minor);
  const change = {
    action: 'float.top-up',
    subject: `merchant ${merchantId}`,
    before: { balance: sum(balance - amountMinor) },
    after: { balance: sum(balance), amount: sum(amountMinor), transactionId: id },
    moved: [{ currency, minor: amountMinor }],
  };
  return { float: { currency, balance }, transactionId: id, replayed: false, change };
}

/**
 * Sets the threshold of a low float.
 * @param lowMinor in minor units; null for a tenth of the float after its last top-up
 * @returns false if the merchant has no float in the currency
 */
export async function setLow(
  operator: Operator,
  merchantId: number,
  currency: string,
  lowMinor: bigint | null,
): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    const [row] = await tx.query<{ before: bigint | null }>(sql`
update floats f set low_minor = ${lowMinor}
from (
  select account_id, low_minor from floats
  where merchant_id = ${merchantId} and currency = ${currency} for update
) b
where f.account_id = b.account_id
returning b.low_minor as before`);
    if (!row) return false;
    const sumOf = (minor: bigint | null) => (minor === null ? null : toSum(currency, minor));
    await audit(tx, operator, {
      action: 'float.warn',
      subject: `merchant ${merchantId}`,
      before: { currency, below: sumOf(row.before) },
      after: { currency, below: sumOf(lowMinor) },
    });
    return true;
  });
}

const topUpFloat = changing({
  name: 'float.top-up',
  summary: 'Put money on a float',
  path: '/floats/top-up',
  input: {
    merchantId: MerchantId,
    amount: Amount('In major units.'),
    currency: FloatCurrency,
    reference: Type.Optional(Nullable(Reference, { examples: ['transfer-81'] })),
  },
  output: Type.Object({
    merchantId: MerchantId,
    currency: Text,
    balance: Money(balance({ account: 'FLOAT', merchantId: '{merchantId}' })),
    transactionId: Text,
    replayed: Type.Boolean(),
  }),
  roles: MONEY,
  approval: twoPeople({
    why: 'Money on a float can be spent at once.',
    when: [ABOVE_LIMIT],
  }),
  agreement: {
    sentence: 'Top up the float of {merchant} by {amount}: {before} → {after}',
    async of(asked) {
      const { merchantId, reference = null } = asked.input;
      const { before, after } = changeIn(asked);
      const about = await ofMerchant(asked, merchantId);
      const found = { amount: after['amount'], before: before['balance'], after: after['balance'] };
      return { ...about, ...found, reference: reference ?? undefined };
    },
  },
  async run(caller, { merchantId, amount, currency: given, reference }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given, product);
    const amountMinor = minorOf(amount, currency, 'amount');
    const wanted = { merchantId: id, currency, amountMinor, reference: reference ?? undefined };
    const { float, ...done } = await topUp(caller, wanted);
    return { merchantId, ...float, ...done };
  },
});

const warnFloat = changing({
  name: 'float.warn',
  title: 'Set the threshold',
  summary: 'Set the threshold of a low float, at which its merchant gets an event',
  path: '/floats/warn',
  input: {
    merchantId: MerchantId,
    below: Titled(
      'Warn below',
      Nullable(Amount('In major units; null: a tenth of the float after its last top-up.')),
    ),
    currency: FloatCurrency,
  },
  output: Type.Object({ merchantId: MerchantId, currency: Text, below: Nullable(Major()) }),
  roles: MONEY,
  approval: alone('It moves no money: it decides when the merchant is warned.'),
  risk: 'step-up',
  async run(caller, { merchantId, below, currency: given }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given, product);
    const lowMinor = below === null ? null : minorOf(below, currency, 'below');
    if (!(await setLow(caller, id, currency, lowMinor)))
      throw new Problem('conflict', `merchant ${merchantId} has no float in ${currency}: top it up first`);
    return { merchantId, currency, below };
  },
});

export const OPERATIONS = tableOf(topUpFloat, warnFloat);
