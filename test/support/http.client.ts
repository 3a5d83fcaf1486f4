import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { buildServer } from '../../src/http/server.ts';
import * as a from '../../src/http/variant-a.ts';
import * as b from '../../src/http/variant-b.ts';
import { startTestService, type TestService } from './harness.ts';

export type Voucher = { serialNumber: number; code: string; pin: string };

// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the tests are about.
type Called = { status: number; headers: Record<string, unknown>; text: string; body: any };

let references = 0;

/** A reference that has not been used. */
export const fresh = () => `ref-${++references}`;

/** A voucher code as it is shown to everyone but its sender. */
export const masked = (code: string) => `${code.slice(0, 4)}****${code.slice(8)}`;

/** A point in time, as answers show it. */
export const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** A client of a service of its own, for the tests of a file. */
export function httpClient() {
  let testService: TestService | undefined;
  let app: FastifyInstance;
  let authorization: string;
  before(async () => {
    testService = await startTestService();
    const merchant = await testService.createMerchant({ permit: ['update-redemption'], float: 1_000_000n });
    ({ authorization } = merchant);
    app = buildServer(testService.service);
    await app.ready();
  });
  after(async () => {
    await app?.close();
    await testService?.stop();
  });

  /** Sends a request as it is. @param own with the key of the merchant, unless they are others */
  const inject = (request: InjectOptions, own: Record<string, string> = { authorization }) =>
    app.inject({ ...request, headers: { ...own, ...request.headers } });

  async function call(method: 'GET' | 'POST', url: string, body?: unknown): Promise<Called> {
    const response = await inject({
      method,
      url,
      ...(method === 'POST' && { headers: { 'content-type': 'application/json' } }),
      ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return {
      status: response.statusCode,
      headers: response.headers,
      text: response.body,
      body: response.json(),
    };
  }

  async function newVoucher(value: number | null = 25): Promise<Voucher> {
    const { body } = await call('POST', '/api/v2/vouchers', { reference: fresh(), quantity: 1, value });
    assert.equal(body.statusCode, '00');
    return body.data.vouchers[0];
  }

  return { inject, call, newVoucher };
}

/** The two variants, and how each of them spells the same request. contract.txt has the fields of answers. */
export const A = {
  name: 'variant A',
  prefix: '/merchant-client/v2',
  refused: 400,
  missing: 404,
  generate: (reference: string, quantity: unknown, value: unknown) => ({
    reference,
    productCode: 'DEFAULT',
    quantity,
    amount: value,
  }),
  voucher: ({ code, pin }: Voucher) => ({ code, pin }),
  transaction: Object.keys(a.Transaction.properties),
  balance: Object.keys(a.BalanceData.properties),
};

export const B = {
  name: 'variant B',
  prefix: '/api/v2',
  refused: 200,
  missing: 200,
  generate: (reference: string, quantity: unknown, value: unknown) => ({ reference, quantity, value }),
  voucher: ({ code, pin }: Voucher) => ({ voucherCode: code, pin }),
  transaction: Object.keys(b.Transaction.properties),
  balance: Object.keys(b.BalanceData.properties),
};
