import { VARIANT_A } from '../http/variant-a/routes.ts';
import { VARIANT_B } from '../http/variant-b/routes.ts';

export type DemoVoucher = { readonly serialNumber: bigint; readonly code: string; readonly pin: string };

/** The orders of the curl lines. The caller has made the same orders, and so knows the codes. */
export const DEMO_ORDER = { quantity: 2, value: 50 } as const;
const ACTIVATION_VALUE = 25;

export type Demo = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  /** Makes the references of this round unique. */
  readonly run: string;
  /** A product whose vouchers carry their value once they are activated. */
  readonly productCode: string;
  /** A voucher of the order under `order-<run>`: that product, with a value. */
  readonly inA: DemoVoucher;
  /** A voucher of the order under `order-b-<run>`: the default product, without a value. */
  readonly inB: DemoVoucher;
};

/** The whole round in both variants, as curl lines that work as they are, in this order. */
export function curlRound({ baseUrl, keyId, secret, run, productCode, inA, inB }: Demo): string[] {
  // A line end after each answer, so that the next prompt does not follow it on the same line.
  const user = `-u ${keyId}:${secret} -w '\\n'`;
  const get = (path: string) => `curl ${user} ${baseUrl}${path}`;
  const post = (path: string, body: object) =>
    `curl ${user} ${baseUrl}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const { quantity, value } = DEMO_ORDER;
  const card = { code: inA.code, pin: inA.pin };
  const a = VARIANT_A.prefix;
  const b = VARIANT_B.prefix;
  return [
    `Demo merchant: key ${keyId}, secret ${secret}`,
    'The whole round in variant A, to paste line by line:',
    '',
    post(`${a}/vouchers`, { reference: `order-${run}`, productCode, quantity, amount: value }),
    get(`${a}/vouchers/order-${run}`),
    post(`${a}/activate`, { ...card, reference: `activation-${run}` }),
    post(`${a}/balance`, card),
    post(`${a}/redeem`, { ...card, amount: 12.5, reference: `sale-${run}` }),
    post(`${a}/redemptions/update`, { reference: `sale-${run}`, amountUsed: 10 }),
    get(`${a}/redemptions/update/sale-${run}`),
    get(`${a}/transactions/sale-${run}`),
    get(`${a}/transactions`),
    '',
    'The same in variant B, with vouchers whose value is given at activation:',
    '',
    post(`${b}/vouchers`, { reference: `order-b-${run}`, quantity }),
    get(`${b}/vouchers/order-b-${run}`),
    post(`${b}/activate`, {
      serialNumber: Number(inB.serialNumber),
      value: ACTIVATION_VALUE,
      reference: `activation-b-${run}`,
    }),
    post(`${b}/balance`, { voucherCode: inB.code, pin: inB.pin }),
    post(`${b}/redeem`, { voucherCode: `${inB.code}${inB.pin}`, amount: 5, reference: `sale-b-${run}` }),
    get(`${b}/transactions/sale-b-${run}`),
    get(`${b}/transactions`),
  ];
}
