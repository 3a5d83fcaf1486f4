import type { Money } from '../../money.ts';
import type { CodeAndPin } from '../../secrets.ts';

/** A voucher with everything that is printed on it. */
export type PrintedVoucher = CodeAndPin & {
  readonly serialNumber: bigint;
  /** Null where it is given at activation. */
  readonly value: Money | null;
  readonly currency: string;
  readonly expiresAt: Date;
};

/** What the vouchers of a batch have in common: names for people, each with what stands in for it. */
export type PrintedBatch = {
  readonly merchant: string;
  readonly merchantId: number;
  readonly product: string;
  readonly productCode: string;
  readonly reference: string;
  readonly transactionId: string;
};
