/** The status codes of the interface: the name of each for programs, and its words for developers. */
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
  // Variant B's look-up says so where variant A says 60: one name for one meaning.
  '99': ['notFound', 'Transaction not found'],
} as const satisfies Readonly<Record<string, readonly [string, string]>>;

export type StatusCode = keyof typeof STATUSES;

/** What the client itself has to tell. */
const OWN = {
  unknownOutcome: 'No answer came: whether the request had its effect is not known',
  networkFailure: 'The service could not be reached, or the connection broke',
  timedOut: 'The service did not answer in time',
  aborted: 'The call was aborted',
  invalidResponse: 'The answer is none of this interface',
  unsupportedByVariant: 'The variant of the interface has no such thing',
  batchNotCompleted: 'The batch is still in production',
  batchCanceled: 'The batch was canceled',
  unknownStatus: 'The service answered with a status code that this client does not know',
} as const;

type OwnName = keyof typeof OWN;

/** The name of an error, to decide by. */
export type CodeName = (typeof STATUSES)[StatusCode][0] | OwnName;

export function isStatusCode(code: string): code is StatusCode {
  return Object.hasOwn(STATUSES, code);
}

/** The name of a status code; `unknownStatus` for one that came after this client. */
export function nameOf(code: string): CodeName {
  return isStatusCode(code) ? STATUSES[code][0] : 'unknownStatus';
}

/** The words for a status code, or for what the client itself tells. */
export function wordsOf(code: StatusCode | OwnName): string {
  return isStatusCode(code) ? STATUSES[code][1] : OWN[code];
}

/** Every status code, for tests and tables. */
export const STATUS_CODES = Object.keys(STATUSES).sort() as readonly StatusCode[];
