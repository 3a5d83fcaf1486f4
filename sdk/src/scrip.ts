import { downloadBatch, streamVouchers, waitForBatch } from './batches.ts';
import { Caller, type EffectiveCall } from './call.ts';
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
  takeFound,
  takeTransaction,
  takeUpdate,
} from './effects.ts';
import { type Operation, orNull } from './errors.ts';
import { type Connection, get, post } from './http.ts';
import { readOptions, type ScripOptions } from './options.ts';
import { Pending, type PendingCall } from './pending.ts';
import { readBalance, readTransactions, readUpdate } from './read.ts';
import { type Means, type Recovered, type RecoverOptions, recoverAll } from './recover.ts';
import { callOptions, difference, type Payment, type RedeemOptions, redeemUpTo } from './redeem.ts';
import type {
  ActivateInput,
  Balance,
  Batch,
  BatchHead,
  CallOptions,
  DownloadOptions,
  EffectOptions,
  GenerateInput,
  Receipt,
  RedeemInput,
  RedemptionUpdate,
  Transaction,
  TransactionType,
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
  readonly #pending: Pending | undefined;
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
    this.#pending = options.pending && new Pending(options.pending);
    const { language } = options;
    this.#caller = new Caller(connection, rules, { language, confidential, pending: this.#pending });
  }

  /**
   * Generates a batch of vouchers. Up to 10 are in the result; a larger batch is `PROCESSING`: wait for it by
   * `waitForBatch`, then read it by `downloadVouchers`.
   */
  async generate(
    request: GenerateInput<V>,
    options: EffectOptions<Batch & Receipt> = {},
  ): Promise<Batch & Receipt> {
    const reference = this.#newReference('generate', request);
    const body = this.#caller.check('generate', reference, () => {
      const quantity = checkQuantity(request.quantity);
      return this.#dialect.generate(request, { reference, quantity, decimals: this.#decimals });
    });
    return this.#caller.effect(this.#generation(reference, body), options);
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
  async activate(
    request: ActivateInput<V>,
    options: EffectOptions<Transaction & Receipt> = {},
  ): Promise<Transaction & Receipt> {
    const reference = this.#newReference('activate', request);
    const body = this.#caller.check('activate', reference, () =>
      this.#dialect.activate(request, { reference, decimals: this.#decimals }),
    );
    return this.#caller.effect(this.#transacting('activate', { reference, body, amount: null }), options);
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

  /**
   * Takes an amount from a voucher: the whole amount, or nothing. With `withBalance`, the balance of the
   * voucher is read afterwards, for the receipt; it is null where it could not be read.
   */
  redeem(
    request: RedeemInput,
    options: RedeemOptions & { readonly withBalance: true },
  ): Promise<Payment & { readonly balance: Balance | null }>;
  redeem(request: RedeemInput, options?: RedeemOptions): Promise<Payment>;
  async redeem(request: RedeemInput, options: RedeemOptions = {}): Promise<Payment> {
    const reference = this.#newReference('redeem', request);
    const { amount, body } = this.#caller.check('redeem', reference, () => {
      const voucher = checkVoucher(request);
      const amount = checkAmount(request.amount, 'amount', { decimals: this.#decimals });
      return { amount, body: this.#dialect.redeem(voucher, amount, reference) };
    });
    const payment = await this.#caller.effect(
      this.#transacting('redeem', { reference, body, amount }),
      options,
    );
    if (!options.withBalance) return payment;
    // The payment is done, whether or not the balance can be read.
    const balance = await this.balance(request, callOptions(options)).catch(() => null);
    return { ...payment, balance } as Payment;
  }

  /**
   * Takes an amount from a voucher, or what is left on it if that is less. Safe to repeat under the same
   * reference.
   * @returns the payment, and as `remaining` what is still to be paid in another way
   * @throws ScripError if nothing can be taken
   */
  async redeemUpTo(
    request: RedeemInput,
    options: EffectOptions<Payment> = {},
  ): Promise<Payment & { readonly remaining: number }> {
    const reference = this.#newReference('redeem', request);
    const wanted = this.#caller.check('redeem', reference, () =>
      checkAmount(request.amount, 'amount', { decimals: this.#decimals }),
    );
    const payment = await redeemUpTo(
      { ...request, reference },
      {
        balance: () => this.balance(request, callOptions(options)),
        redeem: (amount) => this.redeem({ ...request, amount, reference }, options),
        find: () => orNull(() => this.transaction(reference, callOptions(options))),
      },
    );
    return { ...payment, remaining: difference(wanted, payment.amount) };
  }

  /**
   * Changes the amount of a redemption, once. The amount has no default: to reverse the redemption, call
   * `reverseRedemption`. Variant A only.
   */
  async updateRedemption(
    this: Scrip<'a'>,
    request: UpdateRedemptionInput,
    options: EffectOptions<RedemptionUpdate & Receipt> = {},
  ): Promise<RedemptionUpdate & Receipt> {
    const { reference, amountUsed } = this.#caller.check('updateRedemption', undefined, () => {
      checkObject(request);
      const amountUsed = checkAmount(request['amountUsed'], 'amountUsed', {
        decimals: this.#decimals,
        least: 'zero',
      });
      return { reference: checkReference(request['reference']), amountUsed };
    });
    return this.#caller.effect(this.#updating('updateRedemption', reference, amountUsed), options);
  }

  /** Gives the whole amount of a redemption back to the voucher. Variant A only. */
  async reverseRedemption(
    this: Scrip<'a'>,
    reference: string,
    options: EffectOptions<RedemptionUpdate & Receipt> = {},
  ): Promise<RedemptionUpdate & Receipt> {
    this.#caller.check('reverseRedemption', undefined, () => checkReference(reference));
    return this.#caller.effect(this.#updating('reverseRedemption', reference, 0), options);
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

  /**
   * Finds out what became of calls that an earlier process began: call it at the start. Needs `pending`. A
   * redemption that is not found is given up by `undo`, if there is a `portalToken`: its payment has to start
   * again, under a new reference. Orders and updates are sent again.
   * @throws DamagedStoreError after all calls that could be read
   */
  async recover({ record, ...options }: RecoverOptions = {}): Promise<Recovered[]> {
    const pending = this.#caller.check('recover', undefined, () => {
      return this.#pending ?? refuse('30', 'pending', 'required', 'must be given to the client for recover');
    });
    const means: Means = {
      isOwn: ({ baseUrl, variant }) => baseUrl === this.#baseUrl && variant === this.variant,
      lookup: (call) =>
        this.#find(call.operation === 'redeem' ? 'REDEMPTION' : 'ACTIVATION', call.reference, options),
      undo: this.#portal && ((reference) => this.undo(reference, options)),
      repeat: (call) => this.#repeat(call, options),
    };
    return recoverAll(pending, means, record);
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
    return this.#caller.read(about, get('/transactions', reference), options, (answer) =>
      takeFound(about, answer, reference),
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

  #generation(reference: string, body: object): EffectiveCall<Batch & Receipt> {
    const about = this.#caller.about('generate', reference);
    return {
      about,
      request: post('/vouchers', body),
      pending: this.#kept('generate', reference, body, null),
      take: (answer) => takeBatch(about, answer, reference),
      proves: provesNoEffect,
      lookup: (how) =>
        orNull(async () => ({
          ...(await this.download(reference, how)),
          reference,
          replayed: true,
          requestId: null,
        })),
    };
  }

  #transacting(
    operation: 'activate' | 'redeem',
    { reference, body, amount }: { reference: string; body: object; amount: number | null },
  ): EffectiveCall<Payment> {
    const type = operation === 'redeem' ? 'REDEMPTION' : 'ACTIVATION';
    const { code, voucherCode, pin } = body as { code?: string; voucherCode?: string; pin?: string };
    const confidential = [code, voucherCode, pin].filter((value) => value !== undefined);
    const about = this.#caller.about(operation, reference, confidential);
    return {
      about,
      request: post(`/${operation}`, body),
      pending: this.#kept(operation, reference, confidential.length > 0 ? null : body, amount),
      take: (answer) => {
        const transaction = takeTransaction(about, answer, { type, reference, amount });
        if (type === 'REDEMPTION') this.#undone.refuse(about, reference);
        return transaction;
      },
      proves: provesNoEffect,
      lookup: (how) => this.#find(type, reference, how),
    };
  }

  /** The transaction of a type under a reference; null if there is none. */
  #find(type: TransactionType, reference: string, options: CallOptions): Promise<Payment | null> {
    return orNull(async () => {
      const found = await this.transaction(reference, options);
      return found.transactionType === type ? { ...found, reference, replayed: true, requestId: null } : null;
    });
  }

  #updating(
    operation: 'updateRedemption' | 'reverseRedemption',
    reference: string,
    amountUsed: number,
  ): EffectiveCall<RedemptionUpdate & Receipt> {
    const body = this.#requireUpdates(operation)(reference, amountUsed);
    const about = this.#caller.about(operation, reference);
    return {
      about,
      request: { ...post('/redemptions/update', body), isAnsweredOnce: true },
      pending: this.#kept(operation, reference, body, amountUsed),
      take: (answer) => takeUpdate(about, answer, reference, amountUsed),
      proves: provesNoUpdate,
      recover: (error) => recoverUpdate(error, reference, amountUsed),
      lookup: (how) =>
        orNull(async () => {
          const found = await (this as unknown as Scrip<'a'>).redemptionUpdate(reference, how);
          const isOurs = found.summary.newAmount === amountUsed;
          return isOurs ? { ...found, reference, replayed: true, requestId: null } : null;
        }),
    };
  }

  /** The part of a call that the store keeps: never a code or a PIN. */
  #kept(
    operation: PendingCall['operation'],
    reference: string,
    body: object | null,
    amount: number | null,
  ): PendingCall {
    const startedAt = new Date().toISOString();
    const { variant } = this;
    return {
      operation,
      reference,
      baseUrl: this.#baseUrl,
      variant,
      startedAt,
      amount,
      body: body as PendingCall['body'],
    };
  }

  /** Sends the request of a pending call again. It was checked when it was kept. */
  #repeat({ operation, reference, body, amount }: PendingCall, options: CallOptions) {
    const request = body as object;
    if (operation === 'generate') return this.#caller.resolve(this.#generation(reference, request), options);
    if (operation === 'activate' || operation === 'redeem')
      return this.#caller.resolve(
        this.#transacting(operation, { reference, body: request, amount }),
        options,
      );
    return this.#caller.resolve(this.#updating(operation, reference, amount ?? 0), options);
  }

  #requireUpdates(operation: Operation): NonNullable<Dialect<Variant>['update']> {
    return this.#caller.check(operation, undefined, () => {
      const { update } = this.#dialect;
      if (!update) throw new Unsupported(`variant ${this.variant} has no ${operation}`);
      return update;
    });
  }
}
