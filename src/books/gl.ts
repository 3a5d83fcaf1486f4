import Type, { type Static, type TObject } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { AccountWord } from '../ledger/kinds.ts';
import { listingAll } from '../listing.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { ProductCode, requireProduct } from '../products/products.ts';
import { MerchantId, Nullable, NullableText, Positional, Text } from '../schema.ts';
import type { Account, ClosedDay, Movement } from './export.rows.ts';

/**
 * The general ledger (R12): movements on the account numbers of the operator's accounting system. Each
 * movement is two lines, a debit and a credit.
 */

export type GlLine = {
  readonly date: string;
  /** The day and a number, such as `20260131-001`. */
  readonly voucherNumber: string;
  readonly account: string;
  readonly counterAccount: string;
  /** One of the two amounts is null. */
  readonly debit: bigint | null;
  readonly credit: bigint | null;
  readonly currency: string;
  readonly taxCode: string | null;
  readonly text: string;
  readonly kind: string;
  readonly closingHash: string;
};

type Mapped = { readonly account: string; readonly taxCode: string | null };

/** The account numbers of the operator's accounting system, and the codes of products by their ids. */
type GlMapping = {
  readonly numbers: ReadonlyMap<string, Mapped>;
  readonly codes: ReadonlyMap<number, string>;
};

export async function readGlMapping(db: Queries): Promise<GlMapping> {
  const products = await db.query<{ id: number; code: string }>(sql`select id, code from products`);
  const numbers = await db.query<Mapped & { key: string }>(sql`
select concat_ws(' ', account_kind, merchant_id, product_id) as key, account, tax_code as "taxCode"
from gl_accounts`);
  return {
    numbers: new Map(numbers.map(({ key, ...mapped }) => [key, mapped])),
    codes: new Map(products.map(({ id, code }) => [id, code])),
  };
}

/**
 * Returns the most specific number of an account: of merchant and product, else of the merchant, the product,
 * or the kind.
 */
function findNumber({ numbers }: GlMapping, { kind, merchantId, productId }: Account): Mapped | undefined {
  const keys = [`${merchantId} ${productId}`, `${merchantId} 0`, `0 ${productId}`, '0 0'];
  return keys.map((key) => numbers.get(`${kind} ${key}`)).find((mapped) => mapped !== undefined);
}

/**
 * Returns the accounts of movements that have no number, in the order of their descriptions, and a message;
 * undefined if all have one. Nothing is exported until they do.
 */
export function findUnmapped(mapping: GlMapping, movements: readonly Movement[]) {
  const missing = movements
    .flatMap(({ debit, credit }) => [debit, credit])
    .filter((account) => !findNumber(mapping, account));
  if (missing.length === 0) return undefined;
  const described = new Map(missing.map((account) => [describe(account, mapping), account]));
  const sorted = [...described].sort(([one], [other]) => (one < other ? -1 : 1));
  const names = sorted.map(([name]) => name).join('; ');
  return {
    message: `no account number for ${names}: give them one first`,
    accounts: sorted.map(([, account]) => account),
  };
}

function describe({ kind, merchantId, productId }: Account, { codes }: GlMapping): string {
  const owner = merchantId > 0 ? ` of merchant ${merchantId}` : '';
  return `${kind}${owner}${productId > 0 ? `, product ${codes.get(productId)}` : ''}`;
}

/**
 * Returns the lines of the sums of a day, with movements on the same account numbers added up. They are
 * numbered by currency and kind: a number belongs to what was booked, not to the account numbers, so a second
 * export has the same numbers after an account number was changed.
 */
export function glSums(mapping: GlMapping, day: ClosedDay, movements: readonly Movement[]): GlLine[] {
  const booked = Map.groupBy(movements, ({ currency, kind }) => `${currency} ${kind}`);
  return [...booked.values()].flatMap((own, index) => {
    const onSame = Map.groupBy(own, ({ debit, credit }) =>
      JSON.stringify([debit, credit].map((account) => findNumber(mapping, account)?.account)),
    );
    return [...onSame.values()].flatMap((same) => {
      const rows = same.reduce((sum, each) => sum + each.rows, 0);
      const amountMinor = same.reduce((sum, each) => sum + each.amountMinor, 0n);
      const last = same.at(-1) as Movement;
      return glLines(mapping, day, { ...last, amountMinor }, index + 1, `${last.kind}, ${rows} rows`);
    });
  });
}

