import { createHmac } from 'node:crypto';
import type { CuttingClient, Reply } from './exactly-once.client.ts';
import { CUTS, type Cut, type Sent } from './exactly-once.history.ts';
import type { Voucher } from './merchant.ts';
import type { Loose, Variant } from './probe.ts';

/** A batch of a run: it is generated, calls use its vouchers at the same time, and all is looked at again. */

/** What the batches of a run share. */
export type Shared = {
  readonly client: CuttingClient;
  readonly variants: readonly Variant[];
  readonly product: string;
  /** Makes the references of the run unique. */
  readonly run: string;
  /** Added to half of the amounts: a part of a unit that no computer rounds; 0 without decimals. */
  fraction: number;
  /** The key of the aliases of vouchers. */
  readonly secret: string;
  /** Microseconds since the start. */
  now(): number;
  /** The number of a call. */
  next(): number;
  record(call: Sent): void;
  /** Whether the key may send this many more wrong PINs before the service stops it for guessing. */
  mayGuess(wrongPins: number): boolean;
};

type Asked = Pick<Sent, 'do' | 'variant' | 'reference' | 'voucher' | 'pin' | 'quantity' | 'amount'>;

/** Whole amounts, so that the currency may have any number of decimals. */
const VALUE = 20;
/** The vouchers that are used, and one whose PIN is guessed: no other call resets the count of that one. */
const USED = 2;
const QUANTITY = USED + 1;
const STEPS = 5;
/** The share of calls that are cut. */
const CUT_SHARE = 0.15;
/** More than the wrong PINs that lock a voucher. */
const GUESSES = 6;
/** The batches of which one voucher is locked: each takes some of the wrong PINs that there may be. */
const GUESSED_EVERY = 10;
/** Shorter than any lock by wrong PINs: within this time a voucher is still locked. */
const LOCKED_US = 10 * 60 * 1_000_000;
const TRIES_MAX = 20;
/** The length of the longest reference. */
const LONGEST = 100;
/** References that are different, though a database may take them for one. */
const SPELLINGS: readonly ((name: string) => string)[] = [
  (name) => `${name}-e`,
  (name) => `${name}-E`,
  (name) => `${name}-é`,
  (name) => `${name}-e\u0301`,
  (name) => `${name}-😀`,
  (name) => `${name}-😁`,
  (name) => `${name}-e `,
  (name) => `${name}-`.padEnd(LONGEST, 'e'),
  (name) => `${name}-`.padEnd(LONGEST - 1, 'e').concat('f'),
];

export class Batch {
  readonly number: number;
  readonly #shared: Shared;
  readonly #random: () => number;
  readonly #isActive: boolean;
  #vouchers: readonly Voucher[] = [];
  #activations = 0;
  #redemptions = 0;
  #updated: Asked | undefined;
  #lockedAt = Number.NEGATIVE_INFINITY;
  /** Redemptions and activations, each as it was first sent, and those that were answered. */
  readonly #sent: Asked[] = [];
  readonly #answered = new Set<string>();

  /**
   * @param random chooses the calls
   * @param activeShare the share of batches whose vouchers are active from the start
   */
  constructor(number: number, shared: Shared, random: () => number, activeShare = 0.8) {
    this.number = number;
    this.#shared = shared;
    this.#random = random;
    this.#isActive = !shared.variants.includes('b') || random() < activeShare;
  }

