import type { Asked, Voucher } from './dialects.ts';

/** What a test plants, and what it looks for. */

/** Codes, PINs and secrets where none belongs, and in requests that are refused. */
export function misplaced(prefix: string, { code, pin }: Voucher, secret: string): Asked[] {
  const both = code + pin;
  const post = (body: unknown): Asked => ({ method: 'POST', path: `${prefix}/redeem`, body });
  const get = (path: string): Asked => ({ method: 'GET', path: prefix + path });
  return [
    get(`/${code}/${pin}`),
    get(`/transactions/x%20?pin=${pin}&code=${code}&secret=${secret}`),
    get(`/vouchers/%00${both}`),
    get(`/%ZZ${both}`),
    post(`{"code": "${code}", "pin": "${pin}", `),
    post(`["${both}"]`),
    post({ code: Number(code), pin: Number(pin), amount: both, voucherCode: [code, pin] }),
    post({ code: `${code} `, pin: `${pin}x`, voucherCode: `${both}0`, amount: 1, reference: `CANCEL-${both}` }),
    post({ code, pin, voucherCode: both, amount: 1e30, reference: `\u0001${both}` }),
    post({ [both]: 1, code: { code, pin }, secret }),
  ];
}

/** Headers that hold what they should not. */
export function misplacedHeaders({ code, pin }: Voucher): Record<string, string> {
  const both = code + pin;
  return {
    'user-agent': both,
    'x-request-id': both,
    cookie: `code=${both}`,
    referer: `http://x/${both}`,
    origin: both,
  };
}

/**
 * Every way in which codes with their PINs, secrets, and the keys of a key ring could stand in a file.
 * @param keyRing its entries, `id:key`
 */
export function spellings(
  vouchers: readonly Voucher[],
  secrets: readonly string[],
  keyRing: readonly string[],
): string[] {
  const keys = keyRing.map((entry) => entry.slice(entry.indexOf(':') + 1));
  const texts = [...vouchers.flatMap(({ code, pin }) => [code, `${pin}${code}`]), ...secrets, ...keys];
  const spelled = texts.flatMap((text) => {
    const bytes = Buffer.from(text);
    // The last digit of a text in base64 depends on what stands behind it.
    return [text, bytes.toString('hex'), bytes.toString('base64').replace(/[A-Za-z0-9+/]?=+$/, '')];
  });
  const masters = keys.map((key) => Buffer.from(key, 'base64url'));
  return [...spelled, ...masters.flatMap((bytes) => [bytes.toString('latin1'), bytes.toString('hex')])];
}
