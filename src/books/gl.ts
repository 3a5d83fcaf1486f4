import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { AccountWord } from '../ledger/kinds.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { alone, changing, reading } from '../operation.ts';
import { Page } from '../page.ts';
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

/** The codes of products by their ids. */
type Codes = ReadonlyMap<number, string>;

/** Thrown for accounts that have no number. Nothing is exported until they have one. */
export class Unmapped extends Error {
  /** In the order of their descriptions. */
  readonly accounts: readonly Account[];

  constructor(accounts: readonly Account[], codes: Codes) {
    const described = new Map(accounts.map((account) => [describe(account, codes), account]));
    const names = [...described.keys()].sort();
    super(`no account number for ${names.join('; ')}: give them one first`);
    this.accounts = names.flatMap((name) => described.get(name) ?? []);
  }
}

/** The number of a kind of account. 0 means all merchants or all products. */
export type GlAccountRow = {
  readonly account_kind: string;
  readonly merchant_id: number;
  readonly product_id: number;
  readonly account: string;
  readonly tax_code: string | null;
};

type Mapped = { readonly account: string; readonly taxCode: string | null };

/**
 * The account numbers of the operator's accounting system, by kind of account. A number can be set for one
 * merchant, one product, or both.
 */
export class GlMapping {
  readonly #byKey: ReadonlyMap<string, Mapped>;
  readonly codes: Codes;

  constructor(rows: readonly GlAccountRow[], codes: Codes) {
    this.codes = codes;
    this.#byKey = new Map(
      rows.map((row) => [
        `${row.account_kind} ${row.merchant_id} ${row.product_id}`,
        { account: row.account, taxCode: row.tax_code },
      ]),
    );
  }

  /**
   * Returns the most specific number: of merchant and product, else of the merchant, the product, or the
   * kind.
   */
  find({ kind, merchantId, productId }: Account): Mapped | undefined {
    const keys = [`${merchantId} ${productId}`, `${merchantId} 0`, `0 ${productId}`, '0 0'];
    for (const key of keys) {
      const mapped = this.#byKey.get(`${kind} ${key}`);
      if (mapped) return mapped;
    }
    return undefined;
  }
}

export async function readGlMapping(db: Queries): Promise<GlMapping> {
  const products = await db.query<{ id: number; code: string }>(sql`select id, code from products`);
  const codes = new Map(products.map(({ id, code }) => [id, code]));
  const rows = await db.query<GlAccountRow>(sql`
select account_kind, merchant_id, product_id, account, tax_code from gl_accounts`);
  return new GlMapping(rows, codes);
}

/**
 * Checks that every account has a number.
 * @throws Unmapped with all accounts of these movements that have none
 */
export function checkMapped(mapping: GlMapping, movements: Iterable<Movement>): void {
  const missing = [...movements]
    .flatMap(({ debit, credit }) => [debit, credit])
    .filter((account) => !mapping.find(account));
  if (missing.length > 0) throw new Unmapped(missing, mapping.codes);
}

function describe({ kind, merchantId, productId }: Account, codes: Codes): string {
  const owner = merchantId > 0 ? ` of merchant ${merchantId}` : '';
  return `${kind}${owner}${productId > 0 ? `, product ${codes.get(productId)}` : ''}`;
}

const NUMBER_DIGITS = 3;

const keyOf = ({ currency, kind }: Movement) => `${currency} ${kind}`;

/**
 * Numbers the lines of a day. A number belongs to what was booked, not to the account numbers, so a second
 * export has the same numbers after an account number was changed. Movements within one account number are
 * left out, since they change nothing in the general ledger.
 */
export class GlDay {
  readonly #mapping: GlMapping;
  readonly #day: ClosedDay;
  /** The numbers of sums, by currency and kind. */
  readonly #numbers = new Map<string, number>();
  /** The number of the last single movement. */
  #number = 0;

  constructor(mapping: GlMapping, day: ClosedDay) {
    this.#mapping = mapping;
    this.#day = day;
  }

  /** Returns the lines of the day, with movements on the same account numbers added up. */
  sums(movements: readonly Movement[]): GlLine[] {
    const sums = new Map<string, Movement>();
    for (const movement of movements) {
      this.#numberOf(keyOf(movement));
      const { account: debit } = this.#find(movement.debit);
      const { account: credit } = this.#find(movement.credit);
      const key = JSON.stringify([movement.currency, movement.kind, debit, credit]);
      const sum = sums.get(key);
      const rows = (sum?.rows ?? 0) + movement.rows;
      sums.set(key, { ...movement, rows, amountMinor: (sum?.amountMinor ?? 0n) + movement.amountMinor });
    }
    return [...sums.values()].flatMap((movement) =>
      this.#pair(movement, `${movement.kind}, ${movement.rows} rows`, this.#numberOf(keyOf(movement))),
    );
  }