  async play(): Promise<void> {
    await this.#generate();
    if (!this.#isActive) await this.#activate();
    for (let step = 0; step < STEPS; step++) await this.#step();
    if (this.number % GUESSED_EVERY === 1 && this.#shared.mayGuess(GUESSES)) await this.#guess();
    await this.#lookAgain();
  }

  /** Repeats calls that have had their effects, long after them. */
  async revisit(): Promise<void> {
    await this.#ask(this.#order());
    await this.#ask({ ...this.#order(), quantity: QUANTITY - 1 });
    const answered = this.#sent.filter((asked) => this.#answered.has(keyOf(asked)));
    const redeemed = answered.find((asked) => asked.do === 'redeem');
    const activated = answered.find((asked) => asked.do === 'activate');
    if (redeemed) {
      await this.#ask(this.#lookUp(redeemed));
      await this.#ask({ ...redeemed, variant: this.#variant() });
    }
    if (activated) await this.#ask(activated);
    if (this.#updated) await this.#ask(this.#updated);
    if (this.#shared.now() - this.#lockedAt < LOCKED_US) await this.#ask(this.#balance(USED));
    await this.#balances();
  }

  /** Whether vouchers of an amount can be ordered, which a currency without decimals refuses. */
  async takes(amount: number, quantity: number): Promise<boolean> {
    const { code } = await this.#untilAnswered({ ...this.#order(), quantity, amount });
    return code !== '13';
  }

  /** At the end of a run: makes a voucher that costs nothing yet, unless an order will spend the float. */
  async prepare(): Promise<void> {
    if (!this.#isActive) await this.#take({ ...this.#order(), quantity: 1 });
  }

  /** Orders or activates one voucher, to spend the float. @returns the code */
  async spend(amount: number): Promise<string | null> {
    const asked = this.#isActive ? { ...this.#order(), quantity: 1 } : this.#activation(0);
    return (await this.#untilAnswered({ ...asked, amount })).code;
  }

  #order(): Asked {
    const amount = this.#isActive ? VALUE : null;
    const variant = this.#isActive ? this.#variant() : 'b';
    return this.#asked('generate', { variant, reference: this.#name(0), quantity: QUANTITY, amount });
  }

  async #generate(): Promise<void> {
    const order = this.#order();
    await this.#atOnce([order, order]);
    await this.#take(order);
  }

  /** Orders vouchers until they are there. */
  async #take(order: Asked): Promise<void> {
    const { code } = await this.#untilAnswered(order);
    if (code === '50')
      throw new Refused(`the float is spent: a run needs ${QUANTITY * VALUE} for each of its batches`);
    if (code !== '00') throw new Refused(`an order of ${order.quantity} vouchers is refused (${code})`);
    if (this.#vouchers.length !== order.quantity)
      throw new Refused(`an order of ${order.quantity} vouchers shows ${this.#vouchers.length}`);
  }

  async #activate(): Promise<void> {
    const all = this.#vouchers.map((_, voucher) => this.#activation(voucher));
    const [first] = all;
    const rival = this.#activation(0);
    await this.#atOnce([...all, ...(first ? [first] : []), rival]);
    for (const each of [...all, rival]) await this.#untilAnswered(each);
    await this.#ask({ ...rival, voucher: 1 });
  }

  #activation(voucher: number): Asked {
    const reference = this.#name(this.#activations++);
    return this.#asked('activate', { variant: 'b', reference, voucher, amount: VALUE });
  }

  /** Calls at the same time. */
  async #step(): Promise<void> {
    const die = this.#random();
    const voucher = this.#below(USED);
    const [first, rival] = [this.#redemption(voucher), this.#redemption(voucher)];
    const known = this.#sent.filter((asked) => asked.do === 'redeem').at(-1 - this.#below(3));
    if (die < 0.3 || !known) await this.#atOnce([first, first, this.#balance(voucher)]);
    else if (die < 0.5) await this.#atOnce([first, rival, rival]);
    else if (die < 0.75) await this.#update(known, first);
    else if (die < 0.9) await this.#atOnce([this.#inOther(known), this.#lookUp(known), first]);
    else await this.#atOnce([this.#misused(known), this.#wrongly(known), first]);
  }

  /** The reference of a redemption for another amount, or for another voucher. */
  #misused(known: Asked): Asked {
    if (this.#random() < 0.5) return { ...known, amount: (known.amount ?? 0) + 1 };
    return { ...known, voucher: USED - 1 - (known.voucher ?? 0) };
  }

  /** Updates of one redemption, and a redemption of the same voucher. */
  async #update(known: Asked, against: Asked): Promise<void> {
    const { reference, voucher } = known;
    const update = (amount: number) => this.#asked('update', { variant: 'a', reference, voucher, amount });
    const updates = this.#shared.variants.includes('a')
      ? [update(this.#amountBelow(VALUE)), update(0)]
      : [this.#inOther(known)];
    this.#updated ??= updates.find((each) => each.do === 'update');
    await this.#atOnce([...updates, { ...against, voucher }, this.#lookUp(known)]);
    await this.#ask(this.#inOther(known));
    // The update may have left enough for redemptions that were refused.
    const refused = this.#sent.filter(
      (asked) => asked.do === 'redeem' && asked.voucher === voucher && !this.#answered.has(keyOf(asked)),
    );
    for (const each of refused) await this.#ask(each);
  }

  /** Wrong PINs at the same time, half of them under a used reference, which lock a voucher. */
  async #guess(): Promise<void> {
    const [redemption, rival] = [this.#redemption(USED), this.#redemption(USED)];
    const balance = this.#balance(USED);
    await this.#untilAnswered(redemption);
    const wrong = [balance, redemption].map((asked) => ({ ...asked, pin: 'wrong' }) as const);
    const guesses = Array.from({ length: GUESSES / wrong.length }, () => wrong).flat();
    await Promise.all(guesses.map((guess) => this.#ask(guess)));
    this.#lockedAt = this.#shared.now();
    await this.#ask(balance);
    await this.#ask(rival);
  }

  /** A repetition with a wrong PIN, if there may be one more. */
  #wrongly(known: Asked): Asked {
    return this.#shared.mayGuess(1) ? { ...known, pin: 'wrong' } : this.#inOther(known);
  }

  /** Finds out what each call has done, and what is left. */
  async #lookAgain(): Promise<void> {
    for (const asked of this.#sent.filter((each) => !this.#answered.has(keyOf(each)))) {
      await this.#untilAnswered(asked);
    }
    await this.#balances();
  }

  async #balances(): Promise<void> {
    for (let voucher = 0; voucher < USED; voucher++) await this.#ask(this.#balance(voucher));
  }

  #redemption(voucher: number): Asked {
    const amount = 1 + this.#amountBelow(this.#random() < 0.3 ? VALUE : 6);
    const reference = this.#name(this.#redemptions++);
    return this.#asked('redeem', { variant: this.#variant(), reference, voucher, pin: 'right', amount });
  }

  #balance(voucher: number): Asked {
    return this.#asked('balance', { variant: this.#variant(), voucher, pin: 'right' });
  }

