import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Voucher } from './dialects.ts';

/** Codes, PINs and secrets that a test plants, and the search for them. */

type Misplaced = { method: string; path: string; body?: unknown; headers?: Record<string, string> };

/** Codes, PINs and secrets where none belongs, and in requests that are refused. */
export function misplaced(prefix: string, { code, pin }: Voucher, secret: string): Misplaced[] {
  const both = code + pin;
  const post = (body: unknown): Misplaced => ({ method: 'POST', path: `${prefix}/redeem`, body });
  const get = (path: string): Misplaced => ({ method: 'GET', path: prefix + path });
  return [
    get(`/${code}/${pin}`),
    get(`/transactions/x%20?pin=${pin}&code=${code}&secret=${secret}`),
    get(`/vouchers/%00${both}`),
    get(`/%ZZ${both}`),
    post(`{"code": "${code}", "pin": "${pin}", `),
    post(`["${both}"]`),
    post({ code: Number(code), pin: Number(pin), amount: both, voucherCode: [code, pin] }),
    post({
      code: `${code} `,
      pin: `${pin}x`,
      voucherCode: `${both}0`,
      amount: 1,
      reference: `CANCEL-${both}`,
    }),
    post({ code, pin, voucherCode: both, amount: 1e30, reference: `\u0001${both}` }),
    post({ [both]: 1, code: { code, pin }, secret }),
    // A body of another kind, or one that breaks off: a form, parts, another charset.
    ...MEDIA_TYPES.map((type) => ({
      ...post(`code=${code}&pin=${pin}&secret=${secret}`),
      headers: { 'content-type': type },
    })),
    {
      ...post(`{"code":"${code}","pin":"${pin}`),
      headers: { 'content-type': `application/json; boundary=${both}` },
    },
    post({
      code: [...code].join(' '),
      pin: wide(pin),
      voucherCode: wide(both),
      amount: 1,
      reference: 'spelled',
    }),
    post({ code, pin, voucherCode: both, amount: `1e400${both}`, reference: 'no number' }),
    // Longer than the limits of a head and of a body.
    get(`/${`${both}/`.repeat(1_200)}`),
    post(`{"code":"${both.repeat(5_000)}"}`),
    ...['HEAD', 'OPTIONS', 'PUT'].map((method) => ({ ...get(`/redeem/${both}?${secret}`), method })),
    // Outside of both prefixes.
    ...[`/docs/${both}`, `/${secret}`, `/healthz?${both}`, `/readyz?${secret}`].map((path) => ({
      method: 'GET',
      path,
    })),
  ];
}

const MEDIA_TYPES = [
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
];

/** The text with digits of full width. */
const wide = (text: string) => text.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)));

