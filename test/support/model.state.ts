import assert from 'node:assert/strict';
import type { Answer } from './model.calls.ts';
import { type Entry, sameEntry, sameSet, showsAll } from './model.compare.ts';

/** The state of the model, and what answers must show of it. */

export type Batch = {
  id: string;
  merchant: number;
  status: 'PROCESSING' | 'COMPLETED' | 'CANCELED';
  reference: string;
  quantity: number;
  minor: number | null;
  product: string;
  /** The requested expiry, and the actual one. */
  until: number | null;
  expires: number;
  /** Whether it is completed and its vouchers have not been shown. */
  unseen: boolean;
};
export type Voucher = {
  batch: string;
  issuer: number;
  issuerOnly: boolean;
  batchMinor: number | null;
  /** The merchant whose float paid for its value. */
  payer: number | null;
  value: number | null;
  balance: number;
  expires: number;
  blocked: boolean;
  /** The serial number of its replacement. */
  replaced: string | null;
  canceled: boolean;
  wrong: number;
  lockedUntil: number;
};

/** The kinds of merchants: with all rights, opaque, without the right to update, and two always refused. */
export const MERCHANTS = [
  { opaque: false, mayUpdate: true },
  { opaque: true, mayUpdate: true },
  { opaque: false, mayUpdate: false },
  // Merchants whose calls are always declined.
  { opaque: false, mayUpdate: false, mayNothing: true },
  { opaque: false, mayUpdate: true, suspended: true },
] as const satisfies readonly {
  readonly opaque: boolean;
  readonly mayUpdate: boolean;
  readonly mayNothing?: boolean;
  readonly suspended?: boolean;
}[];
/** The number of merchants whose calls are not always declined; they come first. */
export const MERCHANTS_THAT_MAY = 3;
export const FLOAT_MINOR = 6_000_00;

type Product = {
  readonly issuerOnly: boolean;
  /** Its vouchers are paid for when they are generated, and carry their value once they are activated. */
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
/** The products by their codes. `NONE` does not exist. */
export const PRODUCTS: Readonly<Record<string, Product>> = {
  DEFAULT,
  ISSUER: { issuerOnly: true, later: false, onSale: true, leastMinor: 2_00, mostMinor: 20_00, most: 5 },
  LATER: { ...DEFAULT, issuerOnly: true, later: true },
  CLOSED: { ...DEFAULT, onSale: false },
};

/** The minor units of an amount; undefined for one that is negative or has more than two decimals. */
export function minorOf(amount: number): number | undefined {
  return amount < 0 || hasMoreDecimals(amount, 2) ? undefined : Math.round(amount * 100);
}

/** Whether an amount, as JSON writes it, has more than these decimals. */
export function hasMoreDecimals(amount: number, decimals: number): boolean {
  return (String(amount).split('.')[1] ?? '').length > decimals;
}

/** The refusal by the state of a voucher, after a right PIN. */
export function stateRefusal(voucher: Voucher, now: number): string | undefined {
  const { replaced, canceled, blocked, expires } = voucher;
  if (replaced || canceled) return '44';
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

  /** Two states with the same key are the same state. */
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
   * Adds money that a voucher takes over from the one that it replaced, at once or later: one entry without a
   * merchant, the first of its history.
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

  /** Adds the vouchers of a batch, with the serial numbers of an answer. */
  protected make(batch: Batch, vouchers: readonly { readonly serialNumber: number }[]): void {
    const { id, merchant, minor, reference, expires } = batch;
    const { issuerOnly = false, later = false } = PRODUCTS[batch.product] ?? {};
    for (const { serialNumber } of vouchers) {
      const serial = String(serialNumber);
      this.vouchers[serial] = {
        batch: id,
        issuer: merchant,
        issuerOnly,
        batchMinor: minor,
        payer: minor === null ? null : merchant,
        value: later ? null : minor,
        balance: later ? 0 : (minor ?? 0),
        expires,
        blocked: false,
        replaced: null,
        canceled: false,
        wrong: 0,
        lockedUntil: 0,
      };
      if (minor === null || later) continue;
      // The answer does not show the ids of these entries, and a lookup does not find them.
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

  /** Whether an answer shows a batch with its visible vouchers. */
  protected shows(batch: Batch, data: Answer['data']): boolean {
    const all = data.vouchers ?? [];
    if (batch.unseen) {
      // The first answer decides which vouchers they are: the requested number, and all of them new.
      const serials = new Set(all.map(({ serialNumber }: { serialNumber: number }) => String(serialNumber)));
      if (serials.size !== batch.quantity || [...serials].some((serial) => this.vouchers[serial as string]))
        return false;
      this.make(batch, all);
      batch.unseen = false;
    }
    const shown = all.map(({ serialNumber }: { serialNumber: number }) => String(serialNumber));
    const visible = Object.entries(this.vouchers)
      .filter(([, voucher]) => voucher.batch === batch.id && !voucher.replaced && !voucher.canceled)
      .map(([serial]) => serial);
    return (
      data.transactionId === batch.id &&
      data.reference === batch.reference &&
      data.status === batch.status &&
      Date.parse(data.expiryDate) === batch.expires &&
      (data.value === null ? null : Math.round(data.value * 100)) === batch.minor &&
      sameSet(shown, visible)
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
    assert.ok(entries.length <= 50, 'a run of the model has no more transactions than the list shows');
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
