import { setTimeout as sleep } from 'node:timers/promises';
import { HOUR_MS } from '../src/time.ts';
import type { Random } from './random.ts';
import type { Asked } from './traces.ts';

/** Tills that send calls of all kinds, and keep the answers. */

export type Merchant = { readonly id: number; readonly authorization: string };
export type Voucher = { readonly serialNumber: number; readonly code: string; readonly pin: string };

/** An answer; undefined for a call without one, or whose outcome is uncertain (503). */
type Answer = { readonly statusCode: string; readonly data: Record<string, unknown> | null } | undefined;

export type Sent = {
  readonly merchant: Merchant;
  readonly operation: 'generate' | 'activate' | 'redeem' | 'update';
  readonly reference: string;
  readonly path: string;
  readonly body: Record<string, unknown>;
  /** The amount that a success takes from the voucher, in minor units. */
  readonly minor: number;
  readonly voucher: Voucher | undefined;
  /** One for each time that it was sent. */
  readonly answers: Answer[];
  readonly sendings: Asked['sendings'][number][];
};

/** The data of the first answer that acknowledged a success, if there is one. */
export function acknowledged({ answers }: Sent): Record<string, unknown> | undefined {
  return answers.find((each) => each?.statusCode === '00')?.data ?? undefined;
}

const TILLS = 16;
/** The share of calls that order a large batch, which is produced in the background. */
const ORDERS = 0.02;
const ORDER_MIN = 11;
const ORDER_MAX = 1_500;
const ANSWER_MS = 8_000;
const PAUSE_MS = 50;
const SHORT_LIFE_MS = 25 * HOUR_MS;
const A = '/merchant-client/v2';
const B = '/api/v2';

/** The redemptions and activations, with what was seen of each. */
export const askedIn = (sent: readonly Sent[]): Asked[] =>
  sent.flatMap(({ operation, merchant, reference, voucher, minor, sendings }) => {
    if (operation !== 'redeem' && operation !== 'activate') return [];
    const serialNumber = BigInt(voucher?.serialNumber ?? 0);
    return [
      { merchantId: merchant.id, operation, reference, serialNumber, amountMinor: BigInt(minor), sendings },
    ];
  });

export class Load {
  readonly sent: Sent[] = [];
  /** Answers that no fault excuses. */
  readonly faulty: string[] = [];
  requests = 0;
  /** The number of requests without an answer, or with 503. */
  unanswered = 0;
  readonly #random: Random;
  readonly #baseUrls: readonly string[];
  readonly #merchants: readonly Merchant[];
  readonly #orders: number;
  #callers = 0;
  /** The time from a call of a till to its next one. */
  #intervalMs = 0;
  readonly #stock = new Map<Merchant, Voucher[]>();
  readonly #inactive = new Map<Merchant, Voucher[]>();
  #running: Promise<unknown> = Promise.resolve();
  #stopped = false;

  /** @param orders the share of calls that order a large batch */
  constructor(
    random: Random,
    baseUrls: readonly string[],
    merchants: readonly Merchant[],
    orders: number = ORDERS,
  ) {
    this.#random = random;
    this.#baseUrls = baseUrls;
    this.#merchants = merchants;
    this.#orders = orders;
  }

  /** Sends this many calls a second from now on, or what the machine gives; before, there is no limit. */
  pace(perSecond: number): void {
    this.#intervalMs = (1_000 * this.#callers) / perSecond;
  }