  /** Returns the two lines of a single movement. */
  lines(movement: Movement, text: string): GlLine[] {
    return this.#pair(movement, text, ++this.#number);
  }

  /** Returns the number of a sum. */
  #numberOf(key: string): number {
    const number = this.#numbers.get(key) ?? this.#numbers.size + 1;
    this.#numbers.set(key, number);
    return number;
  }

  #pair(movement: Movement, text: string, ordinal: number): GlLine[] {
    const debit = this.#find(movement.debit);
    const credit = this.#find(movement.credit);
    if (debit.account === credit.account) return [];
    const { day: date, hash: closingHash } = this.#day;
    const number = String(ordinal).padStart(NUMBER_DIGITS, '0');
    const { amountMinor, currency, kind } = movement;
    const common = {
      date,
      voucherNumber: `${date.replaceAll('-', '')}-${number}`,
      currency,
      text,
      kind,
      closingHash,
    };
    const side = (own: Mapped, other: Mapped) => ({
      account: own.account,
      counterAccount: other.account,
      taxCode: own.taxCode,
    });
    return [
      { ...common, ...side(debit, credit), debit: amountMinor, credit: null },
      { ...common, ...side(credit, debit), debit: null, credit: amountMinor },
    ];
  }

  #find(account: Account): Mapped {
    const mapped = this.#mapping.find(account);
    if (!mapped) throw new Unmapped([account], this.#mapping.codes);
    return mapped;
  }
}

/** Sets the account number of a kind of account: for one merchant, for one product, or for all (0). */
export async function setGlAccount(
  operator: Operator,
  {
    account_kind: kind,
    merchant_id: merchantId,
    product_id: productId,
    account,
    tax_code: taxCode,
  }: GlAccountRow,
): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(sql`
insert into gl_accounts (account_kind, merchant_id, product_id, account, tax_code)
values (${kind}, ${merchantId}, ${productId}, ${account}, ${taxCode})
on conflict (account_kind, merchant_id, product_id) do update set
  account = excluded.account, tax_code = excluded.tax_code`);
    const after = { kind, merchantId, productId, account, taxCode };
    await audit(tx, operator, { action: 'books.account', subject: 'books', after });
  });
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

export const accounts = reading({
  name: 'books.accounts',
  summary: 'List the account numbers of your accounting system',
  path: '/books/accounts',
  input: {},
  output: Page(AccountSchema),
  roles: SEE,
  async run({ service }) {
    const items = await service.readDb.query<Static<typeof AccountSchema>>(sql`
select g.account_kind as kind, nullif(g.merchant_id, 0)::text as "merchantId", p.code as product,
  g.account as number, g.tax_code as "taxCode"
from gl_accounts g left join products p on p.id = g.product_id
order by g.account_kind, g.merchant_id, g.product_id`);
    return { items: [...items], nextCursor: null };
  },
});

export const account = changing({
  name: 'books.account',
  title: 'Set a number',
  summary: 'Give a kind of account its number in your accounting system, for the export `gl`',
  path: '/books/accounts',
  input: {
    kind: Positional({ ...AccountWord, description: 'The kind of account.' }),
    number: AccountNumber,
    merchantId: Type.Optional(Nullable(MerchantId, { description: 'Left out: every merchant.' })),
    product: Type.Optional(Nullable(ProductCode, { description: 'Left out: every product.' })),
    taxCode: Type.Optional(Nullable(AccountNumber)),
  },
  output: AccountSchema,
  roles: MONEY,
  approval: alone('It moves no money: it names the accounts of the general ledger.'),
  risk: 'step-up',
  async run(caller, { kind, number, merchantId, product, taxCode = null }) {
    const merchant = merchantId ? await requireMerchant(caller, merchantId, 'merchantId') : null;
    const found = product ? await requireProduct(caller.service.db, product) : null;
    await setGlAccount(caller, {
      account_kind: kind,
      merchant_id: merchant?.id ?? 0,
      product_id: found?.id ?? 0,
      account: number,
      tax_code: taxCode,
    });
    return { kind, number, merchantId: merchantId ?? null, product: found?.code ?? null, taxCode };
  },
});
