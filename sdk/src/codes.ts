/** The causes of failed calls: the status codes of the interface, and errors found by the client. */

/** The name of each status code for programs, and its text for developers. */
const STATUSES = {
  '01': ['unauthorized', 'Unauthorized'],
  '03': ['accessDenied', 'Access denied'],
  '04': ['merchantSuspended', 'Merchant suspended'],
  '13': ['invalidAmount', 'Invalid amount'],
  '14': ['invalidVoucher', 'Invalid voucher'],
  '15': ['invalidProduct', 'Invalid product'],
  '16': ['invalidQuantity', 'Invalid quantity'],
  '17': ['invalidExpiryDate', 'Invalid expiry date'],
  '18': ['invalidReference', 'Invalid reference'],
  '30': ['invalidRequest', 'Invalid request'],
  '40': ['voucherNotActive', 'Voucher not active'],
  '41': ['voucherAlreadyActivated', 'Voucher already activated'],
  '42': ['voucherAlreadyRedeemed', 'Voucher already redeemed'],
  '43': ['voucherBlocked', 'Voucher blocked'],
  '44': ['voucherCanceled', 'Voucher canceled'],
  '47': ['voucherNotAccepted', 'Voucher not accepted here'],
  '50': ['insufficientMerchantBalance', 'Insufficient merchant balance'],
  '51': ['insufficientBalance', 'Insufficient balance'],
  '54': ['voucherExpired', 'Voucher expired'],
  '55': ['invalidPin', 'Invalid PIN'],
  '58': ['redemptionAlreadyUpdated', 'Redemption already updated'],
  '60': ['notFound', 'Not found'],
  '61': ['amountOutsideLimits', 'Amount outside limits'],
  '75': ['pinLocked', 'PIN locked'],
  '91': ['serviceUnavailable', 'Service unavailable'],
  '94': ['referenceAlreadyUsed', 'Reference already used'],
  '96': ['internalError', 'Internal error'],
  '97': ['tooManyRequests', 'Too many requests'],
  '98': ['unsupportedRequest', 'Unsupported request'],
  // The lookup of variant B, where variant A answers 60.
  '99': ['notFound', 'Transaction not found'],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

export type StatusCode = keyof typeof STATUSES;

const CLIENT = {
  unknownOutcome: 'There was no response: whether the request had its effect is not known',
  networkFailure: 'The service could not be reached, or the connection broke',
  timedOut: 'The service did not respond in time',
  aborted: 'The call was aborted',
  storeFailure: 'The call could not be kept, so it was not sent',
  undone: 'The redemption was undone: it is no payment',
  invalidResponse: 'The response is not one of this interface',
  unsupportedByVariant: 'The variant of the interface does not support this',
  batchNotCompleted: 'The batch is still being produced',
  batchCanceled: 'The batch was canceled',
  unknownStatus: 'The service responded with a status code that this client does not know',
} as const;

export type ClientCode = keyof typeof CLIENT;

/** The name of an error, to decide by. */
export type CodeName = (typeof STATUSES)[StatusCode][0] | ClientCode;

/** Every status code, for tests and tables. */
export const STATUS_CODES = Object.keys(STATUSES).sort() as readonly StatusCode[];

/** The name of a status code; `unknownStatus` for one that is newer than this client. */
export function nameOf(code: string): CodeName {
  return Object.hasOwn(STATUSES, code) ? STATUSES[code as StatusCode][0] : 'unknownStatus';
}

/** The text of a status code, or of a code of the client. */
export function textOf(code: string): string {
  if (Object.hasOwn(STATUSES, code)) return STATUSES[code as StatusCode][1];
  return CLIENT[Object.hasOwn(CLIENT, code) ? (code as ClientCode) : 'unknownStatus'];
}
