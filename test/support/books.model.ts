import type { Ledger } from './books.ts';
import { type Figures, Sums } from './reports.ts';

/** The reports of the books, computed by hand from the list of all transactions. */

export type Entry = {
  readonly id: string;
  readonly kind: string;
  readonly amount: bigint;
  readonly currency: string;
  readonly at: Date;
  readonly serial: bigint | null;
  readonly merchant: number | null;
  readonly original: string | null;
  /** The account kinds, and the owner of a float or settlement account. */
  readonly debit: string;
  readonly credit: string;
  /** Of its voucher, batch or commission; '' and 0 if there is none. */
  readonly product: string;
  readonly issuer: number;
  readonly from: bigint;
  readonly to: bigint;
};

export type Card = {
  readonly serial: bigint;
  readonly currency: string;
  readonly product: string;
  readonly activated: Date;
  readonly expires: Date;
  readonly replacedBy: bigint | null;
  /** The expiry policy of its batch. */
  readonly policy: string;
};

/** All entries, oldest first. */
export function readEntries({ sql }: Ledger): Promise<Entry[]> {
  const kind = (account: string) => `case when ${account} > 10000000000 then 'VOUCHER'
    when ${account} >= 5000000000 then 'RESERVE'
    else (select a.kind::text from scrip.accounts a where a.id = ${account}) end`;
  // The journal is read by itself: with Citus, it is on the shards, and fee_movements on the coordinator.
  return sql<Entry>(`
    with rows as materialized (
      select j.*, b.product_id, b.merchant_id as issuer_id
      from scrip.journal j
      left join scrip.vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
      left join scrip.batches b on b.id = coalesce(v.batch_id, j.batch_id)
    )
    select j.id, j.kind::text, j.amount_minor as amount, j.currency, j.occurred_at as at,
      j.serial_number as serial, j.merchant_id as merchant, j.original_id as original,
      ${kind('j.debit_account')} as debit, ${kind('j.credit_account')} as credit,
      coalesce(p.code, '') as product, coalesce(j.issuer_id, 0) as issuer,
      j.debit_account as from, j.credit_account as to
    from rows j
    left join scrip.fee_movements f on f.id = j.id
    left join scrip.products p on p.id = coalesce(j.product_id, f.product_id)
    order by j.occurred_at, j.id`);
}

export function readCards({ sql }: Ledger): Promise<Card[]> {
  return sql<Card>(`
    select v.serial_number as serial, b.currency, p.code as product, v.activated_at as activated,
      v.expires_at as expires,
      v.replaced_by as "replacedBy", b.expiry_policy::text as policy
    from scrip.vouchers v join scrip.batches b on b.id = v.batch_id
    join scrip.products p on p.id = b.product_id`);
}

/** A list of transactions, and an interval. */
export class ByHand {
  readonly all: readonly Entry[];
  readonly from: Date;
  readonly to: Date;

  constructor(all: readonly Entry[], from: Date, to: Date) {
    this.all = all;
    this.from = from;
    this.to = to;
  }

  get own(): Entry[] {
    return this.all.filter(({ at }) => at >= this.from && at < this.to);
  }

  trialBalance(): Figures {
    const sums = new Sums();
    for (const { at, currency, debit, credit, amount } of this.all) {
      if (at >= this.to) continue;
      const isBefore = at < this.from;
      sums.add(`${currency} ${debit} ${isBefore ? 'opening' : 'debits'}`, isBefore ? -amount : amount);
      sums.add(`${currency} ${credit} ${isBefore ? 'opening' : 'credits'}`, amount);
      sums.add(`${currency} ${debit} closing`, -amount);
      sums.add(`${currency} ${credit} closing`, amount);
    }
    return sums.figures();
  }

