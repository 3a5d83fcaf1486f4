import type { AccountKind } from '../ledger/kinds.ts';
import { textIn } from '../money.ts';
import { addDays } from '../time.ts';
import type { Account, Balance, ClosedDay, Movement } from './export.rows.ts';
import type { Names } from './reports/report.ts';

/**
 * Journals for beancount and hledger. They hold a transaction for each movement, and the balances at the end
 * of each day as assertions, so that these programs verify the export independently of this service. Debits
 * are positive, as in both formats.
 */

export type PlainTextFormat = 'beancount' | 'hledger';

const NAMES: Readonly<Record<AccountKind, string>> = {
  FUNDING: 'Assets:Funding',
  TRANSIT: 'Liabilities:Transit',
  FLOAT: 'Liabilities:Floats',
  RESERVE: 'Liabilities:Reserves',
  VOUCHER: 'Liabilities:Vouchers',
  SETTLEMENT: 'Liabilities:Settlements',
  UNCLAIMED: 'Liabilities:Unclaimed',
  VAT: 'Liabilities:VAT',
  FEES: 'Income:Fees',
  BREAKAGE: 'Income:Breakage',
  GOODWILL: 'Equity:Goodwill',
};

function nameOf({ kind, merchantId, productId }: Account): string {
  const name = NAMES[kind as AccountKind] as string | undefined;
  if (!name) throw new Error(`no name for accounts of the kind ${kind}`);
  return `${name}${merchantId > 0 ? `:M${merchantId}` : ''}${productId > 0 ? `:P${productId}` : ''}`;
}

/** Writes a journal piece by piece. */
export class PlainText {
  readonly #isBeancount: boolean;
  readonly #names: Names;
  readonly #opened = new Set<string>();
  /** The accounts that have moved since the last assertion, by name and currency. */
  readonly #moved = new Map<string, Account>();
  #firstDay = '';

  constructor(format: PlainTextFormat, names: Names) {
    this.#isBeancount = format === 'beancount';
    this.#names = names;
  }

  /**
   * Returns the head of the journal, with the opening balances. They sum to 0 in each currency, so they form
   * one transaction.
   */
  begin(days: readonly ClosedDay[], opening: readonly Balance[]): string {
    const [first, last] = [days[0] as ClosedDay, days.at(-1) as ClosedDay];
    this.#firstDay = addDays(first.day, -1);
    const lines = [
      `; Scrip: ${first.day} to ${last.day}, both included, in ${last.zone}. Closed days; the closing of ${last.day} is`,
      `; ${last.hash}`,
      '',
    ];
    for (const own of Map.groupBy(opening, ({ currency }) => currency).values()) {
      lines.push(...this.#opensOf(own));
      lines.push(this.#head(this.#firstDay, 'OPENING', `balances before ${first.day}`));
      lines.push(...own.map((each) => this.#posting(each, -each.balanceMinor)), '');
    }
    return `${lines.join('\n')}\n`;
  }

  movement(day: string, movement: Movement): string {
    const { kind, debit, credit, amountMinor, rows, id, reference, serialNumber } = movement;
    const what =
      id === null
        ? `${rows} row${rows === 1 ? '' : 's'}`
        : [id, serialNumber, reference].filter(Boolean).join(' ');
    for (const account of [debit, credit]) this.#moved.set(keyOf(account), account);
    const lines = [
      ...this.#opensOf([debit, credit]),
      this.#head(day, kind, what),
      this.#posting(debit, amountMinor),
      this.#posting(credit, -amountMinor),
      '',
    ];
    return `${lines.join('\n')}\n`;
  }

  /**
   * Returns the balance assertions at the end of a day: for the accounts that moved on that day, or for all
   * accounts on the last day.
   */
  end(day: string, balances: readonly Balance[], isLast: boolean): string {
    const asserted = new Map<string, Balance>();
    for (const [key, account] of this.#moved) asserted.set(key, { ...account, balanceMinor: 0n });
    for (const each of balances) if (isLast || asserted.has(keyOf(each))) asserted.set(keyOf(each), each);
    this.#moved.clear();
    const all = [...asserted.values()];
    if (all.length === 0) return '';
    const opens = this.#opensOf(all);
    // Without a tolerance of 0, beancount would accept a difference of one minor unit.
    const lines = this.#isBeancount
      ? all.map((each) => {
          const { currency, balanceMinor } = each;
          const amount = textIn(currency, -balanceMinor);
          return `${addDays(day, 1)} balance ${nameOf(each)} ${amount} ~ 0 ${currency}`;
        })
      : [`${day} CLOSING`, ...all.map((each) => this.#posting(each, 0n, -each.balanceMinor))];
    return `${[...opens, ...lines, ''].join('\n')}\n`;
  }

  #head(day: string, kind: string, what: string): string {
    const text = what.replace(/["\\\p{Cc}]/gu, ' ');
    // In hledger, a vertical bar or a semicolon would begin another field.
    return this.#isBeancount
      ? `${day} * "${kind}" "${text}"`
      : `${day} * ${kind} | ${text.replace(/[|;]/g, ' ')}`;
  }

  #posting(account: Account, minor: bigint, assertedMinor?: bigint): string {
    const amount = (each: bigint) => `${textIn(account.currency, each)} ${account.currency}`;
    const assertion = assertedMinor === undefined ? '' : ` = ${amount(assertedMinor)}`;
    return `  ${nameOf(account)}  ${amount(minor)}${assertion}`;
  }

  /**
   * Returns the directives that open accounts at their first use, with the merchant and the product. For
   * hledger they also declare the currencies.
   */
  #opensOf(accounts: readonly Account[]): string[] {
    const lines: string[] = [];
    for (const account of accounts) {
      const name = nameOf(account);
      if (!this.#isBeancount && !this.#opened.has(account.currency)) {
        this.#opened.add(account.currency);
        lines.push(`commodity ${formOf(account.currency)} ${account.currency}`);
      }
      if (this.#opened.has(name)) continue;
      this.#opened.add(name);
      const merchant = this.#names.merchants.get(account.merchantId);
      const product = this.#names.products.get(account.productId)?.code;
      const owners = [merchant, product].filter((each) => each !== undefined);
      const comment = owners.length > 0 ? `  ; ${owners.join(', ').replace(/\p{Cc}/gu, ' ')}` : '';
      lines.push(
        this.#isBeancount ? `${this.#firstDay} open ${name}${comment}` : `account ${name}${comment}`,
      );
    }
    return lines;
  }
}

/** Returns the format of a currency's amounts, as hledger expects it: always with a decimal mark. */
function formOf(currency: string): string {
  const zero = textIn(currency, 0n);
  return zero.includes('.') ? zero : `${zero}.`;
}

function keyOf(account: Account): string {
  return `${nameOf(account)} ${account.currency}`;
}
