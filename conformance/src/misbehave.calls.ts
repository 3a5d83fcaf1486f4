import type { IncomingMessage, ServerResponse } from 'node:http';
import { messageOf } from './codes.ts';
import type { MemoryLedger, Result } from './misbehave.ledger.ts';
import { parse } from './probe.ts';

/** Requests and answers of the misbehaving server, in both variants and in the form of the portal. */

const PREFIXES = ['/merchant-client/v2', '/api/v2'];
const GIVE_UP = '/portal/v1/redemptions/give-up';

type Credentials = { readonly keyId: string; readonly secret: string; readonly portalToken: string };

/** A request of the interface that was understood. */
export type Received = {
  readonly name: 'balance' | 'redeem' | 'transaction' | 'give-up';
  readonly reference: string;
  /** Whether it is of variant A. The portal answers in its own form. */
  readonly isA: boolean;
  effect(): Result;
};

type Refused = { readonly status: number; readonly refusal: object };

const refuse = (status: number, statusCode: string): Refused => ({
  status,
  refusal: { statusCode, message: messageOf(statusCode), data: null },
});

/** Reads a request. Wrong credentials and what the interface does not have are refused. */
export function readCall(
  ledger: MemoryLedger,
  { keyId, secret, portalToken }: Credentials,
  { method, headers: { authorization } }: IncomingMessage,
  path: string,
  body: string,
): Received | Refused {
  const isPortal = path === GIVE_UP;
  const expected = isPortal ? `Bearer ${portalToken}` : `Basic ${btoa(`${keyId}:${secret}`)}`;
  if (authorization !== expected) return refuse(401, '01');
  const prefix = PREFIXES.find((each) => path.startsWith(`${each}/`));
  const isA = prefix === PREFIXES[0];
  const fields = body === '' ? {} : (parse(body) as Record<string, unknown> | undefined);
  if (!fields) return refuse(400, '30');
  const { code: full = fields['voucherCode'], pin: apart, amount, reference } = fields;
  const [code, pin] = [String(full).slice(0, 12), String(apart ?? String(full).slice(12))];
  if (isPortal && typeof reference === 'string')
    return { name: 'give-up', reference, isA, effect: () => ledger.giveUp(reference) };
  if (!prefix) return refuse(404, '98');
  const name = path.slice(prefix.length);
  if (method === 'POST' && name === '/balance')
    return { name: 'balance', reference: code, isA, effect: () => ledger.balance(code, pin) };
  if (method === 'POST' && name === '/redeem') {
    if (typeof reference !== 'string' || typeof amount !== 'number') return refuse(400, '30');
    return { name: 'redeem', reference, isA, effect: () => ledger.redeem(code, pin, amount, reference) };
  }
  const [, found] = /^\/transactions\/([^/]+)$/.exec(name) ?? [];
  if (method !== 'GET' || found === undefined) return refuse(404, '98');
  const wanted = decodeURIComponent(found);
  const nothing = { statusCode: isA ? '60' : '99', data: null };
  return { name: 'transaction', reference: wanted, isA, effect: () => ledger.find(wanted) ?? nothing };
}

const STATUSES: Readonly<Record<string, number>> = { '00': 200, '60': 404, '91': 503, '97': 429 };

/** The HTTP status and the body of a result, in the form of its door. */
function formOf({ name, isA }: Received, { statusCode, data }: Result): readonly [number, object] {
  const status = STATUSES[statusCode] ?? 400;
  if (name === 'give-up')
    return statusCode === '00' ? [200, data as object] : [status, { code: statusCode, status }];
  const isInB = !isA && status < 429;
  return [
    isInB ? 200 : status,
    { statusCode, message: messageOf(statusCode) ?? 'Transaction not found', data },
  ];
}

export function sendResult(response: ServerResponse, call: Received, result: Result, headers = {}): void {
  const [status, body] = formOf(call, result);
  answer(response, status, body, {
    ...(result.replayed && { 'idempotent-replayed': 'true' }),
    ...headers,
  });
}

/** Sends half of an answer, and breaks the connection. */
export function cutHalf(response: ServerResponse, call: Received, result: Result): void {
  const text = JSON.stringify(formOf(call, result)[1]);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(text.length * 2) });
  response.write(text.slice(0, text.length / 2), () => response.destroy());
}

/** A page, as a proxy sends it. */
export function sendPage(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'text/html' }).end('<!doctype html><title>Welcome</title>');
}

export function answer(response: ServerResponse, status: number, body: object, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