  liability(): Figures {
    const sums = new Sums();
    const columns: Readonly<Record<string, readonly [string, string]>> = {
      ACTIVATION: ['issued', ''],
      IMPORT: ['imported', ''],
      REDEMPTION: ['', 'redeemed'],
      REDEMPTION_REVERSAL: ['reversed', ''],
      REFUND: ['refunded', ''],
      REINSTATEMENT: ['reinstated', ''],
      EXPIRY: ['', 'expired'],
      ADJUSTMENT: ['adjustedUp', 'adjustedDown'],
      CASH_OUT: ['', 'cashedOut'],
      ESCHEAT: ['', 'escheated'],
      VOID: ['', 'voided'],
      CANCELLATION: ['', 'voided'],
    };
    for (const each of this.all) {
      if (each.at >= this.to || each.kind === 'REPLACEMENT') continue;
      const [up, down] = columns[each.kind] ?? ['', ''];
      const name = `${each.currency} ${each.product} ${each.issuer}`;
      for (const [side, sign, column] of [
        ['credit', 1n, up],
        ['debit', -1n, down],
      ] as const) {
        if (each[side] !== 'VOUCHER') continue;
        if (each.at < this.from) sums.add(`${name} opening`, sign * each.amount);
        else sums.add(`${name} ${column}`, each.amount);
        sums.add(`${name} closing`, sign * each.amount);
      }
    }
    return sums.figures();
  }

  /** The balance of each voucher at the end. */
  held(): Map<bigint, bigint> {
    const held = new Map<bigint, bigint>();
    for (const { at, debit, credit, from, to, amount } of this.all) {
      if (at >= this.to) continue;
      if (credit === 'VOUCHER') held.set(to, (held.get(to) ?? 0n) + amount);
      if (debit === 'VOUCHER') held.set(from, (held.get(from) ?? 0n) - amount);
    }
    return held;
  }

  /** @param label the first words of each name, such as the day */
  outstanding(label: string): Figures {
    const sums = new Sums();
    const columns: Readonly<Record<string, string>> = {
      VOUCHER: 'outstanding',
      RESERVE: 'reserves',
      FLOAT: 'floats',
      SETTLEMENT: 'settlements',
      UNCLAIMED: 'unclaimed',
      VAT: 'vat',
      BREAKAGE: 'breakage',
      FEES: 'fees',
      GOODWILL: 'goodwill',
    };
    for (const { at, currency, debit, credit, amount } of this.all) {
      if (at >= this.to) continue;
      for (const [kind, minor] of [
        [debit, -amount],
        [credit, amount],
      ] as const) {
        const column = columns[kind];
        sums.add(`${currency} ${label} ${column ?? 'minusFunding'}`, column ? minor : -minor);
        if (column)
          sums.add(
            `${currency} ${label} ${['breakage', 'fees', 'goodwill'].includes(column) ? 'own' : 'owed'}`,
            minor,
          );
      }
    }
    const currencies = new Map(this.all.map(({ serial, currency }) => [serial, currency]));
    for (const [serial] of [...this.held()].filter(([, minor]) => minor > 0n))
      sums.add(`${currencies.get(serial)} ${label} vouchers`, 1n);
    return sums.figures();
  }

  /** The unclaimed money of each currency at the end. */
  unclaimed(): Figures {
    const sums = new Sums();
    for (const { at, currency, debit, credit, amount } of this.all) {
      if (at >= this.to) continue;
      if (credit === 'UNCLAIMED') sums.add(currency, amount);
      if (debit === 'UNCLAIMED') sums.add(currency, -amount);
    }
    return sums.figures();
  }

  /** What is owed to each merchant at the end. A reserve belongs to the merchant that ordered the batch. */
  merchants(): Figures {
    const sums = new Sums();
    const columns: Readonly<Record<string, string>> = {
      FLOAT: 'floats',
      RESERVE: 'reserves',
      SETTLEMENT: 'settlements',
    };
    for (const { at, currency, debit, credit, amount, merchant, issuer } of this.all) {
      if (at >= this.to) continue;
      for (const [kind, minor] of [
        [debit, -amount],
        [credit, amount],
      ] as const) {
        const column = columns[kind];
        if (!column) continue;
        const name = `${currency} ${kind === 'RESERVE' ? issuer : merchant}`;
        sums.add(`${name} ${column}`, minor);
        sums.add(`${name} owed`, minor);
      }
    }
    return sums.figures();
  }

  breakage(): Figures {
    const sums = new Sums();
    for (const { kind, currency, product, debit, credit, amount } of this.own) {
      if (kind !== 'EXPIRY' && kind !== 'REINSTATEMENT') continue;
      const isExpiry = kind === 'EXPIRY';
      const name = `${currency} ${product} ${isExpiry ? credit : debit}`;
      sums.add(`${name} ${isExpiry ? 'expired' : 'reinstated'}`, amount);
      sums.add(`${name} net`, isExpiry ? amount : -amount);
    }
    return sums.figures();
  }