  #lookUp({ reference }: Asked): Asked {
    return this.#asked('lookup', { variant: this.#variant(), reference });
  }

  #asked(operation: Sent['do'], fields: Partial<Asked> & Pick<Asked, 'variant'>): Asked {
    const nothing = { reference: null, voucher: null, pin: null, quantity: null, amount: null };
    return { do: operation, ...nothing, ...fields };
  }

  /** The same call by the other variant. */
  #inOther(asked: Asked): Asked {
    const other = this.#shared.variants.find((variant) => variant !== asked.variant);
    return { ...asked, variant: other ?? asked.variant };
  }

  #variant(): Variant {
    return this.#shared.variants[this.#below(this.#shared.variants.length)] as Variant;
  }

  #amountBelow(end: number): number {
    return this.#below(end) + (this.#random() < 0.5 ? this.#shared.fraction : 0);
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** The references of a batch. Each operation begins with the first one. */
  #name(nth: number): string {
    const spell = SPELLINGS[nth % SPELLINGS.length] as (typeof SPELLINGS)[number];
    return spell(`${this.#shared.run}-${this.number}-${Math.floor(nth / SPELLINGS.length)}`);
  }

  async #atOnce(all: readonly Asked[]): Promise<void> {
    await Promise.all(all.map((asked) => this.#ask(asked, this.#cut(asked))));
  }

  #cut({ do: operation }: Asked): Cut | null {
    if (operation === 'lookup' || this.#random() >= CUT_SHARE) return null;
    return CUTS[this.#below(CUTS.length)] as Cut;
  }

  async #untilAnswered(asked: Asked): Promise<Sent> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const call = await this.#ask(asked);
      if (call.code !== null && call.code !== '91' && call.code !== '96') return call;
    }
    throw new Refused(`${asked.do} is not answered`);
  }

  /** Sends a call, and records it with its answer. */
  async #ask(asked: Asked, cut: Cut | null = null): Promise<Sent> {
    if ((asked.do === 'redeem' || asked.do === 'activate') && asked.pin !== 'wrong') this.#remember(asked);
    const { client, now, next, record } = this.#shared;
    const head = { call: next(), batch: this.number, ...asked, cut };
    let from = now();
    const reply = await client.send({ variant: asked.variant, ...this.#request(asked), cut }, () => {
      from = now();
    });
    const call = { ...head, from, ...this.#answerOf(asked, reply) };
    record(call);
    return call;
  }

  #remember(asked: Asked): void {
    const key = keyOf(asked);
    if (!this.#sent.some((each) => keyOf(each) === key)) this.#sent.push(asked);
  }

  #answerOf(
    asked: Asked,
    reply: Reply | undefined,
  ): Pick<Sent, 'to' | 'code' | 'replayed' | 'shown' | 'ids'> {
    if (!reply) return { to: null, code: null, replayed: false, shown: null, ids: [] };
    const { code, replayed, data } = reply;
    const shows = code === '00' || code === '58';
    if (shows) this.#answered.add(keyOf(asked));
    // The first answer counts: the alias of a later one shows whether it has the same vouchers.
    if (shows && asked.do === 'generate' && this.#vouchers.length === 0)
      this.#vouchers = data?.vouchers ?? [];
    const seen = shows ? this.#seen(asked, data) : { shown: null, ids: [] };
    return { to: this.#shared.now(), code, replayed, ...seen };
  }

  /** The part of an answer that is recorded. It holds no code and no PIN. */
  #seen({ do: operation }: Asked, data: Loose): Pick<Sent, 'shown' | 'ids'> {
    const number = (value: unknown) => (typeof value === 'number' ? value : null);
    if (operation === 'balance') return { shown: number(data?.balance), ids: [] };
    if (operation === 'generate') {
      return {
        shown: number(data?.value),
        ids: [String(data?.transactionId), this.#aliasOf(data)],
      };
    }
    if (operation !== 'update') return { shown: number(data?.amount), ids: [idOf(data ?? {})] };
    const all = [data?.originalTransaction, data?.cancellationTransaction, data?.newTransaction];
    const ids = all.flatMap((each) => (each ? [idOf(each)] : []));
    return { shown: number(data?.summary?.newAmount), ids };
  }

  /** A text that is the same for the same vouchers with the same expiry, and shows nothing of them. */
  #aliasOf(data: Loose): string {
    const all = Array.isArray(data?.vouchers) ? data.vouchers : [];
    const named = all.map(({ serialNumber, code, pin }: Loose) => [serialNumber, code, pin]);
    const text = JSON.stringify([data?.reference, data?.expiryDate, named]);
    return createHmac('sha256', this.#shared.secret).update(text).digest('hex').slice(0, 16);
  }

  #request(asked: Asked): { readonly path: string; readonly body?: object } {
    const { variant, reference, amount, quantity, voucher } = asked;
    switch (asked.do) {
      case 'generate': {
        const { product } = this.#shared;
        const own = variant === 'a' ? { productCode: product, amount } : { value: amount };
        return { path: '/vouchers', body: { reference, quantity, ...own } };
      }
      case 'activate': {
        const { serialNumber } = this.#vouchers[voucher ?? 0] as Voucher;
        return { path: '/activate', body: { serialNumber, value: amount, reference } };
      }
      case 'redeem':
        return { path: '/redeem', body: { ...this.#named(asked), amount, reference } };
      case 'balance':
        return { path: '/balance', body: this.#named(asked) };
      case 'update':
        return { path: '/redemptions/update', body: { reference, amountUsed: amount } };
      case 'lookup':
        return { path: `/transactions/${encodeURIComponent(reference ?? '')}` };
    }
  }

  #named({ variant, voucher, pin: which }: Asked): object {
    const { code, pin: right } = this.#vouchers[voucher ?? 0] as Voucher;
    const pin = which === 'right' ? right : String((Number(right) + 1) % 10_000).padStart(4, '0');
    if (variant === 'a') return { code, pin };
    return this.#random() < 0.5 ? { voucherCode: code, pin } : { voucherCode: code + pin };
  }
}

/** What a transaction keeps for ever: a replay and a lookup show what the first answer did. */
const idOf = ({ transactionId, timestamp, transactionType, amount, serialNumber, reference }: Loose) =>
  [transactionId, timestamp, transactionType, amount, serialNumber, reference].join(' ');

const keyOf = ({ do: operation, reference }: Asked) => `${operation} ${reference}`;

/** The server refuses what the run cannot do without. */
export class Refused extends Error {
  override readonly name = 'Refused';
}
