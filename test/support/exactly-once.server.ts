import { randomInt, randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scope } from './scope.ts';

/**
 * A small server of the interface in memory, right or with one of the faults that servers have. It shares no
 * code with the conformance kit, which has to find each fault.
 */

export const FAULTS = [
  'loses the newest redemptions when it is restarted',
  'forgets redemptions after a while',
  'shows a replay without the right PIN',
  'does both of two updates at the same time',
  'spends more than the float',
  'shows an old balance',
  'lets redemptions at the same time take more than the balance',
  'books copies at the same time twice',
  'counts wrong PINs at the same time once',
  'forgets the reference of a call whose connection broke',
  'keeps the references of the variants apart',
  'redeems again after a reversal',
  'generates copies at the same time twice',
  'takes references that differ in case for one',
  'takes references that differ in their end for one',
  'lets an activation use up the reference of a redemption',
  'remembers a refusal under its reference',
  'updates again after a restart',
  'answers 91 after an effect that a repetition doubles',
  'redeems in two halves',
  'does not count wrong PINs under a used reference',
  'forgets wrong PINs when it is restarted',
  'counts a wrong PIN for another voucher',
  'redeems from a voucher that is locked',
  'forgets batches after a while',
  'forgets activations after a while',
  'finds no transaction after a while',
  'shows a replay with the amount of now',
  'shows a replay with the time of now',
  'redeems again under a reference of another voucher',
  'generates again under a reference of another quantity',
  'lets activations at the same time spend more than the float',
  'shows the vouchers of a batch again in another order',
  'shows a replay with another serial number',
  'rounds what it redeems',
  'takes references that are written with other marks for one',
  'takes references that differ in an emoji for one',
  'debits the float for copies at the same time twice',
] as const;

export type Fault = (typeof FAULTS)[number];

type Voucher = {
  readonly serialNumber: number;
  readonly code: string;
  readonly pin: string;
  balance: number | null;
  /** The balance that the fault shows. */
  oldBalance: number | null;
  wrongPins: number;
};

/** A transaction without more, as an update makes two of them. */
type Transaction = { readonly transactionId: string; readonly timestamp: string; readonly amount: number };

type Entry = Transaction & {
  readonly reference: string;
  readonly serialNumber: number;
  readonly voucher: Voucher;
  readonly bookedAt: number;
  update: { readonly amount: number; readonly data: object; readonly renewed: object | null } | null;
};

type Order = {
  readonly transactionId: string;
  readonly quantity: number;
  readonly value: number | null;
  readonly vouchers: readonly Voucher[];
  readonly bookedAt: number;
};

type Result = { readonly code: string; readonly data?: object | null; readonly replayed?: boolean };

// biome-ignore lint/suspicious/noExplicitAny: the kit sends what the interface asks for.
type Fields = any;

const WRONG_PINS_MAX = 5;
const PAUSE_MS = 3;
const WINDOW_MS = 250;
const LOST_MS = 100;
const COPIED_MS = 20;
/** The fault answers one redemption in this many with 91. */
const UNAVAILABLE_EVERY = 10;
/** The length that the fault keeps of a reference. */
const KEPT_LENGTH = 64;

const newTransaction = (amount: number): Transaction => ({
  transactionId: randomUUID(),
  timestamp: new Date().toISOString(),
  amount,
});
const refuse = (code: string): Result => ({ code });
const isRight = (voucher: Voucher, { pin, voucherCode }: Fields) =>
  voucher.pin === (pin ?? voucherCode.slice(12));
const pause = () => sleep(randomInt(PAUSE_MS));

class Server {
  readonly #fault: Fault | undefined;
  readonly #orders = new Map<string, Order>();
  readonly #vouchers: Voucher[] = [];
  readonly #redemptions = new Map<string, Entry>();
  readonly #activations = new Map<string, Entry>();
  readonly #refusals = new Map<string, string>();
  #float: number;

  constructor(float: number, fault: Fault | undefined) {
    this.#float = float;
    this.#fault = fault;
  }