  /** The lines of a merchant's floats, with the balance after each. */
  float(merchant: number): string[] {
    const balances = new Map<string, bigint>();
    const lines: string[] = [];
    for (const { id, at, kind, currency, debit, credit, amount, merchant: owner } of this.all) {
      if (owner !== merchant || at >= this.to || ![debit, credit].includes('FLOAT')) continue;
      const moved = credit === 'FLOAT' ? amount : -amount;
      balances.set(currency, (balances.get(currency) ?? 0n) + moved);
      if (at >= this.from) lines.push(`${currency} ${id} ${kind} ${moved} ${balances.get(currency)}`);
    }
    return lines.sort();
  }

  settlements(): Figures {
    const sums = new Sums();
    const originals = new Map(this.all.map((each) => [each.id, each.at]));
    const columns: Readonly<Record<string, readonly [string, bigint]>> = {
      REDEMPTION: ['redeemed', 1n],
      CASH_OUT: ['cashedOut', 1n],
      REFUND: ['refunded', 1n],
      FEE: ['commission', 1n],
      FEE_REVERSAL: ['commission', -1n],
      FEE_VAT: ['vat', 1n],
      FEE_VAT_REVERSAL: ['vat', -1n],
      PAYOUT: ['paidOut', 1n],
      PAYOUT_RETURN: ['paidOut', -1n],
    };
    for (const { kind, at, currency, merchant, product, debit, credit, amount, original } of this.all) {
      if (at >= this.to || ![debit, credit].includes('SETTLEMENT')) continue;
      const moved = credit === 'SETTLEMENT' ? amount : -amount;
      const total = `${currency} ${merchant} total`;
      sums.add(`${total} closing`, moved);
      if (at < this.from) {
        sums.add(`${total} opening`, moved);
        continue;
      }
      const first = originals.get(original ?? '');
      const isEarlier = kind === 'REDEMPTION_REVERSAL' && first !== undefined && first < this.from;
      const [column, sign] = columns[kind] ?? [isEarlier ? 'earlierReversed' : 'reversed', 1n];
      for (const name of [total, `${currency} ${merchant} ${product}`]) {
        sums.add(`${name} ${column}`, sign * amount);
        sums.add(`${name} net`, moved);
      }
      const reversals = isEarlier ? 'earlierReversals' : 'reversals';
      const counted = kind === 'REDEMPTION' ? 'redemptions' : reversals;
      if (!kind.startsWith('REDEMPTION')) continue;
      for (const name of [total, `${currency} ${merchant} ${product}`]) sums.add(`${name} ${counted}`, 1n);
    }
    return sums.figures();
  }

  transactions(merchant: number): string[] {
    return this.own
      .filter(
        (each) =>
          each.merchant === merchant &&
          ['ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND', 'CASH_OUT'].includes(each.kind),
      )
      .map(({ id, kind, serial, currency, product, amount }) => {
        const minor = ['REDEMPTION_REVERSAL', 'REFUND'].includes(kind) ? -amount : amount;
        return `${id} ${kind} ${serial} ${currency} ${product} ${minor}`;
      })
      .sort();
  }

  matrix(): Figures {
    const sums = new Sums();
    for (const { kind, currency, issuer, merchant, amount } of this.own) {
      if (!['REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND'].includes(kind)) continue;
      const isRedemption = kind === 'REDEMPTION';
      const name = `${currency} ${issuer} ${merchant}`;
      sums.add(`${name} ${isRedemption ? 'redeemed' : 'reversed'}`, amount);
      sums.add(`${name} net`, isRedemption ? amount : -amount);
    }
    return sums.figures();
  }

  /** Debits and credits of account kinds, without movements within one kind. */
  ledger(): Figures {
    const sums = new Sums();
    for (const { currency, debit, credit, amount } of this.own) {
      if (debit === credit) continue;
      sums.add(`${currency} ${debit} debit`, amount);
      sums.add(`${currency} ${credit} credit`, amount);
    }
    return sums.figures();
  }
}
