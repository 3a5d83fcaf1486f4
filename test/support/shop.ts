import { setTimeout as sleep } from 'node:timers/promises';
import { basic } from './harness.ts';
import type { Installation } from './installation.ts';

type Answer = { readonly statusCode: string; readonly data: Record<string, unknown> };
type Card = { readonly code: string; readonly pin: string };

export type Shop = {
  readonly merchantId: string;
  /** Vouchers of 1,000 each. */
  readonly cards: readonly Card[];
  /** Sends a call of variant B. */
  call(path: string, body?: object): Promise<Answer>;
  /** Redeems one cent of a card, again as long as a busy machine declines it. */
  redeem(card: Card, reference: string): Promise<Answer>;
  /** How many cents of all cards were redeemed. */
  spent(): Promise<number>;
};

const QUANTITY = 10;
const VALUE = 1_000;
const OVERLOADED = '91';

/**
 * Opens a shop at a service: a merchant with vouchers, who calls the service as a till does. It is created
 * with the options of `merchant create` that are given.
 */
export async function openShop(
  installation: Installation,
  url: string,
  ...options: readonly string[]
): Promise<Shop> {
  const { id, keyId, secret } = await installation.json(
    ...['merchant', 'create', '--name', 'Shop', '--float', '100000', ...options],
  );
  const headers = { authorization: basic(keyId, secret), 'content-type': 'application/json' };
  const call = async (path: string, body?: object) => {
    const method = body ? 'POST' : 'GET';
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    return (await fetch(`${url}/api/v2${path}`, init)).json() as Promise<Answer>;
  };
  const { data } = await call('/vouchers', { reference: 'stock', quantity: QUANTITY, value: VALUE });
  const cards = data['vouchers'] as Card[];
  return {
    merchantId: id,
    cards,
    call,
    async redeem({ code, pin }, reference) {
      for (;;) {
        const answer = await call('/redeem', { voucherCode: code, pin, amount: 0.01, reference });
        if (answer.statusCode !== OVERLOADED) return answer;
        await sleep(20);
      }
    },
    async spent() {
      let cents = 0;
      for (const { code, pin } of cards) {
        const { data: found } = await call('/balance', { voucherCode: code, pin });
        cents += VALUE * 100 - Math.round(Number(found['balance']) * 100);
      }
      return cents;
    },
  };
}