  /** What a restart does to a right server: nothing. */
  restart(): void {
    if (this.#fault === 'updates again after a restart')
      for (const entry of this.#redemptions.values()) entry.update = null;
    if (this.#fault === 'forgets wrong PINs when it is restarted')
      for (const voucher of this.#vouchers) voucher.wrongPins = 0;
    if (this.#fault !== 'loses the newest redemptions when it is restarted') return;
    for (const [key, { bookedAt, voucher, amount }] of this.#redemptions) {
      if (Date.now() - bookedAt > LOST_MS) continue;
      this.#redemptions.delete(key);
      voucher.balance = (voucher.balance ?? 0) + amount;
    }
  }

  codes(): string[] {
    return this.#vouchers.map(({ code }) => code);
  }

  /** Between reading and writing, a server with this fault does something else. */
  async #gap(fault: Fault): Promise<void> {
    if (this.#fault === fault) await pause();
  }

  async generate({ reference, quantity, amount, value = amount }: Fields): Promise<Result> {
    const known = this.#lasting(this.#orders.get(reference), 'forgets batches after a while');
    await this.#gap('generates copies at the same time twice');
    const isOther = known && (known.quantity !== quantity || known.value !== value);
    const isNew =
      !known || (isOther && this.#fault === 'generates again under a reference of another quantity');
    if (isOther && !isNew) return refuse('94');
    const cost = quantity * (value ?? 0);
    const isCopy = known && Date.now() - known.bookedAt < COPIED_MS;
    if (isCopy && this.#fault === 'debits the float for copies at the same time twice') this.#float -= cost;
    if (!isNew) return { code: '00', data: this.#orderAgain(known), replayed: true };
    const left = this.#float - cost;
    if (left < 0) return refuse('50');
    await this.#gap('spends more than the float');
    this.#float = left;
    const vouchers = Array.from({ length: quantity }, () => this.#newVoucher(value));
    const order = { transactionId: randomUUID(), quantity, value, vouchers, bookedAt: Date.now() };
    this.#orders.set(reference, order);
    return { code: '00', data: order };
  }

  #orderAgain(order: Order): Order {
    const isMixed = this.#fault === 'shows the vouchers of a batch again in another order';
    return isMixed ? { ...order, vouchers: order.vouchers.toReversed() } : order;
  }

  #newVoucher(balance: number | null): Voucher {
    const serialNumber = this.#vouchers.length;
    const code = String(100_000_000_000 + serialNumber);
    const pin = String(randomInt(10_000)).padStart(4, '0');
    const voucher = { serialNumber, code, pin, balance, oldBalance: balance, wrongPins: 0 };
    this.#vouchers.push(voucher);
    return voucher;
  }

  #find({ code, voucherCode = code }: Fields): Voucher | undefined {
    return this.#vouchers[Number(voucherCode.slice(0, 12)) - 100_000_000_000];
  }

  /** @returns the refusal of a wrong PIN */
  async #checkPin(voucher: Voucher, fields: Fields): Promise<string | undefined> {
    if (voucher.wrongPins >= WRONG_PINS_MAX) return '75';
    const ofOther = this.#fault === 'counts a wrong PIN for another voucher' && !isRight(voucher, fields);
    const counted = (ofOther && this.#vouchers[voucher.serialNumber - 1]) || voucher;
    const wrongPins = isRight(voucher, fields) ? 0 : counted.wrongPins + 1;
    await this.#gap('counts wrong PINs at the same time once');
    counted.wrongPins = wrongPins;
    return isRight(voucher, fields) ? undefined : '55';
  }

  async activate({ serialNumber, value, reference }: Fields): Promise<Result> {
    const voucher = this.#vouchers[serialNumber];
    const known = this.#lasting(this.#activations.get(reference), 'forgets activations after a while');
    if (!voucher) return refuse('14');
    if (known && (known.voucher !== voucher || known.amount !== value)) return refuse('94');
    if (known) return { code: '00', data: known, replayed: true };
    if (voucher.balance !== null) return refuse('41');
    if (value > this.#float) return refuse('50');
    const left = this.#float - value;
    const data = this.#book(this.#activations, reference, voucher, value, value);
    await this.#gap('lets activations at the same time spend more than the float');
    this.#float = left;
    return { code: '00', data };
  }

  #book(
    into: Map<string, Entry>,
    reference: string,
    voucher: Voucher,
    amount: number,
    balance: number,
  ): Entry {
    const { serialNumber } = voucher;
    const bookedAt = Date.now();
    const entry = { ...newTransaction(amount), reference, serialNumber, voucher, bookedAt, update: null };
    into.set(reference, entry);
    this.#setBalance(voucher, balance);
    return entry;
  }

  #setBalance(voucher: Voucher, balance: number): void {
    voucher.balance = balance;
    setTimeout(() => Object.assign(voucher, { oldBalance: balance }), LOST_MS).unref();
  }

  /** What a server with the fault takes for new once it is older than the window. */
  #lasting<T extends Entry | Order>(known: T | undefined, fault: Fault): T | undefined {
    return this.#fault === fault && known && Date.now() - known.bookedAt > WINDOW_MS ? undefined : known;
  }

  #known(reference: string, voucher: Voucher | undefined): Entry | undefined {
    const known = this.#lasting(this.#redemptions.get(reference), 'forgets redemptions after a while');
    const isFree =
      (this.#fault === 'redeems again after a reversal' && known?.update?.amount === 0) ||
      (this.#fault === 'redeems again under a reference of another voucher' && known?.voucher !== voucher);
    return isFree ? undefined : known;
  }

  /** The reference as the server keeps it. */
  #kept(reference: string): string {
    if (this.#fault === 'takes references that are written with other marks for one')
      return reference.normalize('NFC');
    if (this.#fault === 'takes references that differ in an emoji for one')
      return reference.replaceAll(/\p{Emoji_Presentation}/gu, '?');
    if (this.#fault === 'takes references that differ in case for one') return reference.toLowerCase();
    return this.#fault === 'takes references that differ in their end for one'
      ? reference.slice(0, KEPT_LENGTH).trimEnd()
      : reference;
  }

  /** @returns how a server with one of the faults refuses a redemption whose reference it knows otherwise */
  #misses(reference: string): string | undefined {
    const isSpent = this.#fault === 'lets an activation use up the reference of a redemption';
    return isSpent && this.#activations.has(reference) ? '94' : this.#refusals.get(reference);
  }

  #decline(reference: string, code: string): Result {
    if (this.#fault === 'remembers a refusal under its reference') this.#refusals.set(reference, code);
    return refuse(code);
  }

  /** @returns the refusal of a redemption with a wrong PIN */
  async #checkRedeemer(voucher: Voucher, fields: Fields, known: Entry | undefined) {
    if (known && this.#fault === 'shows a replay without the right PIN') return undefined;
    if (this.#fault === 'redeems from a voucher that is locked' && isRight(voucher, fields)) return undefined;
    const refusal = await this.#checkPin(voucher, fields);
    const isFree = known && this.#fault === 'does not count wrong PINs under a used reference';
    if (isFree && refusal === '55') voucher.wrongPins--;
    return refusal;
  }

  async redeem(fields: Fields, variant: string, response: ServerResponse): Promise<Result> {
    const { amount } = fields;
    const isApart = this.#fault === 'keeps the references of the variants apart';
    const reference = isApart ? `${variant}${fields.reference}` : fields.reference;
    const voucher = this.#find(fields);
    const known = this.#known(reference, voucher);
    await this.#gap('books copies at the same time twice');
    if (!voucher) return refuse('14');
    if (known && (known.voucher !== voucher || known.amount !== amount)) return refuse('94');
    const refusal = (await this.#checkRedeemer(voucher, fields, known)) ?? this.#misses(reference);
    if (refusal) return refuse(refusal);
    if (known) return { code: '00', data: this.#again(known), replayed: true };
    const { balance } = voucher;
    await this.#gap('lets redemptions at the same time take more than the balance');
    if (balance === null) return refuse('40');
    if (balance === 0) return this.#decline(reference, '42');
    if (balance < amount) return this.#decline(reference, '51');
    if (this.#fault === 'redeems in two halves') {
      voucher.balance = balance - Math.floor(amount / 2);
      await pause();
    }
    const taken = this.#fault === 'rounds what it redeems' ? Math.round(amount) : amount;
    const entry = this.#book(this.#redemptions, reference, voucher, amount, balance - taken);
    await this.#gap('forgets the reference of a call whose connection broke');
    return this.#afterwards(reference, entry, response);
  }

  /** The data of a replay. */
  #again(known: Entry): Entry {
    if (this.#fault === 'shows a replay with the amount of now')
      return { ...known, amount: known.update?.amount ?? known.amount };
    if (this.#fault === 'shows a replay with the time of now')
      return { ...known, timestamp: new Date().toISOString() };
    if (this.#fault === 'shows a replay with another serial number') return { ...known, serialNumber: -1 };
    return known;
  }

  #afterwards(reference: string, entry: Entry, response: ServerResponse): Result {
    if (this.#fault === 'forgets the reference of a call whose connection broke' && response.destroyed)
      this.#redemptions.delete(reference);
    const isLost = this.#fault === 'answers 91 after an effect that a repetition doubles';
    if (!isLost || randomInt(UNAVAILABLE_EVERY) > 0) return { code: '00', data: entry };
    this.#redemptions.delete(reference);
    return refuse('91');
  }

  async update({ reference, amountUsed }: Fields): Promise<Result> {
    const original = this.#redemptions.get(reference);
    if (!original) return refuse('60');
    if (original.update) return { code: '58', data: original.update.data };
    const left = (original.voucher.balance ?? 0) + original.amount - amountUsed;
    if (left < 0) return refuse('51');
    await this.#gap('does both of two updates at the same time');
    const renewed = amountUsed === 0 ? null : newTransaction(amountUsed);
    const data = {
      originalTransaction: original,
      cancellationTransaction: newTransaction(-original.amount),
      newTransaction: renewed,
      summary: { newAmount: amountUsed },
    };
    original.update = { amount: amountUsed, data, renewed };
    this.#setBalance(original.voucher, left);
    return { code: '00', data };
  }

  async balance(fields: Fields): Promise<Result> {
    const voucher = this.#find(fields);
    if (!voucher) return refuse('14');
    const refusal = await this.#checkPin(voucher, fields);
    if (refusal) return refuse(refusal);
    const isOld = this.#fault === 'shows an old balance';
    return { code: '00', data: { balance: (isOld ? voucher.oldBalance : voucher.balance) ?? 0 } };
  }

  lookUp(reference: string, nothing: string): Result {
    const known = this.#redemptions.get(reference) ?? this.#activations.get(reference);
    const found = this.#lasting(known, 'finds no transaction after a while');
    if (!found) return refuse(nothing);
    if (!found.update) return { code: '00', data: found };
    return found.update.renewed ? { code: '00', data: found.update.renewed } : refuse(nothing);
  }

  async answer(path: string, given: Fields, response: ServerResponse): Promise<Result> {
    const [, variant = '', name = ''] = /^\/(api|merchant-client)\/v2\/(.*)$/.exec(path) ?? [];
    const fields = { ...given, ...(given.reference && { reference: this.#kept(given.reference) }) };
    if (name === 'vouchers') return this.generate(fields);
    if (name === 'activate') return this.activate(fields);
    if (name === 'redeem') return this.redeem(fields, variant, response);
    if (name === 'redemptions/update') return this.update(fields);
    if (name === 'balance') return this.balance(fields);
    const reference = this.#kept(decodeURIComponent(name.replace('transactions/', '')));
    return this.lookUp(reference, variant === 'api' ? '99' : '60');
  }
}

/** Without what would lead back to itself. */
const shown = (key: string, value: unknown) => (key === 'voucher' || key === 'update' ? undefined : value);

/** Starts a server, right unless a fault is given. */
export async function startServer(t: Scope, float: number, fault?: Fault) {
  const server = new Server(float, fault);
  const listening = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    await pause();
    const result = await server.answer(request.url ?? '', body === '' ? {} : JSON.parse(body), response);
    const { code, data = null, replayed } = result;
    const answer = JSON.stringify({ statusCode: code, message: '', data }, shown);
    await pause();
    response.writeHead(200, { ...(replayed && { 'idempotent-replayed': 'true' }) }).end(answer);
  });
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    listening.closeAllConnections();
    listening.close();
  });
  return {
    baseUrl: `http://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    codes: () => server.codes(),
    async restart() {
      listening.closeAllConnections();
      server.restart();
    },
  };
}
