import type { Request } from './attempt.ts';
import { downloadBatch, streamVouchers, waitForBatch } from './batches.ts';
import { Caller } from './caller.ts';
import {
  checkAmount,
  checkNewReference,
  checkObject,
  checkQuantity,
  checkReference,
  checkVoucher,
  Unsupported,
} from './check.ts';
import type { Dialect } from './dialect.ts';
import { settleUpdate, takeBatch, takeTransaction, takeUpdate, tellsOfRequest, tellsOfUpdate } from './effects.ts';
import { type Operation, ScripError } from './errors.ts';
import { currencyDecimals } from './money.ts';
import { readOptions, type ScripOptions } from './options.ts';
import { readBalance, readTransaction, readTransactions, readUpdate } from './read.ts';
import type {
  ActivateInput,
  Balance,
  Batch,
  BatchHead,
  CallOptions,
  DownloadOptions,
  GenerateInput,
  RedeemInput,
  RedemptionUpdate,
  Told,
  Transaction,
  UpdateRedemptionInput,
  Variant,
  Voucher,
  VoucherInput,
  WaitOptions,
} from './types.ts';
import { VARIANT_A } from './variant-a.ts';
import { VARIANT_B } from './variant-b.ts';

const get = (path: string, reference?: string): Request => ({
  method: 'GET',
  path: reference === undefined ? path : `${path}/${encodeURIComponent(reference)}`,
});
const post = (path: string, body: object): Request => ({ method: 'POST', path, body });

function dialectOf(variant: Variant): Dialect<Variant> {
  if (variant === 'a') return VARIANT_A as Dialect<Variant>;
  if (variant === 'b') return VARIANT_B as Dialect<Variant>;
  throw new TypeError("Scrip: variant must be 'a' or 'b'");
}

/**
 * A merchant's client. Every call can be repeated safely: what has an effect carries a reference, and is tried again under
 * it until it is answered or time is over.
 *
 * All calls throw ScripError; those that have an effect throw UnknownOutcomeError where nobody says what became of them.
 */
export class Scrip<V extends Variant> {
  readonly variant: V;
  readonly #baseUrl: string;
  readonly #keyId: string;
  readonly #dialect: Dialect<Variant>;
  readonly #decimals: number | undefined;
  readonly #caller: Caller;