const NUMBER_DIGITS = 3;

/**
 * Returns the two lines of a movement whose accounts have numbers. A movement within one account number has
 * none, since it changes nothing in the general ledger.
 */
export function glLines(
  mapping: GlMapping,
  { day: date, hash: closingHash }: ClosedDay,
  movement: Movement,
  ordinal: number,
  text: string,
): GlLine[] {
  const [debit, credit] = [movement.debit, movement.credit].map((each) => findNumber(mapping, each)) as [
    Mapped,
    Mapped,
  ];
  if (debit.account === credit.account) return [];
  const voucherNumber = `${date.replaceAll('-', '')}-${String(ordinal).padStart(NUMBER_DIGITS, '0')}`;
  const { amountMinor, currency, kind } = movement;
  const common = { date, voucherNumber, currency, text, kind, closingHash };
  return [
    { ...common, ...debit, counterAccount: credit.account, debit: amountMinor, credit: null },
    { ...common, ...credit, counterAccount: debit.account, debit: null, credit: amountMinor },
  ];
}

const AccountNumber = Type.String({
  pattern: '^[A-Za-z0-9 ._/-]{1,30}$',
  description: 'In your accounting system.',
  examples: ['1600'],
});

const AccountSchema = Type.Object({
  kind: AccountWord,
  merchantId: Nullable(MerchantId, { description: 'Null: any merchant.' }),
  product: Nullable(ProductCode, { description: 'Null: any product.' }),
  number: Text,
  taxCode: NullableText,
});
type NumberedAccount = Static<typeof AccountSchema>;

export const accounts = listingAll({
  name: 'books.accounts',
  summary: 'List the account numbers of your accounting system',
  path: '/books/accounts',
  item: AccountSchema,
  roles: SEE,
  rows: ({ service }) =>
    service.readDb.query(sql`
select g.account_kind as kind, nullif(g.merchant_id, 0)::text as "merchantId", p.code as product,
  g.account as number, g.tax_code as "taxCode"
from gl_accounts g left join products p on p.id = g.product_id
order by g.account_kind, g.merchant_id, g.product_id`),
});

const NewNumber = {
  kind: Positional({ ...AccountWord, description: 'The kind of account.' }),
  number: AccountNumber,
  merchantId: Type.Optional(
    Nullable(MerchantId, { description: 'The merchant whose account it is; left out: every merchant.' }),
  ),
  product: Type.Optional(
    Nullable(ProductCode, { description: 'The product whose vouchers it holds; left out: every product.' }),
  ),
  taxCode: Type.Optional(Nullable(AccountNumber)),
};

/** Sets the number of a kind of account: for one merchant, for one product, or for all. @throws Problem */
export async function setGlAccount(
  operator: Operator,
  { kind, number, merchantId: id = null, product = null, taxCode = null }: Static<TObject<typeof NewNumber>>,
): Promise<NumberedAccount> {
  const { db } = operator.service;
  const merchantId = id === null ? 0 : (await requireMerchant(operator, id, 'merchantId')).id;
  const productId = product === null ? 0 : (await requireProduct(db, product)).id;
  await db.transaction(async (tx) => {
    await tx.query(sql`
insert into gl_accounts (account_kind, merchant_id, product_id, account, tax_code)
values (${kind}, ${merchantId}, ${productId}, ${number}, ${taxCode})
on conflict (account_kind, merchant_id, product_id) do update set
  account = excluded.account, tax_code = excluded.tax_code`);
    const after = { kind, merchantId: id, product, account: number, taxCode };
    await audit(tx, operator, { action: 'books.account', subject: 'books', after });
  });
  return { kind, number, merchantId: id, product, taxCode };
}

export const account = changing({
  name: 'books.account',
  title: 'Set a number',
  summary: 'Give a kind of account its number in your accounting system, for the export `gl`',
  path: '/books/accounts',
  input: NewNumber,
  output: AccountSchema,
  roles: MONEY,
  approval: alone('It moves no money: it names the accounts of the general ledger.'),
  risk: 'step-up',
  run: setGlAccount,
});

export const OPERATIONS = tableOf(accounts, account);
