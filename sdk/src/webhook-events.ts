import type { BatchHead, Transaction, Voucher } from './types.ts';

/** The events of the service. New types and fields may come: ignore those that you do not know. */

type Event<Type extends string, Data> = {
  /** The same for every attempt at the delivery: ignore an event that you have handled already. */
  readonly id: string;
  readonly type: Type;
  /** When it happened, ISO 8601. */
  readonly timestamp: string;
  readonly data: Data;
};

/** A batch; its vouchers only for endpoints that are set to `full`, and in batches that are small enough. */
export type BatchEventData<Status extends 'COMPLETED' | 'CANCELED'> = BatchHead<Status> & {
  readonly quantity: number;
  readonly vouchers?: readonly Voucher[];
};

/** An update as it is announced: the three transactions by name, and in a list. */
export type RedemptionUpdateEventData = {
  readonly originalTransaction: Transaction;
  readonly cancellationTransaction: Transaction;
  readonly newTransaction: Transaction | null;
  readonly transactions: readonly Transaction[];
  readonly summary: {
    readonly originalAmount: number;
    readonly newAmount: number;
    readonly reference: string;
  };
};

/** The merchant's float fell below its threshold. */
export type FloatLowEventData = {
  readonly currency: string;
  readonly balance: number;
  readonly threshold: number;
};

/** A limit has refused a request, for the first time on that day. */
export type LimitReachedEventData = {
  /** `issue`: generations and activations; `redeem`: redemptions; `outstanding`: what vouchers hold. */
  readonly flow: 'issue' | 'redeem' | 'outstanding';
  /** Null: the limit of all your keys, or of a product. */
  readonly keyId: string | null;
  /** The product whose vouchers would hold too much; only with `outstanding`. */
  readonly product?: string;
  readonly currency: string;
  readonly limit: number;
};

/** A change of a voucher that you generated. */
export type VoucherEventData = { readonly serialNumber: string };

/** The money that left a voucher. */
export type VoucherEndData = VoucherEventData & { readonly amount: number; readonly currency: string };

export type KeyExpiryEventData = { readonly keyId: string; readonly expiresAt: string };

/** Only at endpoints of the operator. */
export type DayClosedEventData = {
  readonly day: string;
  readonly hash: string;
  /** The checks that found a difference. */
  readonly failed: readonly string[];
};

/** A settlement of your redemptions. The first and the last day belong to it, in the operator's books. */
export type SettlementEventData<State extends 'APPROVED' | 'PAID' | 'RETURNED'> = {
  readonly settlementId: string;
  readonly number: string;
  readonly state: State;
  readonly firstDay: string;
  readonly lastDay: string;
  readonly currency: string;
  /** 0 if the balance is carried over. */
  readonly payable: number;
  readonly dueOn: string;
};

/** The result at the operator's bank. */
export type SettlementBankData = { readonly bankReference: string; readonly valueDate: string };

export type WebhookEvent =
  | Event<'voucher.batch.completed', BatchEventData<'COMPLETED'>>
  | Event<'voucher.batch.canceled', BatchEventData<'CANCELED'>>
  | Event<'voucher.activated', Transaction>
  | Event<'voucher.redeemed', Transaction>
  | Event<'redemption.updated', RedemptionUpdateEventData>
  | Event<'float.low', FloatLowEventData>
  | Event<'limit.reached', LimitReachedEventData>
  | Event<'voucher.blocked', VoucherEventData>
  | Event<'voucher.unblocked', VoucherEventData>
  | Event<'voucher.expired', VoucherEndData>
  | Event<'voucher.canceled', VoucherEndData>
  | Event<'voucher.replaced', VoucherEventData & { readonly replacedBy: string }>
  | Event<'api-key.expiring', KeyExpiryEventData>
  | Event<'api-key.expired', KeyExpiryEventData>
  | Event<'api-key.revoked', { readonly keyId: string; readonly revokedAt: string }>
  | Event<'webhook.disabled', { readonly endpointId: string; readonly reason: string }>
  | Event<'day.closed', DayClosedEventData>
  | Event<'settlement.approved', SettlementEventData<'APPROVED'>>
  | Event<'settlement.paid', SettlementEventData<'PAID'> & SettlementBankData>
  | Event<'settlement.returned', SettlementEventData<'RETURNED'> & SettlementBankData>
  | Event<'webhook.test', Record<string, never>>;

export type WebhookEventType = WebhookEvent['type'];