  /** @throws TypeError for options that cannot work; its text never holds the secret */
  constructor(options: ScripOptions<V>) {
    this.variant = options.variant;
    this.#dialect = dialectOf(options.variant);
    const { baseUrl, keyId, connection, rules, confidential } = readOptions(options, this.#dialect.prefix);
    this.#baseUrl = baseUrl;
    this.#keyId = keyId;
    this.#decimals = options.currency === undefined ? undefined : currencyDecimals(options.currency);
    this.#caller = new Caller(connection, rules, options.language, confidential);
  }

  /**
   * Generates a batch of vouchers. Up to 10 are in the result; a larger batch is `PROCESSING`: wait for it by
   * `waitForBatch`, then read it by `downloadVouchers`.
   */
  async generate(request: GenerateInput<V>, options: CallOptions = {}): Promise<Batch & Told> {
    const reference = this.#newReference('generate', request);
    const body = this.#caller.check('generate', reference, () => {
      const quantity = checkQuantity(request.quantity);
      return this.#dialect.generate(request, { reference, quantity, decimals: this.#decimals });
    });
    const about = this.#caller.about('generate', reference);
    return this.#caller.effect(
      {
        about,
        request: post('/vouchers', body),
        take: (answer) => takeBatch(about, answer, reference),
        tells: tellsOfRequest,
        lookup: (how) =>
          orNull(async () => ({
            ...(await this.download(reference, how)),
            reference,
            replayed: true,
            requestId: null,
          })),
      },
      options,
    );
  }

  /** The batch that was generated under a reference, all of it in memory; `downloadVouchers` reads a large one as it comes. */
  async download(reference: string, options: CallOptions = {}): Promise<Batch> {
    return downloadBatch(this.#caller, reference, options);
  }

  /**
   * The vouchers of a completed batch, one by one as they come, of any quantity in the same small memory. A connection that
   * breaks is an error, never a short list; begin again then.
   */
  downloadVouchers(reference: string, options: DownloadOptions = {}): AsyncGenerator<Voucher, BatchHead, undefined> {
    return streamVouchers(this.#caller, reference, options);
  }

  /**
   * Waits until a batch is produced.
   * @throws ScripError `batchCanceled` where it never will be, `timedOut` where it takes too long
   */
  async waitForBatch(reference: string, options: WaitOptions = {}): Promise<BatchHead<'COMPLETED'>> {
    return waitForBatch(this.#caller, reference, options);
  }

  /** Activates a voucher: by code and PIN in variant A, by serial number in variant B. */
  async activate(request: ActivateInput<V>, options: CallOptions = {}): Promise<Transaction & Told> {
    const reference = this.#newReference('activate', request);
    const body = this.#caller.check('activate', reference, () =>
      this.#dialect.activate(request, { reference, decimals: this.#decimals }),
    );
    return this.#transact('ACTIVATION', 'activate', { reference, body, amount: undefined }, options);
  }

  /** What is on a voucher, and what of it can be redeemed now. */
  async balance(voucher: VoucherInput, options: CallOptions = {}): Promise<Balance> {
    const checked = this.#caller.check('balance', undefined, () => {
      checkObject(voucher);
      return checkVoucher(voucher);
    });
    const about = this.#caller.about('balance', undefined, Object.values(checked));
    const request = post('/balance', this.#dialect.balance(checked));
    return this.#caller.read(about, request, options, ({ data }) => readBalance(data));
  }

  /** Takes an amount from a voucher: all of it, or nothing. */
  async redeem(request: RedeemInput, options: CallOptions = {}): Promise<Transaction & Told> {
    const reference = this.#newReference('redeem', request);
    const { amount, body } = this.#caller.check('redeem', reference, () => {
      const voucher = checkVoucher(request);
      const amount = checkAmount(request.amount, 'amount', { decimals: this.#decimals });
      return { amount, body: this.#dialect.redeem(voucher, amount, reference) };
    });
    return this.#transact('REDEMPTION', 'redeem', { reference, body, amount }, options);
  }

  /**
   * Changes what a redemption took, once. The amount has no default: to give all of it back, call `reverseRedemption`.
   * Variant A only.
   */
  async updateRedemption(
    this: Scrip<'a'>,
    request: UpdateRedemptionInput,
    options: CallOptions = {},
  ): Promise<RedemptionUpdate & Told> {
    const { reference, amountUsed } = this.#caller.check('updateRedemption', undefined, () => {
      checkObject(request);
      const amountUsed = checkAmount(request['amountUsed'], 'amountUsed', { decimals: this.#decimals, least: 'zero' });
      return { reference: checkReference(request['reference']), amountUsed };
    });
    return this.#update('updateRedemption', reference, amountUsed, options);
  }

  /** Gives all that a redemption took back to the voucher. Variant A only. */
  async reverseRedemption(
    this: Scrip<'a'>,
    reference: string,
    options: CallOptions = {},
  ): Promise<RedemptionUpdate & Told> {
    this.#caller.check('reverseRedemption', undefined, () => checkReference(reference));
    return this.#update('reverseRedemption', reference, 0, options);
  }

  /** What the update of a redemption came to. Variant A only. */
  async redemptionUpdate(this: Scrip<'a'>, reference: string, options: CallOptions = {}): Promise<RedemptionUpdate> {
    this.#requireUpdates('redemptionUpdate');
    this.#caller.check('redemptionUpdate', undefined, () => checkReference(reference));
    const about = this.#caller.about('redemptionUpdate', reference);
    return this.#caller.read(about, get('/redemptions/update', reference), options, ({ data }) => readUpdate(data));
  }

  /**
   * The transaction in force under a reference: the redemption, or what an update put in its place, else the activation.
   * @throws ScripError `notFound` where there is none
   */
  async transaction(reference: string, options: CallOptions = {}): Promise<Transaction> {
    this.#caller.check('transaction', undefined, () => checkReference(reference));
    const about = this.#caller.about('transaction', reference);
    return this.#caller.read(about, get('/transactions', reference), options, ({ data }) => readTransaction(data));
  }

  /** The most recent transactions, newest first, at most 50. */
  async transactions(options: CallOptions = {}): Promise<Transaction[]> {
    const about = this.#caller.about('transactions');
    return this.#caller.read(about, get('/transactions'), options, ({ data }) => readTransactions(data));
  }

  /** For logs: without the secret. */
  toJSON(): Record<string, unknown> {
    return { baseUrl: this.#baseUrl, variant: this.variant, keyId: this.#keyId };
  }

  toString(): string {
    return `Scrip(${this.#baseUrl}, variant ${this.variant})`;
  }

  /** What Node's console shows. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** The reference that something new is done under: the caller's, or a new one. */
  #newReference(operation: Operation, request: { readonly reference?: string | undefined }): string {
    return this.#caller.check(operation, undefined, () => {
      checkObject(request);
      const { reference } = request;
      return reference === undefined ? crypto.randomUUID() : checkNewReference(reference);
    });
  }

  #transact(
    type: 'ACTIVATION' | 'REDEMPTION',
    operation: 'activate' | 'redeem',
    { reference, body, amount }: { reference: string; body: object; amount: number | undefined },
    options: CallOptions,
  ): Promise<Transaction & Told> {
    const { code, voucherCode, pin } = body as { readonly [Field in 'code' | 'voucherCode' | 'pin']?: string };
    const confidential = [code, voucherCode, pin].filter((value) => value !== undefined);
    const about = this.#caller.about(operation, reference, confidential);
    return this.#caller.effect(
      {
        about,
        request: post(`/${operation}`, body),
        take: (answer) => takeTransaction(about, answer, { type, reference, amount }),
        tells: tellsOfRequest,
        lookup: (how) =>
          orNull(async () => {
            const found = await this.transaction(reference, how);
            return found.transactionType === type ? { ...found, reference, replayed: true, requestId: null } : null;
          }),
      },
      options,
    );
  }

  #update(
    operation: 'updateRedemption' | 'reverseRedemption',
    reference: string,
    amountUsed: number,
    options: CallOptions,
  ): Promise<RedemptionUpdate & Told> {
    const body = this.#requireUpdates(operation)(reference, amountUsed);
    const about = this.#caller.about(operation, reference);
    return this.#caller.effect(
      {
        about,
        request: { ...post('/redemptions/update', body), isAnsweredOnce: true },
        take: (answer) => takeUpdate(about, answer, reference, amountUsed),
        tells: tellsOfUpdate,
        settle: (error) => settleUpdate(error, reference, amountUsed),
        lookup: (how) =>
          orNull(async () => {
            const found = await (this as unknown as Scrip<'a'>).redemptionUpdate(reference, how);
            const isOurs = found.summary.newAmount === amountUsed;
            return isOurs ? { ...found, reference, replayed: true, requestId: null } : null;
          }),
      },
      options,
    );
  }

  #requireUpdates(operation: Operation): NonNullable<Dialect<Variant>['update']> {
    return this.#caller.check(operation, undefined, () => {
      const { update } = this.#dialect;
      if (!update) throw new Unsupported(`variant ${this.variant} has no ${operation}`);
      return update;
    });
  }
}

/** What a look finds, or null where it finds nothing. */
async function orNull<T>(look: () => Promise<T>): Promise<T | null> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof ScripError && error.code === 'notFound') return null;
    throw error;
  }
}
