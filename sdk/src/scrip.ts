import { downloadBatch, streamVouchers, waitForBatch } from './batches.ts';
import { Caller } from './call.ts';
import {
  checkAmount,
  checkNewReference,
  checkObject,
  checkQuantity,
  checkReference,
  checkVoucher,
  currencyDecimals,
  refuse,
  Unsupported,
} from './check.ts';
import {
  provesNoEffect,
  provesNoUndoing,
  provesNoUpdate,
  recoverUpdate,
  takeBatch,
  takeTransaction,
  takeUpdate,
} from './effects.ts';
import { type Operation, orNull } from './errors.ts';
import { type Connection, get, post } from './http.ts';
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
  Receipt,
  RedeemInput,
  RedemptionUpdate,
  Transaction,
  Undone,
  UpdateRedemptionInput,
  Variant,
  Voucher,
  VoucherInput,
  WaitOptions,
} from './types.ts';
import { GIVE_UP, takeUndone, UndoneReferences } from './undo.ts';
import { type Dialect, dialectOf } from './variants.ts';

/**
 * A merchant's client. Calls that have an effect carry a reference and are repeated under it until there
 * is a response or the time is over, so they are safe to repeat.
 *
 * All calls throw ScripError; those that have an effect throw UnknownOutcomeError where it is not known
 * whether they had it.
 */
export class Scrip<V extends Variant> {
  readonly variant: V;
  readonly #baseUrl: string;
  readonly #keyId: string;
  readonly #dialect: Dialect<Variant>;
  readonly #decimals: number | undefined;
  readonly #portal: Connection | undefined;
  readonly #undone = new UndoneReferences();
  readonly #caller: Caller;

  /** @throws TypeError for options that cannot work */
  constructor(options: ScripOptions<V>) {
    this.variant = options.variant;
    this.#dialect = dialectOf(options.variant);
    const { baseUrl, keyId, connection, portal, rules, confidential } = readOptions(
      options,
      this.#dialect.prefix,
    );
    this.#baseUrl = baseUrl;
    this.#portal = portal;
    this.#keyId = keyId;
    this.#decimals = options.currency === undefined ? undefined : currencyDecimals(options.currency);
    this.#caller = new Caller(connection, rules, { language: options.language, confidential });
  }

  /**
   * Generates a batch of vouchers. Up to 10 are in the result; a larger batch is `PROCESSING`: wait for it by
   * `waitForBatch`, then read it by `downloadVouchers`.
   */
  async generate(request: GenerateInput<V>, options: CallOptions = {}): Promise<Batch & Receipt> {
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
        proves: provesNoEffect,
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

  /** The batch that was generated under a reference, in memory; `downloadVouchers` streams a large one. */
  async download(reference: string, options: CallOptions = {}): Promise<Batch> {
    return downloadBatch(this.#caller, reference, options);
  }

  /**
   * The vouchers of a completed batch as a stream: any quantity takes the same memory. A connection that
   * breaks is an error, never a short list; begin again then.
   */
  downloadVouchers(
    reference: string,
    options: DownloadOptions = {},
  ): AsyncGenerator<Voucher, BatchHead, undefined> {
    return streamVouchers(this.#caller, reference, options);
  }

  /**
   * Waits until a batch is produced.
   * @throws ScripError `batchCanceled`, or `timedOut` where it takes too long
   */
  async waitForBatch(reference: string, options: WaitOptions = {}): Promise<BatchHead<'COMPLETED'>> {
    return waitForBatch(this.#caller, reference, options);
  }

  /** Activates a voucher: by code and PIN in variant A, by serial number in variant B. */
  async activate(request: ActivateInput<V>, options: CallOptions = {}): Promise<Transaction & Receipt> {
    const reference = this.#newReference('activate', request);
    const body = this.#caller.check('activate', reference, () =>
      this.#dialect.activate(request, { reference, decimals: this.#decimals }),
    );
    return this.#transact('ACTIVATION', 'activate', { reference, body, amount: undefined }, options);
  }

  /** The balance of a voucher, and how much of it can be redeemed now. */
  async balance(voucher: VoucherInput, options: CallOptions = {}): Promise<Balance> {
    const checked = this.#caller.check('balance', undefined, () => {
      checkObject(voucher);
      return checkVoucher(voucher);
    });
    const about = this.#caller.about('balance', undefined, Object.values(checked));
    const request = post('/balance', this.#dialect.balance(checked));
    return this.#caller.read(about, request, options, ({ data }) => readBalance(data));
  }

  /** Takes an amount from a voucher: the whole amount, or nothing. */
  async redeem(request: RedeemInput, options: CallOptions = {}): Promise<Transaction & Receipt> {
    const reference = this.#newReference('redeem', request);
    const { amount, body } = this.#caller.check('redeem', reference, () => {
      const voucher = checkVoucher(request);
      const amount = checkAmount(request.amount, 'amount', { decimals: this.#decimals });
      return { amount, body: this.#dialect.redeem(voucher, amount, reference) };
    });
    return this.#transact('REDEMPTION', 'redeem', { reference, body, amount }, options);
  }

  /**
   * Changes the amount of a redemption, once. The amount has no default: to reverse the redemption, call
   * `reverseRedemption`. Variant A only.
   */
  async updateRedemption(
    this: Scrip<'a'>,
    request: UpdateRedemptionInput,
    options: CallOptions = {},
  ): Promise<RedemptionUpdate & Receipt> {
    const { reference, amountUsed } = this.#caller.check('updateRedemption', undefined, () => {
      checkObject(request);
      const amountUsed = checkAmount(request['amountUsed'], 'amountUsed', {
        decimals: this.#decimals,
        least: 'zero',
      });
      return { reference: checkReference(request['reference']), amountUsed };
    });
    return this.#update('updateRedemption', reference, amountUsed, options);
  }

  /** Gives the whole amount of a redemption back to the voucher. Variant A only. */
  async reverseRedemption(
    this: Scrip<'a'>,
    reference: string,
    options: CallOptions = {},
  ): Promise<RedemptionUpdate & Receipt> {
    this.#caller.check('reverseRedemption', undefined, () => checkReference(reference));
    return this.#update('reverseRedemption', reference, 0, options);
  }

  /**
   * Gives a redemption up whose outcome is unknown, or which nobody wants any more. If it was booked, it is
   * reversed; if not, it never will be, also when its request arrives later. Needs `portalToken`. Safe to
   * repeat, and to call while `redeem` is still waiting, which then ends with the error `undone` or
   * `referenceAlreadyUsed`. Do not use the reference again.
   * @throws ScripError `redemptionAlreadyUpdated` if it was changed to another amount, which is not undone
   */
  async undo(reference: string, options: CallOptions = {}): Promise<Undone> {
    const connection = this.#caller.check('undo', undefined, () => {
      checkNewReference(reference);
      return this.#portal ?? refuse('01', 'portalToken', 'required', 'must be given to the client for undo');
    });
    const about = this.#caller.about('undo', reference);
    const undone = await this.#caller.effect(
      {
        about,
        connection,
        request: post(GIVE_UP, { reference, keyId: this.#keyId }),
        take: (answer) => takeUndone(about, answer),
        proves: provesNoUndoing,
        // No lookup shows whether a request that is still on its way was given up.
        lookup: async () => null,
      },
      options,
    );
    this.#undone.add(reference);
    return undone;
  }

