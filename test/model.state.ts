import assert from 'node:assert/strict';
import type { Answer } from './model.calls.ts';
import { sameEntry, sameSet, showsAll } from './model.compare.ts';

/** What the model of the service holds, and what of it an answer has to show. */

/**
 * What merchants may be: with everything, told no difference of codes and PINs, without the right to update.
 */
export const MERCHANTS = [
  { opaque: false, mayUpdate: true },
  { opaque: true, mayUpdate: true },
  { opaque: false, mayUpdate: false },
  // Those whose calls come to nothing, whatever they ask for.
  { opaque: false, mayUpdate: false, mayNothing: true },
  { opaque: false, mayUpdate: true, suspended: true },
] as const satisfies readonly {
  readonly opaque: boolean;
  readonly mayUpdate: boolean;
  readonly mayNothing?: boolean;
  readonly suspended?: boolean;
}[];
/** The first of them. */
export const MERCHANTS_THAT_MAY = 3;
export const FLOAT_MINOR = 6_000_00;

type Product = {
  readonly issuerOnly: boolean;
  /** Its vouchers are paid for when they are ordered, and carry their value once they are activated. */
  readonly later: boolean;
  readonly onSale: boolean;
  readonly leastMinor: number;
  readonly mostMinor: number;
  readonly most: number;
};
const DEFAULT = {
  issuerOnly: false,
  later: false,
  onSale: true,
  leastMinor: 1,
  mostMinor: 100_000_00,
  most: 100_000,
};
/** By their codes; `NONE` is none. */
export const PRODUCTS: Readonly<Record<string, Product>> = {
  DEFAULT,
  ISSUER: { issuerOnly: true, later: false, onSale: true, leastMinor: 2_00, mostMinor: 20_00, most: 5 },
  LATER: { ...DEFAULT, issuerOnly: true, later: true },
  CLOSED: { ...DEFAULT, onSale: false },
};

export type Batch = {
  id: string;
  merchant: number;
  status: 'PROCESSING' | 'COMPLETED' | 'CANCELED';
  reference: string;
  quantity: number;
  minor: number | null;
  product: string;
  /** What was asked for, and what came of it. */
  until: number | null;
  expires: number;
  /** Whether it was completed, and nobody has been shown its vouchers. */
  unseen: boolean;
};
export type Voucher = {
  batch: string;
  issuer: number;
  issuerOnly: boolean;
  batchMinor: number | null;
  value: number | null;
  balance: number;
  expires: number;
  blocked: boolean;
  /** The serial number of the voucher in its place. */
  replaced: string | null;
  wrong: number;
  lockedUntil: number;
};
export type Entry = {
  id: string;
  type: 'ACTIVATION' | 'REDEMPTION' | 'REDEMPTION_REVERSAL';
  operation: 'activate' | 'redeem' | null;
  merchant: number;
  serial: string;
  minor: number;
  reference: string | null;
  original: string | null;
};

/** The minor units of an amount; undefined for one that is negative or has more than two decimals. */
export function minorOf(amount: number): number | undefined {
  return amount < 0 || hasMoreDecimals(amount, 2) ? undefined : Math.round(amount * 100);
}

/** Whether an amount, written as JSON writes it, has more decimals than these. */
export function hasMoreDecimals(amount: number, decimals: number): boolean {
  return (String(amount).split('.')[1] ?? '').length > decimals;
}

/** What stands in the way of a voucher whose PIN was right. */
export function stateRefusal({ replaced, blocked, expires }: Voucher, now: number): string | undefined {
  if (replaced) return '44';
  if (blocked) return '43';
  return expires <= now ? '54' : undefined;
}

export class ModelState {
  floats: number[] = MERCHANTS.map(() => FLOAT_MINOR);
  batches: Record<string, Batch> = {};
  vouchers: Record<string, Voucher> = {};
  entries: Record<string, Entry> = {};

  clone(): this {
    return Object.assign(new (this.constructor as new () => this)(), structuredClone({ ...this }));
  }

