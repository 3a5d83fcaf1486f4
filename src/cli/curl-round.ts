import { VARIANT_A } from '../http/variant-a/routes.ts';
import { VARIANT_B } from '../http/variant-b/routes.ts';

export type DemoVoucher = { readonly serialNumber: bigint; readonly code: string; readonly pin: string };

export type Demo = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  /** Stands in every reference of this round, so that a second round has its own. */
  readonly run: string;
  /** Active, with a balance of at least 50. */
  readonly voucher: DemoVoucher;
  /** Not active yet, from a batch without a value. */
  readonly inactive: DemoVoucher;
};

const VALUE = 50;

/** The whole round in both variants, as curl lines that work as they are, in this order. */
export function curlRound({ baseUrl, keyId, secret, run, voucher, inactive }: Demo): string[] {
  // A line end after each answer, so that the next prompt stands on a line of its own.
  const user = `-u ${keyId}:${secret} -w '\\n'`;
  const get = (path: string) => `curl ${user} ${baseUrl}${path}`;
  const post = (path: string, body: object) =>
    `curl ${user} ${baseUrl}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const { code, pin } = voucher;
  const a = VARIANT_A.prefix;
  const b = VARIANT_B.prefix;
  return [
    `Demo merchant: key ${keyId}, secret ${secret}`,
    'The whole round, to paste line by line (variant A):',
    '',
    post(`${a}/vouchers`, { reference: `order-${run}`, productCode: 'DEFAULT', quantity: 2, amount: VALUE }),
    get(`${a}/vouchers/order-${run}`),
    post(`${a}/activate`, { code: inactive.code, pin: inactive.pin, reference: `activation-${run}` }),
    post(`${a}/balance`, { code, pin }),
    post(`${a}/redeem`, { code, pin, amount: 12.5, reference: `sale-${run}` }),
    post(`${a}/redemptions/update`, { reference: `sale-${run}`, amountUsed: 10 }),
    get(`${a}/redemptions/update/sale-${run}`),
    get(`${a}/transactions/sale-${run}`),
    get(`${a}/transactions`),
    '',
    'The same vouchers in variant B:',
    '',
    post(`${b}/vouchers`, { reference: `order-b-${run}`, quantity: 2, value: VALUE }),
    get(`${b}/vouchers/order-b-${run}`),
    post(`${b}/activate`, { serialNumber: Number(inactive.serialNumber), reference: `activation-${run}` }),
    post(`${b}/balance`, { voucherCode: code, pin }),
    post(`${b}/redeem`, { voucherCode: `${code}${pin}`, amount: 5, reference: `sale-b-${run}` }),
    get(`${b}/transactions/sale-b-${run}`),
    get(`${b}/transactions`),
  ];
}
