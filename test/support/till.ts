import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import type { ApiRequest, Dialect, Voucher } from './dialects.ts';
import { differing } from './differing.ts';
import {
  asOperator,
  type ListeningService,
  startListening,
  type TestService,
  testService,
} from './harness.ts';
import type { ListOf } from './list.ts';
import type { Scope } from './scope.ts';

type Wanted = NonNullable<Parameters<TestService['createMerchant']>[0]>;
type Merchant = Awaited<ReturnType<TestService['createMerchant']>>;
type Answer = Awaited<ReturnType<ListeningService['request']>>;

let references = 0;
const fresh = () => `made-${++references}`;

/** A merchant that sends requests to the service, and checks the answer of each in one line. */
export class Till {
  readonly testService: ListeningService;
  readonly merchant: Merchant;

  private constructor(listening: ListeningService, merchant: Merchant) {
    this.testService = listening;
    this.merchant = merchant;
  }

  /**
   * Creates a merchant of a fresh service, with every permission by default. The service ends with the test.
   */
  static async open(t: Scope, wanted: Wanted = {}): Promise<Till> {
    return Till.another(await testService(t), wanted);
  }

  /** Creates another merchant of a service. */
  static async another(listening: ListeningService, wanted: Wanted = {}): Promise<Till> {
    return new Till(listening, await listening.createMerchant({ permit: ['update-redemption'], ...wanted }));
  }

  /** The same merchant at a second process, which shares nothing but the database and the key ring. */
  async elsewhere(t: Scope): Promise<Till> {
    return this.at(await testService(t, this.testService));
  }

  /** The same merchant at another service on its database. */
  at(listening: ListeningService): Till {
    return new Till(listening, this.merchant);
  }

  ask(request: ApiRequest): Promise<Answer> {
    return this.testService.request(this.merchant, request);
  }

  /** Sends a request that must succeed. @returns the answer */
  async done(request: ApiRequest): Promise<Answer> {
    const answer = await this.ask(request);
    assert.deepEqual([answer.statusCode, answer.status, answer.body.message], ['00', 200, 'Success']);
    return answer;
  }

  /** Sends a request that must be refused with a code, and with its HTTP status in the dialect. */
  async refused(dialect: Pick<Dialect, 'statusOf'>, code: string, request: ApiRequest): Promise<Answer> {
    const answer = await this.ask(request);
    assert.deepEqual([answer.statusCode, answer.status], [code, dialect.statusOf(code)]);
    if (code !== '58') assert.equal(answer.data, null);
    return answer;
  }

  /** Vouchers of a new batch; without a value they are not active yet. */
  async vouchers<Count extends number>(
    quantity: Count,
    value: number | null = 25,
  ): Promise<ListOf<Voucher, Count>> {
    const body = { reference: fresh(), quantity, value };
    return (await this.done({ method: 'POST', path: '/api/v2/vouchers', body })).data.vouchers;
  }

  async voucher(value: number | null = 25): Promise<Voucher> {
    const [voucher] = await this.vouchers(1, value);
    return voucher;
  }

  /** Creates a product of a currency, with the terms of DEFAULT unless they are given. */
  product(code: string, terms: object = {}, currency = 'USD', decimals = 2) {
    const wanted = { ...productDefaults(currency, decimals), code, name: code, ...terms };
    return createProduct(asOperator(this.testService.service), wanted);
  }

  /** The balance of a voucher. */
  async balanceOf({ code, pin }: Voucher): Promise<number> {
    const body = { code, pin };
    return (await this.done({ method: 'POST', path: '/merchant-client/v2/balance', body })).data.balance;
  }

  /** Proves that every balance still follows from the journal. */
  async reconciles(): Promise<void> {
    assert.deepEqual(await differing(this.testService.service), []);
  }
}

/**
 * Starts a service for those tests of a file that neither move its clock nor change its products.
 * @returns a function that opens a till there, of a merchant of its own
 */
export function tillsOfOneService(): (wanted?: Wanted) => Promise<Till> {
  let listening: ListeningService | undefined;
  before(async () => {
    listening = await startListening();
  });
  after(() => listening?.stop());
  return (wanted) => Till.another(listening ?? assert.fail('the service has not started'), wanted);
}

/** Some fields of each item of a list, in their order. */
export const pick = (list: readonly Record<string, unknown>[], ...fields: string[]) =>
  list.map((each) => fields.map((field) => each[field]));

/** How many answers have each status code. */
export const countCodes = (answers: readonly { readonly statusCode: string }[]) =>
  Object.fromEntries(
    [...Map.groupBy(answers, ({ statusCode }) => statusCode)].map(([code, all]) => [code, all.length]),
  );

/** The PIN next to the right one. */
export function withWrongPin<T extends { readonly pin: string }>(voucher: T): T {
  return { ...voucher, pin: String((Number(voucher.pin) + 1) % 10_000).padStart(4, '0') };
}

/** A code that no voucher has. */
export const UNKNOWN: Voucher = { serialNumber: 999_999_999_999_999, code: '099999999999', pin: '1234' };
