/** The arguments and results of the calls: one set of types for both variants of the interface. */

/**
 * The variant of the interface that a client speaks: `a` under `/merchant-client/v2`, `b` under `/api/v2`.
 */
export type Variant = 'a' | 'b';

/** A voucher as the customer presents it: 12 digits and the PIN, or both in one as 16 digits. */
export type VoucherInput =
  | { readonly code: string; readonly pin: string }
  | { readonly code: string; readonly pin?: null | undefined };

type GenerateInA = {
  readonly productCode: string;
  /** How many vouchers. Up to 10 are in the response; more are produced in the background. */
  readonly quantity: number;
  /** The value of each voucher, in major units. */
  readonly value: number;
  /** Generated if it is left out, and part of the result. */
  readonly reference?: string | undefined;
};

type GenerateInB = {
  /** How many vouchers. Up to 10 are in the response; more are produced in the background. */
  readonly quantity: number;
  /** The value of each voucher, in major units. Left out or null: it is given at activation. */
  readonly value?: number | null | undefined;
  /** At least one day from now. Left out: the validity of the merchant's product. */
  readonly expiryDate?: string | Date | null | undefined;
  /** Generated if it is left out, and part of the result. */
  readonly reference?: string | undefined;
};

export type GenerateInput<V extends Variant> = V extends 'a' ? GenerateInA : GenerateInB;

type ActivateInA = VoucherInput & { readonly reference?: string | undefined };

type ActivateInB = {
  readonly serialNumber: number | string;
  /** In major units. Left out: the batch's value, else 5000. */
  readonly value?: number | null | undefined;
  readonly reference?: string | undefined;
};

/** Variant A activates by code and PIN, variant B by serial number. */
export type ActivateInput<V extends Variant> = V extends 'a' ? ActivateInA : ActivateInB;

export type RedeemInput = VoucherInput & {
  /** In major units. The whole amount is redeemed, or nothing. */
  readonly amount: number;
  /**
   * Generated if it is left out, and part of the result. Give your own, such as the order's number, and
   * keep it.
   */
  readonly reference?: string | undefined;
};

export type UpdateRedemptionInput = {
  /** The reference of the redemption; its `transactionId` if it had none. */
  readonly reference: string;
  /** What the redemption should have taken, in major units. To reverse it, call `reverseRedemption`. */
  readonly amountUsed: number;
};

/** Options of a single call. */
export type CallOptions = {
  /** Ends the call. One that may have had an effect by then ends with an UnknownOutcomeError. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take, with all its attempts. */
  readonly deadlineMs?: number | undefined;
  /** How long one attempt may take. */
  readonly attemptTimeoutMs?: number | undefined;
};

/** Options of a call that has an effect. */
export type EffectOptions<T> = CallOptions & {
  /** Called with the result before a call is no longer kept as pending: save it here. */
  readonly record?: ((result: T) => unknown) | undefined;
};

/** What calls that have an effect return beside their result. */
export type Receipt = {
  /** The reference of the call, given or generated. */
  readonly reference: string;
  /** Whether an earlier copy of the request had the effect. */
  readonly replayed: boolean;
  /** The service's id of the request, for its operator. */
  readonly requestId: string | null;
};

export type Voucher = {
  readonly serialNumber: number;
  readonly code: string;
  /** Null for a voucher that has none. */
  readonly pin: string | null;
};

export type BatchStatus = 'PROCESSING' | 'COMPLETED' | 'CANCELED';

/** A batch without its vouchers. */
export type BatchHead<Status extends BatchStatus = BatchStatus> = {
  readonly reference: string;
  readonly transactionId: string;
  readonly status: Status;
  /** ISO 8601. */
  readonly expiryDate: string;
  /** The value of each voucher; null where it is given at activation. */
  readonly value: number | null;
};

export type CompletedBatch = BatchHead<'COMPLETED'> & { readonly vouchers: readonly Voucher[] };

/** A batch; only a completed one has vouchers. */
export type Batch =
  | CompletedBatch
  | (BatchHead<'PROCESSING' | 'CANCELED'> & { readonly vouchers?: undefined });

export type TransactionType = 'ACTIVATION' | 'REDEMPTION' | 'REDEMPTION_REVERSAL';

export type Transaction = {
  readonly transactionId: string;
  readonly transactionType: TransactionType;
  /** In major units; negative for a reversal. */
  readonly amount: number;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly reference: string | null;
  /** Always masked, even where the service echoes the code. */
  readonly voucherCode: string;
  readonly serialNumber: string;
  /**
   * `CANCELLED`: reversed by an update; `NEW`: its replacement. Always null in variant B, which has no
   * updates.
   */
  readonly refundStatus: 'CANCELLED' | 'NEW' | null;
  readonly note: string | null;
};

export type BalanceTransaction = {
  readonly transactionId: string;
  readonly transactionType: TransactionType;
  readonly amount: number;
  readonly timestamp: string;
  /** The caller's own; "" for a transaction of another merchant. */
  readonly reference: string | null;
};

export type Balance = {
  readonly serialNumber: number;
  /** Masked. */
  readonly voucherCode: string;
  readonly balance: number;
  /** What can be redeemed now. */
  readonly usableAmount: number;
  /** The value at activation. Null before it, and in variant B, which does not have it. */
  readonly value: number | null;
  readonly transactions: readonly BalanceTransaction[];
};

/** A transaction of an update; the interface does not promise a timestamp. */
export type UpdateTransaction = Omit<Transaction, 'timestamp'> & { readonly timestamp: string | null };

/** The result of an update of a redemption. */
export type RedemptionUpdate = {
  readonly originalTransaction: UpdateTransaction;
  readonly cancellationTransaction: UpdateTransaction;
  /** The redemption in force; null after a full reversal. */
  readonly newTransaction: UpdateTransaction | null;
  readonly summary: {
    readonly originalAmount: number;
    readonly newAmount: number;
    readonly reference: string;
  };
};

/** The result of `undo`. In each case, no money is taken under the reference any more. */
export type Undone = {
  /**
   * `reversed`: it was booked, and the money is back on the voucher; `already-reversed`: it was before;
   * `given-up`: it was not booked, and a copy of the request that arrives later is refused.
   */
  readonly outcome: 'reversed' | 'already-reversed' | 'given-up';
  readonly reference: string;
  /** The redemption; null if it was not booked. */
  readonly transactionId: string | null;
  readonly reversalId: string | null;
  /** What the voucher got back, in major units; null if nothing was taken. */
  readonly amount: number | null;
  /** Masked; null if nothing was taken. */
  readonly voucherCode: string | null;
  readonly requestId: string | null;
};

/** Options of `waitForBatch`. */
export type WaitOptions = {
  readonly signal?: AbortSignal | undefined;
  /** How long to wait at most (default: an hour). */
  readonly deadlineMs?: number | undefined;
  /** Called after every poll of a batch that is still in production. */
  readonly onProgress?: ((progress: WaitProgress) => void) | undefined;
};

export type WaitProgress = { readonly batch: BatchHead; readonly looks: number; readonly elapsedMs: number };

/** Options of `downloadVouchers`. */
export type DownloadOptions = {
  readonly signal?: AbortSignal | undefined;
  /** How long the service may be silent before the download counts as broken. */
  readonly idleTimeoutMs?: number | undefined;
};