  /** The result of the update of a redemption. Variant A only. */
  async redemptionUpdate(
    this: Scrip<'a'>,
    reference: string,
    options: CallOptions = {},
  ): Promise<RedemptionUpdate> {
    this.#requireUpdates('redemptionUpdate');
    this.#caller.check('redemptionUpdate', undefined, () => checkReference(reference));
    const about = this.#caller.about('redemptionUpdate', reference);
    return this.#caller.read(about, get('/redemptions/update', reference), options, ({ data }) =>
      readUpdate(data),
    );
  }

  /**
   * The active transaction under a reference: the redemption, as updated, else the activation.
   * @throws ScripError `notFound` where there is none, also after a full reversal
   */
  async transaction(reference: string, options: CallOptions = {}): Promise<Transaction> {
    this.#caller.check('transaction', undefined, () => checkReference(reference));
    const about = this.#caller.about('transaction', reference);
    return this.#caller.read(about, get('/transactions', reference), options, ({ data }) =>
      readTransaction(data),
    );
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

  /** For Node's console. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** The reference of something new: the caller's, or a generated one. */
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
  ): Promise<Transaction & Receipt> {
    const { code, voucherCode, pin } = body as { code?: string; voucherCode?: string; pin?: string };
    const confidential = [code, voucherCode, pin].filter((value) => value !== undefined);
    const about = this.#caller.about(operation, reference, confidential);
    return this.#caller.effect(
      {
        about,
        request: post(`/${operation}`, body),
        take: (answer) => {
          const transaction = takeTransaction(about, answer, { type, reference, amount });
          if (type === 'REDEMPTION') this.#undone.refuse(about, reference);
          return transaction;
        },
        proves: provesNoEffect,
        lookup: (how) =>
          orNull(async () => {
            const found = await this.transaction(reference, how);
            return found.transactionType === type
              ? { ...found, reference, replayed: true, requestId: null }
              : null;
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
  ): Promise<RedemptionUpdate & Receipt> {
    const body = this.#requireUpdates(operation)(reference, amountUsed);
    const about = this.#caller.about(operation, reference);
    return this.#caller.effect(
      {
        about,
        request: { ...post('/redemptions/update', body), isAnsweredOnce: true },
        take: (answer) => takeUpdate(about, answer, reference, amountUsed),
        proves: provesNoUpdate,
        recover: (error) => recoverUpdate(error, reference, amountUsed),
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
