/** The status codes of the interface, with their messages. 60 has one for each call (rules.general.ts). */
const MESSAGES: Readonly<Record<string, string>> = {
  '00': 'Success',
  '01': 'Unauthorized',
  '03': 'Access denied',
  '04': 'Merchant suspended',
  '13': 'Invalid amount',
  '14': 'Invalid voucher',
  '15': 'Invalid product',
  '16': 'Invalid quantity',
  '17': 'Invalid expiry date',
  '18': 'Invalid reference',
  '30': 'Invalid request',
  '40': 'Voucher not active',
  '41': 'Voucher already activated',
  '42': 'Voucher already redeemed',
  '43': 'Voucher blocked',
  '44': 'Voucher canceled',
  '47': 'Voucher not accepted here',
  '50': 'Insufficient merchant balance',
  '51': 'Insufficient balance',
  '54': 'Voucher expired',
  '55': 'Invalid PIN',
  '58': 'Redemption already updated',
  '61': 'Amount outside limits',
  '75': 'PIN locked',
  '91': 'Service unavailable',
  '94': 'Reference already used',
  '96': 'Internal error',
  '97': 'Too many requests',
  '98': 'Unsupported request',
  '99': 'Transaction not found',
};

/** The message of a status code; undefined for a code that the interface does not have. */
export function messageOf(code: string): string | undefined {
  return MESSAGES[code];
}