  /**
   * Generates vouchers with and without a value, before anything breaks. By a clock that is far ahead, half
   * of them have expired.
   */
  async prepare(): Promise<void> {
    const soon = new Date(Date.now() + SHORT_LIFE_MS).toISOString();
    for (const merchant of this.#merchants) {
      for (const expiryDate of [null, soon]) {
        const stocked = await this.#ask(
          this.#generate(merchant, 10, 50_000, expiryDate),
          this.#baseUrls[0] as string,
        );
        const bare = await this.#ask(this.#generate(merchant, 10, null), this.#baseUrls[0] as string);
        this.#add(this.#stock, merchant, stocked);
        this.#add(this.#inactive, merchant, bare);
      }
    }
  }

  #add(to: Map<Merchant, Voucher[]>, merchant: Merchant, answer: Answer): void {
    if (answer?.statusCode !== '00') throw new Error('the first vouchers could not be generated');
    to.set(merchant, [...(to.get(merchant) ?? []), ...((answer.data?.['vouchers'] ?? []) as Voucher[])]);
  }

  start(): void {
    const tills = Array.from({ length: TILLS }, () => {
      const random = this.#random.fork();
      return this.#repeat(() => this.#sell(random));
    });
    this.#running = Promise.all(tills);
  }

  /** Works until the load stops, at its pace. */
  async #repeat(work: () => Promise<void>): Promise<void> {
    this.#callers++;
    while (!this.#stopped) {
      const from = performance.now();
      await work();
      const leftMs = from + this.#intervalMs - performance.now();
      if (leftMs > 0) await sleep(leftMs);
    }
  }

  /**
   * Redeems in variant A by another client as well, one redemption after the other, until the load stops.
   * @param redeem has to send each attempt by `attempt`
   */
  startClient(redeem: (one: Sent) => Promise<void>): void {
    const random = this.#random.fork();
    const till = this.#repeat(() => redeem(this.#redeem(random.pick(this.#merchants), random, 'a')));
    this.#running = Promise.all([this.#running, till]);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  /** The longest time in which a merchant had no success that ended since the last call, in milliseconds. */
  takeLongestGapMs(): number {
    const longest = this.#longestGapMs;
    this.#longestGapMs = 0;
    return longest;
  }

  readonly #succeededAt = new Map<Merchant, number>();
  #longestGapMs = 0;

  #noteSuccess(merchant: Merchant): void {
    const now = performance.now();
    this.#longestGapMs = Math.max(this.#longestGapMs, now - (this.#succeededAt.get(merchant) ?? now));
    this.#succeededAt.set(merchant, now);
  }

  async #sell(random: Random): Promise<void> {
    const one = this.#next(random);
    if (!one) return;
    // One call in four is sent to both processes at the same time. Half of the unanswered calls are sent
    // again at once.
    const to = random.below(4) === 0 ? this.#baseUrls : [random.pick(this.#baseUrls)];
    const answers = await Promise.all(to.map((baseUrl) => this.#ask(one, baseUrl)));
    if (answers.every((each) => each === undefined)) {
      await sleep(PAUSE_MS);
      if (random.below(2) === 0) await this.#ask(one, random.pick(this.#baseUrls));
    }
  }

  /** Sends each service this many concurrent small generations. */
  async crowd(count: number): Promise<void> {
    const orders = this.#baseUrls.flatMap((baseUrl) =>
      Array.from({ length: count }, async () => {
        await this.#ask(this.#generate(this.#random.pick(this.#merchants), 1, 1), baseUrl);
      }),
    );
    await Promise.all(orders);
  }

  #next(random: Random): Sent | undefined {
    const merchant = random.pick(this.#merchants);
    if (random.next() < this.#orders)
      return this.#generate(merchant, ORDER_MIN + random.below(ORDER_MAX), 0.5);
    const die = random.below(98);
    if (die < 74) return this.#redeem(merchant, random);
    if (die < 88) return this.#update(random);
    if (die < 92) return this.#activate(merchant, random);
    return this.#generate(merchant, 1 + random.below(10), 1);
  }

  #write(one: Omit<Sent, 'answers' | 'sendings' | 'reference'> & { reference?: string }): Sent {
    const reference = one.reference ?? `soak-${this.sent.length}`;
    const sent = { ...one, reference, body: { ...one.body, reference }, answers: [], sendings: [] };
    this.sent.push(sent);
    return sent;
  }

  #generate(
    merchant: Merchant,
    quantity: number,
    value: number | null,
    expiryDate: string | null = null,
  ): Sent {
    const body = { quantity, value, expiryDate };
    return this.#write({
      merchant,
      operation: 'generate',
      path: `${B}/vouchers`,
      body,
      minor: 0,
      voucher: undefined,
    });
  }

  #redeem(merchant: Merchant, random: Random, variant = random.pick(['a', 'b'])): Sent {
    const voucher = random.pick(this.#stock.get(merchant) ?? []);
    const minor = 1 + random.below(300);
    const { code, pin } = voucher;
    const common = { merchant, operation: 'redeem', minor, voucher } as const;
    const amount = minor / 100;
    return variant === 'a'
      ? this.#write({ ...common, path: `${A}/redeem`, body: { code, pin, amount } })
      : this.#write({ ...common, path: `${B}/redeem`, body: { voucherCode: code + pin, amount } });
  }

  /** Updates an acknowledged redemption, each at most once. */
  #update(random: Random): Sent | undefined {
    const original = this.sent[random.below(this.sent.length)];
    if (original?.operation !== 'redeem' || !acknowledged(original) || this.#updated.has(original))
      return undefined;
    this.#updated.add(original);
    const { merchant, reference, voucher } = original;
    const minor = random.below(original.minor + 1);
    const body = { amountUsed: minor / 100 };
    return this.#write({
      merchant,
      operation: 'update',
      reference,
      path: `${A}/redemptions/update`,
      body,
      minor,
      voucher,
    });
  }

  readonly #updated = new Set<Sent>();

  #activate(merchant: Merchant, random: Random): Sent {
    const voucher = random.pick(this.#inactive.get(merchant) ?? []);
    const body = { serialNumber: voucher.serialNumber, value: 5 };
    return this.#write({ merchant, operation: 'activate', path: `${B}/activate`, body, minor: 500, voucher });
  }

  /** Resolves at the next successful call, or the next one that `isWanted`. */
  nextSuccess(isWanted: (sent: Sent) => boolean = () => true): Promise<void> {
    return new Promise((resolve) => this.#awaiting.add({ isWanted, resolve }));
  }

  /**
   * Resolves when every merchant has redeemed and generated: a merchant that is still blocked is blocked for
   * all its calls.
   */
  async nextOfEach(): Promise<void> {
    const kinds = this.#merchants.flatMap((merchant) =>
      (['redeem', 'generate'] as const).map((operation) => ({ merchant, operation })),
    );
    await Promise.all(
      kinds.map(({ merchant, operation }) =>
        this.nextSuccess((sent) => sent.merchant === merchant && sent.operation === operation),
      ),
    );
  }

  readonly #awaiting = new Set<{ isWanted: (sent: Sent) => boolean; resolve: () => void }>();

  async #ask(one: Sent, baseUrl: string): Promise<Answer> {
    const answered = await this.attempt(one, () => send(one, baseUrl)).catch(() => undefined);
    return answered?.answer;
  }

  /** Sends a request once, and keeps what was answered. */
  async attempt(one: Sent, sending: () => Promise<Response>) {
    this.requests++;
    const from = performance.now();
    try {
      const response = await sending();
      return { response, answer: this.#keep(one, from, await read(response.clone())) };
    } catch (error) {
      this.#keep(one, from, undefined);
      throw error;
    }
  }

  #keep(one: Sent, from: number, answer: Awaited<ReturnType<typeof read>> | undefined): Answer {
    if (answer && (answer.status === 500 || answer.statusCode === '96'))
      this.faulty.push(`${one.operation} ${answer.status}`);
    const known = answer && answer.status !== 503 && answer.status !== 500 ? answer : undefined;
    one.answers.push(known);
    if (!known) this.unanswered++;
    if (known?.statusCode === '00') this.#noteSuccess(one.merchant);
    const code = known ? `${known.statusCode}${known.replayed ? ' replayed' : ''}` : 'unknown';
    const id = known?.statusCode === '00' ? String(known.data?.['transactionId']) : null;
    one.sendings.push({ from, to: performance.now(), code, id });
    if (known?.statusCode === '00') {
      for (const each of [...this.#awaiting].filter(({ isWanted }) => isWanted(one))) {
        this.#awaiting.delete(each);
        each.resolve();
      }
    }
    return known;
  }
}

/** Sends a request and reads its answer; throws if there is none. */
export async function ask(one: Pick<Sent, 'merchant' | 'path' | 'body'>, baseUrl: string) {
  return read(await send(one, baseUrl));
}

function send(
  { merchant, path, body }: Pick<Sent, 'merchant' | 'path' | 'body'>,
  baseUrl: string,
): Promise<Response> {
  return fetch(baseUrl + path, {
    method: 'POST',
    headers: { authorization: merchant.authorization, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
}

async function read(response: Response) {
  const { statusCode, data } = (await response.json()) as {
    statusCode: string;
    data: Record<string, unknown> | null;
  };
  return { status: response.status, replayed: response.headers.has('idempotent-replayed'), statusCode, data };
}
