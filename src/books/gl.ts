import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type GlAccountRow, listGlAccounts, upsertGlAccount } from './export.queries.ts';
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
  readonly debitMinor: bigint | null;
  readonly creditMinor: bigint | null;
  readonly currency: string;
  readonly taxCode: string | null;
  readonly text: string;
  readonly kind: string;
  readonly closingHash: string;
};

/** Thrown for accounts that have no number. Nothing is exported until they have one. */
export class Unmapped extends Error {
  /** In the order of their descriptions. */
  readonly accounts: readonly Account[];

  constructor(accounts: readonly Account[]) {
    const described = new Map(accounts.map((account) => [describe(account), account]));
    const names = [...described.keys()].sort();
    super(`no account number for ${names.join('; ')}: give them one first`);
    this.accounts = names.flatMap((name) => described.get(name) ?? []);
  }
}

type Mapped = { readonly account: string; readonly taxCode: string | null };

/**
 * The account numbers of the operator's accounting system, by kind of account. A number can be set for one
 * merchant, one product, or both.
 */
export class GlMapping {
  readonly #byKey: ReadonlyMap<string, Mapped>;

  constructor(rows: readonly GlAccountRow[]) {
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
  return new GlMapping(await db.query<GlAccountRow>(listGlAccounts()));
}

/**
 * Checks that every account has a number.
 * @throws Unmapped with all accounts of these movements that have none
 */
export function checkMapped(mapping: GlMapping, movements: Iterable<Movement>): void {
  const missing = [...movements]
    .flatMap(({ debit, credit }) => [debit, credit])
    .filter((account) => !mapping.find(account));
  if (missing.length > 0) throw new Unmapped(missing);
}

function describe({ kind, merchantId, productId }: Account): string {
  const owner = merchantId > 0 ? ` of merchant ${merchantId}` : '';
  return `${kind}${owner}${productId > 0 ? `, product ${productId}` : ''}`;
}

const NUMBER_DIGITS = 3;

/**
 * Numbers the lines of a day. Movements within one account number are left out, since they change nothing in
 * the general ledger.
 */
export class GlDay {
  readonly #mapping: GlMapping;
  readonly #day: ClosedDay;
  #number = 0;

  constructor(mapping: GlMapping, day: ClosedDay) {
    this.#mapping = mapping;
    this.#day = day;
  }

  /** Returns the lines of the day, with movements on the same account numbers added up. */
  sums(movements: readonly Movement[]): GlLine[] {
    const sums = new Map<string, Movement>();
    for (const movement of movements) {
      const { account: debit } = this.#find(movement.debit);
      const { account: credit } = this.#find(movement.credit);
      const key = JSON.stringify([movement.currency, movement.kind, debit, credit]);
      const sum = sums.get(key);
      const rows = (sum?.rows ?? 0) + movement.rows;
      sums.set(key, { ...movement, rows, amountMinor: (sum?.amountMinor ?? 0n) + movement.amountMinor });
    }
    return [...sums.values()].flatMap((movement) =>
      this.lines(movement, `${movement.kind}, ${movement.rows} rows`),
    );
  }

  /** Returns the two lines of a movement. */
  lines(movement: Movement, text: string): GlLine[] {
    const debit = this.#find(movement.debit);
    const credit = this.#find(movement.credit);
    if (debit.account === credit.account) return [];
    const { day: date, hash: closingHash } = this.#day;
    const number = String(++this.#number).padStart(NUMBER_DIGITS, '0');
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
      { ...common, ...side(debit, credit), debitMinor: amountMinor, creditMinor: null },
      { ...common, ...side(credit, debit), debitMinor: null, creditMinor: amountMinor },
    ];
  }

  #find(account: Account): Mapped {
    const mapped = this.#mapping.find(account);
    if (!mapped) throw new Unmapped([account]);
    return mapped;
  }
}

/** The kinds of accounts that can have a number in the operator's accounting system. */
export const GL_KINDS = [
  'FUNDING',
  'FLOAT',
  'RESERVE',
  'VOUCHER',
  'SETTLEMENT',
  'TRANSIT',
  'FEES',
  'VAT',
  'GOODWILL',
  'UNCLAIMED',
  'BREAKAGE',
] as const;

/** Sets the account number of a kind of account: for one merchant, for one product, or for all (0). */
export async function setGlAccount(operator: Operator, row: GlAccountRow): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(upsertGlAccount(row));
    const {
      account_kind: kind,
      merchant_id: merchantId,
      product_id: productId,
      account,
      tax_code: taxCode,
    } = row;
    const after = { kind, merchantId, productId, account, taxCode };
    await audit(tx, operator, { action: 'books.account', subject: 'books', after });
  });
}