  /** Two states with the same key are the same state, however they came about. */
  key(): string {
    const sorted = (record: object) =>
      Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1));
    return JSON.stringify([this.floats, sorted(this.batches), sorted(this.vouchers), sorted(this.entries)]);
  }

  protected batchOf(merchant: number, reference: string): Batch | undefined {
    return Object.values(this.batches).find(
      (batch) => batch.merchant === merchant && batch.reference === reference,
    );
  }

  protected find(
    merchant: number,
    operation: Entry['operation'],
    reference: string | null,
  ): Entry | undefined {
    return Object.values(this.entries).find(
      (entry) =>
        entry.merchant === merchant &&
        entry.operation === operation &&
        (entry.reference ?? entry.id) === reference,
    );
  }

  protected reversalOf({ id }: Entry): Entry | undefined {
    return Object.values(this.entries).find(
      ({ original, type }) => original === id && type === 'REDEMPTION_REVERSAL',
    );
  }

  protected replacementOf({ id }: Entry): Entry | undefined {
    return Object.values(this.entries).find(({ original, type }) => original === id && type === 'REDEMPTION');
  }

  /**
   * What a voucher takes over from the one that it replaced, also later: one entry, the first of its
   * history, of no merchant.
   */
  protected takeOver(serial: string, minor: number): void {
    if (minor === 0) return;
    const id = `made of another ${serial}`;
    const entry = {
      type: 'ACTIVATION',
      operation: null,
      merchant: -1,
      serial,
      minor: minor + (this.entries[id]?.minor ?? 0),
      reference: '',
      original: null,
    } as const;
    this.entries[id] = { ...entry, id };
  }

  protected float(merchant: number): number {
    return this.floats[merchant] ?? 0;
  }

  /** Vouchers of a batch, by the serial numbers that were told of them. */
  protected make(batch: Batch, told: readonly { readonly serialNumber: number }[]): void {
    const { id, merchant, minor, reference, expires } = batch;
    const { issuerOnly = false, later = false } = PRODUCTS[batch.product] ?? {};
    for (const { serialNumber } of told) {
      const serial = String(serialNumber);
      this.vouchers[serial] = {
        batch: id,
        issuer: merchant,
        issuerOnly,
        batchMinor: minor,
        value: later ? null : minor,
        balance: later ? 0 : (minor ?? 0),
        expires,
        blocked: false,
        replaced: null,
        wrong: 0,
        lockedUntil: 0,
      };
      if (minor === null || later) continue;
      // Nobody is told the ids of these; a look-up does not find them.
      const made = {
        type: 'ACTIVATION',
        operation: null,
        merchant,
        serial,
        minor,
        reference,
        original: null,
      } as const;
      this.entries[`made ${serial}`] = { ...made, id: `made ${serial}` };
    }
  }

  /** Whether a batch was told as it is, with the vouchers that can be seen of it. */
  protected shows(batch: Batch, data: Answer['data']): boolean {
    const all = data.vouchers ?? [];
    if (batch.unseen) {
      // The first who sees them tells which they are: as many as were ordered, and none that was another
      // one before.
      const serials = new Set(all.map(({ serialNumber }: { serialNumber: number }) => String(serialNumber)));
      if (serials.size !== batch.quantity || [...serials].some((serial) => this.vouchers[serial as string]))
        return false;
      this.make(batch, all);
      batch.unseen = false;
    }
    const told = all.map(({ serialNumber }: { serialNumber: number }) => String(serialNumber));
    const visible = Object.keys(this.vouchers).filter(
      (serial) => this.vouchers[serial]?.batch === batch.id && !this.vouchers[serial]?.replaced,
    );
    return (
      data.transactionId === batch.id &&
      data.reference === batch.reference &&
      data.status === batch.status &&
      Date.parse(data.expiryDate) === batch.expires &&
      (data.value === null ? null : Math.round(data.value * 100)) === batch.minor &&
      sameSet(told, visible)
    );
  }

  protected showsBalance(
    { serial, merchant }: { serial: string | undefined; merchant: number },
    data: Answer['data'],
    now: number,
  ) {
    const voucher = this.vouchers[serial as string] as Voucher;
    const usable = voucher.value === null || stateRefusal(voucher, now) ? 0 : voucher.balance;
    const entries = Object.values(this.entries)
      .filter(
        (entry) => entry.serial === serial && entry.type !== 'REDEMPTION_REVERSAL' && !this.reversalOf(entry),
      )
      .map((entry) => (entry.merchant === merchant ? entry : { ...entry, reference: '' }));
    return (
      String(data.serialNumber) === serial &&
      Math.round(data.balance * 100) === voucher.balance &&
      Math.round(data.usableAmount * 100) === usable &&
      (data.value === undefined ||
        (data.value === null ? null : Math.round(data.value * 100)) === voucher.value) &&
      showsAll(data.transactions, entries, () => null)
    );
  }

  protected showsList(merchant: number, inForceOnly: boolean, data: Answer['data']): boolean {
    const entries = Object.values(this.entries)
      .filter((entry) => entry.merchant === merchant)
      .filter((entry) => !inForceOnly || (entry.type !== 'REDEMPTION_REVERSAL' && !this.reversalOf(entry)));
    assert.ok(entries.length <= 50, 'a run of the model makes no longer list than the service shows');
    return showsAll(data, entries, (entry) => this.#refundOf(entry));
  }

  #refundOf(entry: Entry): string | null {
    if (this.reversalOf(entry)) return 'CANCELLED';
    return entry.type === 'REDEMPTION' && entry.original !== null ? 'NEW' : null;
  }

  protected showsUpdate(original: Entry, reference: string, { data }: Answer): boolean {
    const reversal = this.reversalOf(original) as Entry;
    const renewed = this.replacementOf(original);
    return (
      sameEntry(data?.originalTransaction, original, 'CANCELLED') &&
      sameEntry(data.cancellationTransaction, reversal, null) &&
      (renewed ? sameEntry(data.newTransaction, renewed, 'NEW') : data.newTransaction === null) &&
      data.transactions.length === (renewed ? 3 : 2) &&
      Math.round(data.summary.originalAmount * 100) === original.minor &&
      Math.round(data.summary.newAmount * 100) === (renewed?.minor ?? 0) &&
      data.summary.reference === reference
    );
  }
}