/** Bytes that are not HTTP, or not complete. */
export function misplacedBytes({ code, pin }: Voucher, secret: string): string[] {
  const both = code + pin;
  const head = `POST /api/v2/redeem HTTP/1.1\r\nHost: ${both}\r\nContent-Type: application/json\r\n`;
  return [
    `${both}\r\n\r\n`,
    `${both} /${secret} HTTP/1.1\r\n\r\n`,
    `GET /${both} HTTP/9.9\r\n\r\n`,
    `GET http://${both}:${secret}@x/${both} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    `CONNECT ${both}:443 HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /${both.repeat(2_000)} HTTP/1.1\r\n\r\n`,
    `${head}X: ${both.repeat(2_000)}\r\n\r\n`,
    `${head}${both}\r\n\r\n`,
    `${head}X: ${both}\0${secret}\r\n\r\n`,
    `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\nX: ${secret}\r\n\r\n${both}`,
    `${head}Transfer-Encoding: chunked\r\n\r\n${both};${secret}\r\n`,
    // The client hangs up in the middle.
    `${head}Content-Length: 100\r\n\r\n{"voucherCode":"${both}"`,
  ];
}

/** Searches the files of a folder. @returns the findings, the files, and whether one contains the control */
export async function findInFiles(
  folder: string,
  wanted: (path: string) => boolean,
  find: (what: string, text: string) => string[],
  control: string,
): Promise<{ found: string[]; files: string[]; control: boolean }> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter(wanted);
  const found: string[] = [];
  let isThere = false;
  for (const path of files) {
    // The database can remove a file meanwhile.
    const text = await readFile(path, 'latin1').catch(() => '');
    found.push(...find(path.slice(folder.length), text));
    isThere ||= text.includes(control);
  }
  return { found, files, control: isThere };
}

/** A server that has not answered after this time waits for more bytes. */
const SILENCE_MS = 100;

/** Sends bytes, hangs up after an answer or a silence, and returns the answer. */
export async function sendBytes(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  let text = '';
  const silence = setTimeout(() => socket.end(), SILENCE_MS);
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
    socket.end();
  });
  socket.write(bytes, 'latin1');
  await new Promise((resolve) => socket.once('close', resolve));
  clearTimeout(silence);
  return text;
}

/** Credentials in the wrong place and order. */
export function misplacedCredentials(
  { code, pin }: Voucher,
  secret: string,
  authorization: string,
): string[] {
  const both = code + pin;
  const keyIds = [code, both, secret.replaceAll('-', '_')].map((text) => `key_${text}:x`);
  return [`${secret}:${authorization}`, `${both}:${secret}`, `${code}:${pin}`, secret, both, ...keyIds];
}

/** Commands with codes and secrets in wrong places: each of them must fail. */
export function misplacedArguments({ code, pin }: Voucher, secret: string): string[][] {
  const both = code + pin;
  return [
    [both],
    ['voucher', both],
    ['voucher', 'show', both],
    ['voucher', 'show', `${code}-${pin}`],
    ['voucher', 'block', '1', code, pin],
    ['voucher', 'show', '1', `--pin=${both}`],
    ['voucher', 'show', '1', `--${secret}`],
    ['voucher', 'extend', '1', '--expiry', both],
    ['api-key', 'show', secret],
    ['api-key', 'revoke', `key_${both}`],
    ['api-key', 'create', '--merchant', code],
    ['api-key', 'create', '--merchant', '1', '--network', secret],
    ['keyring', 'drop', secret],
    ['merchant', 'permit', '1', secret],
    ['batch', 'show', both],
    ['product', 'create', '--code', 'X', '--name', 'X', '--currency', both],
    ['float', 'top-up', '--merchant', '1', '--amount', `${code}.${pin}x`],
    ['webhook', 'add', '--merchant', '1', '--url', `http://${both}:${secret}@127.0.0.1/`],
    ['webhook', 'add', '--merchant', '1', '--url', 'http://127.0.0.1/', '--event', secret],
    ['webhook', 'resend', '1', '--event', secret],
    ['audit', 'list', '--limit', secret],
    ['serve', '--processes', code],
  ];
}

/** Headers that hold codes and PINs. */
export function misplacedHeaders({ code, pin }: Voucher): Record<string, string> {
  const both = code + pin;
  return {
    'user-agent': both,
    'x-request-id': both,
    cookie: `code=${both}`,
    referer: `http://x/${both}`,
    origin: both,
    traceparent: `00-${both}${both}-${both}-01`,
    tracestate: `a=${both}`,
    baggage: `code=${code},pin=${pin}`,
    forwarded: `for=${both}`,
    'x-forwarded-for': both,
    'idempotency-key': both,
    'accept-encoding': both,
    'if-none-match': `"${both}"`,
    [`x-${both}`]: 'in the name',
  };
}

/**
 * Every form of codes with their PINs, of secrets, and of the keys of a key ring that a file could hold.
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
    // The last digit of a text in base64 depends on the bytes that follow it.
    return [text, bytes.toString('hex'), bytes.toString('base64').replace(/[A-Za-z0-9+/]?=+$/, '')];
  });
  const masters = keys.map((key) => Buffer.from(key, 'base64url'));
  return [...spelled, ...masters.flatMap((bytes) => [bytes.toString('latin1'), bytes.toString('hex')])];
}

type Anything = { method: string; path: string; body?: unknown; headers?: Record<string, string> };

/** Sends a request of any form, and returns the whole answer as text. */
export async function send(
  baseUrl: string,
  authorization: string,
  { method, path, body, headers: own }: Anything,
  headers: Record<string, string> = {},
) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(baseUrl + path, {
    method,
    headers: {
      authorization,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
      ...own,
    },
    ...(body !== undefined && { body: text }),
  });
  return {
    status: response.status,
    text: await response.text(),
    head: JSON.stringify([...response.headers]),
  };
}
