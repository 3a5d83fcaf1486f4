/**
 * The requests of each variant, so that a test of both runs `for (const dialect of DIALECTS)`.
 */

export type Voucher = { readonly serialNumber: number; readonly code: string; readonly pin: string };

export type ApiRequest = { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: unknown };

export type Dialect = {
  readonly name: string;
  readonly prefix: string;
  /** The HTTP status that a refusal comes with. */
  statusOf(code: string): number;
  generate(reference: string, quantity: number, value: number): ApiRequest;
  download(reference: string): ApiRequest;
  /** By code and PIN in A, by serial number in B. */
  activate(voucher: Voucher, reference: string): ApiRequest;
  balance(voucher: Voucher): ApiRequest;
  redeem(voucher: Voucher, amount: number, reference: string): ApiRequest;
  lookup(reference: string): ApiRequest;
  list(): ApiRequest;
  /** The status code of a lookup that finds nothing. */
  readonly notFound: '60' | '99';
};

const PREFIX_A = '/merchant-client/v2';
const PREFIX_B = '/api/v2';

const post = (path: string, body: unknown): ApiRequest => ({ method: 'POST', path, body });
const get = (path: string): ApiRequest => ({ method: 'GET', path });
const encode = encodeURIComponent;

/** The same in both variants. Updates are A's alone. */
export const update = (reference: string, amountUsed?: number): ApiRequest =>
  post(`${PREFIX_A}/redemptions/update`, { reference, ...(amountUsed !== undefined && { amountUsed }) });
export const updateDetails = (reference: string): ApiRequest =>
  get(`${PREFIX_A}/redemptions/update/${encode(reference)}`);

/** HTTP statuses that both variants share, for what is refused before the request is read. */
const TRANSPORT: Readonly<Record<string, number>> = { '01': 401, '97': 429, '91': 503, '96': 500 };
const STATUSES_A: Readonly<Record<string, number>> = { '00': 200, '03': 403, '04': 403, '60': 404 };

function reads(prefix: string) {
  return {
    prefix,
    download: (reference: string) => get(`${prefix}/vouchers/${encode(reference)}`),
    lookup: (reference: string) => get(`${prefix}/transactions/${encode(reference)}`),
    list: () => get(`${prefix}/transactions`),
  };
}

export const DIALECTS: [Dialect, Dialect] = [
  {
    name: 'variant A',
    ...reads(PREFIX_A),
    statusOf: (code) => TRANSPORT[code] ?? STATUSES_A[code] ?? 400,
    generate: (reference, quantity, value) =>
      post(`${PREFIX_A}/vouchers`, { reference, productCode: 'DEFAULT', quantity, amount: value }),
    activate: ({ code, pin }, reference) => post(`${PREFIX_A}/activate`, { code, pin, reference }),
    balance: ({ code, pin }) => post(`${PREFIX_A}/balance`, { code, pin }),
    redeem: ({ code, pin }, amount, reference) =>
      post(`${PREFIX_A}/redeem`, { code, pin, amount, reference }),
    notFound: '60',
  },
  {
    name: 'variant B',
    ...reads(PREFIX_B),
    statusOf: (code) => TRANSPORT[code] ?? 200,
    generate: (reference, quantity, value) => post(`${PREFIX_B}/vouchers`, { reference, quantity, value }),
    activate: ({ serialNumber }, reference) => post(`${PREFIX_B}/activate`, { serialNumber, reference }),
    balance: ({ code, pin }) => post(`${PREFIX_B}/balance`, { voucherCode: code, pin }),
    redeem: ({ code, pin }, amount, reference) =>
      post(`${PREFIX_B}/redeem`, { voucherCode: code + pin, amount, reference }),
    notFound: '99',
  },
];

/** Each by its name. */
export const [A, B] = DIALECTS;
