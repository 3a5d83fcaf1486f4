/** Requests and responses as they are sent. A test compares these types with the service's schemas. */

export type WireFieldError = { field: string; rule: string; message: string };

export type WireGenerateA = { reference: string; productCode: string; quantity: number; amount: number };
export type WireActivateA = { pin: string; code: string; reference?: string | null };
export type WireBalanceRequestA = { pin: string; code: string };
export type WireRedeemA = { pin: string; code: string; amount: number; reference?: string | null };
export type WireUpdateA = { reference: string; amountUsed?: number };

export type WireGenerateB = {
  quantity: number;
  reference: string;
  value?: number | null;
  expiryDate?: string | null;
};
export type WireActivateB = { serialNumber: number; value?: number | null; reference: string };
export type WireBalanceRequestB = { voucherCode: string; pin?: string | null };
export type WireRedeemB = { voucherCode: string; pin?: string | null; amount: number; reference: string };

export type WireVoucher = { serialNumber: number; code: string; pin: string };
export type WireBatch = {
  reference: string;
  transactionId: string;
  status: 'PROCESSING' | 'COMPLETED' | 'CANCELED';
  expiryDate: string;
  value: number | null;
  vouchers?: WireVoucher[];
};

export type WireTransactionB = {
  transactionId: string;
  transactionType: 'ACTIVATION' | 'REDEMPTION';
  amount: number;
  timestamp: string;
  reference: string | null;
  voucherCode: string;
  serialNumber: string;
};
export type WireTransactionA = Omit<WireTransactionB, 'transactionType'> & {
  transactionType: 'ACTIVATION' | 'REDEMPTION' | 'REDEMPTION_REVERSAL';
  refundStatus: string | null;
  note: string | null;
};

export type WireBalanceB = {
  serialNumber: number;
  voucherCode: string;
  balance: number;
  usableAmount: number;
  transactions: {
    transactionId: string;
    transactionType: 'ACTIVATION' | 'REDEMPTION';
    amount: number;
    timestamp: string;
    reference: string | null;
  }[];
};
export type WireBalanceA = WireBalanceB & { value: number | null };

export type WireUpdateResult = {
  originalTransaction: WireTransactionA;
  cancellationTransaction: WireTransactionA;
  newTransaction: WireTransactionA | null;
  transactions: WireTransactionA[];
  summary: { originalAmount: number; newAmount: number; reference: string };
};
