import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { type Retry, Scrip, ScripError } from '../../sdk/src/index.ts';
import { standIn } from './stand-in.ts';

/** Servers with prepared answers, for tests of the client that need no service. */

export const CODE = '482913057641';
export const PIN = '0731';
export const SECRET = 'canary-of-the-secret';
export const voucher = { code: CODE, pin: PIN };

export type Answer = (
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
  requests: number,
) => void;

/** Starts a server with prepared answers, until the test ends. @returns its clients of both variants */
export async function answering(t: TestContext, answer: Answer) {
  let requests = 0;
  const { url: baseUrl } = await standIn(t, async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    answer(request, response, body, ++requests);
  });
  const retries: Retry[] = [];
  const onRetry = (retry: Retry) => retries.push(retry);
  const patience = { maxAttempts: 3, retryDelayMs: 1, attemptTimeoutMs: 2_000, onRetry };
  const options = { baseUrl, keyId: 'key', secret: SECRET, ...patience };
  return {
    a: new Scrip({ ...options, variant: 'a' }),
    b: new Scrip({ ...options, variant: 'b' }),
    retries,
    count: () => requests,
  };
}

export function json(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Waits for the error of a call that must fail. */
export async function failure<E extends ScripError = ScripError>(
  call: Promise<unknown>,
  type: abstract new (...args: never[]) => E = ScripError as never,
): Promise<E> {
  const error = await call.then(
    () => assert.fail('the call succeeded'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof type, String(error));
  return error;
}
