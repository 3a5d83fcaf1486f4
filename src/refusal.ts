/**
 * The closed list of declines. Every door (each dialect of the API, the command line) reports them in its own
 * form, from a table that must contain all of them: a new refusal does not compile until every door has
 * decided.
 *
 * The list is in order of precedence: if two refusals apply, the earlier one is reported
 * (docs/reference/status-codes.md). The last two have no place in this order.
 */
const LIST = [
  ['98', 'Unsupported request'],
  ['01', 'Unauthorized'],
  ['97', 'Too many requests'],
  ['04', 'Merchant suspended'],
  ['30', 'Invalid request'],
  ['18', 'Invalid reference'],
  ['16', 'Invalid quantity'],
  ['13', 'Invalid amount'],
  ['03', 'Access denied'],
  ['94', 'Reference already used'],
  ['17', 'Invalid expiry date'],
  ['15', 'Invalid product'],
  ['61', 'Amount outside limits'],
  ['14', 'Invalid voucher'],
  ['75', 'PIN locked'],
  ['55', 'Invalid PIN'],
  ['44', 'Voucher canceled'],
  ['43', 'Voucher blocked'],
  ['54', 'Voucher expired'],
  ['40', 'Voucher not active'],
  ['41', 'Voucher already activated'],
  ['47', 'Voucher not accepted here'],
  ['42', 'Voucher already redeemed'],
  ['58', 'Redemption already updated'],
  ['51', 'Insufficient balance'],
  ['50', 'Insufficient merchant balance'],
  ['60', 'Not found'],
  ['91', 'Service unavailable'],
] as const;

export type RefusalCode = (typeof LIST)[number][0];

/** What a limit refuses (`03`), by the outcome of the functions of sql/. */
const OVER_LIMIT = {
  'key-issue': 'the daily limit of this key for issuing vouchers',
  'key-redeem': 'the daily limit of this key for redemptions',
  'merchant-issue': 'the daily limit of this merchant for issuing vouchers',
  'merchant-redeem': 'the daily limit of this merchant for redemptions',
  'product-outstanding': 'the limit of this product for outstanding vouchers',
} as const;

export type Limit = keyof typeof OVER_LIMIT;

/** Why a function of sql/ declines a request. */
export type Decline = RefusalCode | Limit;

const isOverLimit = (decline: Decline): decline is Limit => Object.hasOwn(OVER_LIMIT, decline);

export const codeOf = (decline: Decline): RefusalCode => (isOverLimit(decline) ? '03' : decline);

/** The message of each refusal. */
export const REFUSALS = Object.fromEntries(LIST) as Readonly<Record<RefusalCode, string>>;

/**
 * The codes in order of precedence. The keys of an object do not keep this order: keys that look like numbers
 * come first.
 */
export const PRECEDENCE: readonly RefusalCode[] = LIST.map(([code]) => code);

/** A refused value: its field, the rule that it breaks, and how to correct it. Never the value itself. */
export type FieldError = { readonly field: string; readonly rule: string; readonly message: string };

/**
 * A request that is valid but declined. Nothing has changed. `details.data` is the data of the answer (for
 * `58`, the result of the first update).
 */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly errors: readonly FieldError[] | undefined;
  readonly data: unknown;
  readonly retryAfterSeconds: number | undefined;
  /** The limit that a value of the request exceeds, in words, if it is known. */
  readonly limit: string | undefined;

  constructor(
    code: RefusalCode,
    details: {
      message?: string;
      errors?: readonly FieldError[];
      data?: unknown;
      retryAfterSeconds?: number;
      limit?: string;
    } = {},
  ) {
    // A refusal is an answer, not a bug. Nobody needs its stack trace, which takes a tenth of a call's time.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(details.message ?? REFUSALS[code]);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'Refusal';
    this.code = code;
    this.errors = details.errors;
    this.data = details.data;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.limit = details.limit;
  }
}

/** A request above a limit. It is the only refusal whose message in the API says more than its code. */
export class OverLimit extends Refusal {
  constructor(limit: Limit) {
    super('03', { message: `${REFUSALS['03']}: ${OVER_LIMIT[limit]} is reached` });
  }
}

export const refusalOf = (decline: Decline): Refusal =>
  isOverLimit(decline) ? new OverLimit(decline) : new Refusal(decline);
