import assert from 'node:assert/strict';
import fc from 'fast-check';
import { listFloats } from '../../src/merchants/merchants.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { type ApiRequest, DIALECTS, type Dialect, update, updateDetails, type Voucher } from './dialects.ts';
import { differing } from './differing.ts';
import type { ListeningService } from './harness.ts';
import type { Answer, Call } from './model.calls.ts';
import { linearize, type Sent } from './model.linearize.ts';
import { operate } from './model.operator.ts';
import { createMerchants, createProducts, type Merchant } from './model.scene.ts';
import { MERCHANTS_THAT_MAY } from './model.state.ts';
import { Model } from './model.ts';
import { EXPIRIES_MS, EXTENSION_MS, type Step, steps, type Wish } from './model.wishes.ts';
import { UNKNOWN, withWrongPin } from './till.ts';

/**
 * Runs groups of calls against processes of the service, and searches for an order in which the model gives
 * the same answers.
 */

type Known = { readonly merchant: number; readonly reference: string };

/** A run with its own merchants and vouchers. */
class Run {
  readonly #processes: readonly ListeningService[];
  readonly #tally: Tally;
  #merchants: readonly Merchant[] = [];
  #vouchers: Voucher[] = [];
  /** The merchants and references of successful redemptions and generations. */
  #redeemed: Known[] = [];
  #ordered: Known[] = [];
  /** The ids of all batches, and of those without a value that are produced in the background. */
  #batches: string[] = [];
  #large: string[] = [];
  /** The serial numbers of vouchers that replaced others. */
  readonly #successors = new Set<string>();
  /** Calls that can be sent again as they are. */
  readonly #sent: { readonly wish: Wish; readonly call: Call }[] = [];
  /** Each transaction as it was first shown. It never changes. */
  readonly #shown = new Map<string, string>();
  /** The calls and answers so far, for the message of a failure. */
  readonly #story: string[] = [];
  #leaptMs = 0;
  states: Model[] = [new Model()];

  constructor(processes: readonly ListeningService[], tally: Tally) {
    this.#processes = processes;
    this.#tally = tally;
  }

  async open(): Promise<void> {
    this.#merchants = await createMerchants(this.#processes[0] as ListeningService);
    const common = { merchant: 0, dialect: 1, flaw: null } as const;
    const order = { ...common, do: 'generate', quantity: 2, product: 'DEFAULT', expiry: null } as const;
    const ask = (wanted: Wish) => this.step({ leapMs: 0, wishes: [{ process: 0, again: null, wanted }] });
    await ask({ ...order, reference: 'without', amount: null });
    await ask({ ...order, reference: 'large', quantity: 11, amount: null });
    await ask({ ...order, reference: 'with a value', amount: 25 });
    const sale = { ...common, do: 'redeem', voucher: 0, rightPin: true, amount: 7, whole: false } as const;
    await ask({ ...sale, reference: 'a sale' });
    // The next wrong PIN locks it.
    const guess = { ...common, do: 'balance', reference: '', voucher: 0, rightPin: false } as const;
    for (let guesses = 0; guesses < 4; guesses++) await ask(guess);
  }

  /** Sends the calls of a step at once, and keeps the states of the model that can follow. */
  async step({ leapMs, wishes }: Step): Promise<void> {
    const { clock } = this.#processes[0] as ListeningService;
    clock.advance(leapMs);
    this.#leaptMs += leapMs;
    const now = clock.now().getTime();
    const sent = await Promise.all(
      wishes.map(async ({ process, again, wanted }): Promise<Sent> => {
        const earlier = again === null ? undefined : this.#sent.at(-1 - again);
        const { wish, call } = earlier ?? { wish: wanted, call: this.#call(wanted, now) };
        this.#sent.push({ wish, call });
        return { call, answer: await this.#send(this.#processes[process] as ListeningService, wish, call) };
      }),
    );
    const next = linearize(this.states, sent, now);
    this.#story.push(`${new Date(now).toISOString()}, ${next.length} states after:`, ...sent.map(describe));
    assert.ok(
      next.length > 0,
      `no order of the model explains the last of these answers:\n${this.#story.join('\n')}`,
    );
    this.states = next;
    for (const one of sent) {
      this.#learn(one);
      count(this.#tally, one);
    }
  }

  #call(wanted: Wish, now: number): Call {
    const { dialect, merchant } = wanted;
    const position = 'voucher' in wanted ? wanted.voucher : null;
    // Counted from the newest, so that new vouchers are used too.
    const serial = position === null ? undefined : this.#vouchers.at(-1 - position)?.serialNumber;
    const { flaw } = wanted;
    const common = { merchant, flaw, serial: serial === undefined ? undefined : String(serial) };
    switch (wanted.do) {
      case 'redeem': {
        const left = (this.states[0] as Model).vouchers[String(serial)]?.balance;
        const amount = wanted.whole && left ? left / 100 : wanted.amount;
        const reference = dialect === 1 ? (wanted.reference ?? 'x0') : wanted.reference;
        return { ...wanted, ...common, amount, reference };
      }
      case 'activateByCode':
        return { ...wanted, ...common };
      case 'activateBySerial':
        return { ...wanted, ...common };
      case 'generate':
        return this.#order(wanted, now);
      case 'list':
        return { do: 'list', merchant, flaw, inForceOnly: dialect === 1 };
      case 'extend':
        return { ...common, do: 'extend', until: now + EXTENSION_MS };
      case 'cancel':
        return { do: 'cancel', merchant, transactionId: this.#batches.at(-1 - wanted.batch) ?? '' };
      case 'produce':
        return { do: 'produce', merchant, transactionId: this.#large.at(-1 - wanted.batch) ?? '' };
      case 'update':
      case 'details':
      case 'lookup':
      case 'download': {
        const all = wanted.do === 'download' ? this.#ordered : this.#redeemed;
        const known =
          wanted.known === null ? undefined : all.at(-1 - (wanted.known % Math.max(all.length, 1)));
        return { ...wanted, ...common, ...(known ?? { reference: wanted.reference }) };
      }
      case 'topUp':
        // Only merchants that may call: the model does not count the floats of the others.
        return { ...wanted, merchant: merchant % MERCHANTS_THAT_MAY };
      default:
        return { ...wanted, ...common };
    }
  }

  /** Variant A always has a value and names a product; variant B has an expiry and the default product. */
  #order({ expiry, ...wanted }: Extract<Wish, { do: 'generate' }>, now: number): Call {
    if (wanted.dialect === 0) return { ...wanted, amount: wanted.amount ?? 10, until: null };
    const until = expiry === null ? null : now + (EXPIRIES_MS[expiry] as number);
    return { ...wanted, product: 'DEFAULT', until };
  }

  async #send(process: ListeningService, wanted: Wish, call: Call): Promise<Answer> {
    const known = this.#merchants[call.merchant] as Merchant;
    const spelled = this.#spell(call, DIALECTS[wanted.dialect] as Dialect);
    if (!spelled) return operate(process, known.id, call);
    const merchant =
      call.flaw === 'secret' ? { ...known, authorization: `Basic ${btoa(`${known.keyId}:no`)}` } : known;
    const request = call.flaw === 'form' ? malformed(spelled) : spelled;
    const { statusCode, replayed, data } = await process.request(merchant, request);
    return { code: statusCode === '99' ? '60' : statusCode, replayed, data };
  }

  /** The voucher of a call, with the PIN that it sends. */
  #voucher(serial: string | undefined, rightPin = true): Voucher {
    const known = this.#vouchers.find(({ serialNumber }) => String(serialNumber) === serial) ?? UNKNOWN;
    return rightPin ? known : withWrongPin(known);
  }

  #spell(call: Call, dialect: Dialect): ApiRequest | undefined {
    switch (call.do) {
      case 'generate':
        return ordered(dialect.generate(call.reference, call.quantity, call.amount as number), call, dialect);
      case 'download':
        return dialect.download(call.reference);
      case 'lookup':
        return dialect.lookup(call.reference);
      case 'details':
        return updateDetails(call.reference);
      case 'list':
        return dialect.list();
      case 'update':
        return update(call.reference, call.amount);
      case 'balance':
        return dialect.balance(this.#voucher(call.serial, call.rightPin));
      case 'redeem':
        return dialect.redeem(
          this.#voucher(call.serial, call.rightPin),
          call.amount,
          call.reference as string,
        );
      case 'activateByCode':
        return DIALECTS[0]?.activate(this.#voucher(call.serial, call.rightPin), call.reference as string);
      case 'activateBySerial': {
        const request = DIALECTS[1]?.activate(this.#voucher(call.serial), call.reference) as ApiRequest;
        return { ...request, body: { ...(request.body as object), value: call.amount } };
      }
      default:
        return undefined;
    }
  }

  /** Keeps what later calls can name, and checks that transactions are shown as before. */
  #learn({ call, answer: { code, data } }: Sent): void {
    const list = (call.do === 'list' ? data : data?.transactions) ?? [];
    const ids = list.map(({ transactionId }: { transactionId: string }) => transactionId);
    // Newest first in lists, oldest first in a balance. An update shows its transactions by their roles.
    if (call.do === 'list') assert.deepEqual(ids, [...ids].sort().reverse());
    if (call.do === 'balance') assert.deepEqual(ids, [...ids].sort());
    for (const { transactionId, transactionType: type, amount, timestamp } of [...list, data ?? {}]) {
      if (type === undefined || timestamp === undefined) continue;
      // The entry of a replacement grows with money that comes back later; the model knows the amount.
      const grows = call.do === 'balance' && this.#successors.has(call.serial ?? '') && type === 'ACTIVATION';
      // Another call shows the amount too, if the successor was not active before.
      const [shown, growing] = [amount, null].map((each) => JSON.stringify([type, each, timestamp]));
      const known = this.#shown.get(transactionId) ?? (grows ? growing : shown);
      if (known !== growing) assert.equal(known, shown);
      this.#shown.set(transactionId, known as string);
    }
    if (code !== '00') return;
    if (call.do === 'generate' && !this.#batches.includes(data.transactionId)) {
      this.#batches.push(data.transactionId);
      this.#ordered.push({ merchant: call.merchant, reference: call.reference });
      if (data.status === 'PROCESSING' && data.value === null) this.#large.push(data.transactionId);
    }
    if (call.do === 'replace') this.#successors.add(String(data.serialNumber));
    const shown: Voucher[] = call.do === 'replace' ? [data] : (data?.vouchers ?? []);
    const known = new Set(this.#vouchers.map(({ serialNumber }) => serialNumber));
    this.#vouchers.push(...shown.filter(({ serialNumber }) => !known.has(serialNumber)));
    if (call.do !== 'redeem') return;
    this.#redeemed.push({ merchant: call.merchant, reference: call.reference ?? data.transactionId });
  }

  /** Checks that balances and floats are those of a state that explains all answers. */
  async close(): Promise<void> {
    const { service, clock } = this.#processes[0] as ListeningService;
    // A night of runs would otherwise reach the last year of a date.
    clock.advance(-this.#leaptMs);
    const floats: number[] = [];
    for (const { id } of this.#merchants) {
      floats.push(Number((await listFloats(service.db, id))[0]?.balance ?? 0n));
    }
    const found: Record<string, number> = {};
    for (const serial of Object.keys((this.states[0] as Model).vouchers)) {
      found[serial] = Number((await showVoucher(service, BigInt(serial))).balance);
    }
    const fits = this.states.some(
      (state) =>
        floats.every((float, merchant) => float === state.floats[merchant]) &&
        Object.entries(state.vouchers).every(([serial, { balance }]) => balance === found[serial]),
    );
    assert.ok(fits, `no state of the model has these floats ${floats} and balances ${JSON.stringify(found)}`);
  }
}

/** Adds the field of a generation that only one of the variants has. */
function ordered(
  request: ApiRequest,
  { product, until }: Extract<Call, { do: 'generate' }>,
  { prefix }: Dialect,
): ApiRequest {
  const isA = prefix === DIALECTS[0]?.prefix;
  const expiryDate = until === null ? null : new Date(until).toISOString();
  return {
    ...request,
    body: { ...(request.body as object), ...(isA ? { productCode: product } : { expiryDate }) },
  };
}

/** A request with the same fields, each with a value of a wrong type. */
function malformed({ body, ...request }: ApiRequest): ApiRequest {
  if (body === undefined) return request;
  return { ...request, body: Object.fromEntries(Object.keys(body as object).map((name) => [name, {}])) };
}

const describe = ({ call, answer }: Sent) => `  ${JSON.stringify(call)}\n    ${JSON.stringify(answer)}`;

/** The number of answers, by the name of the call and then the code. */
export type Tally = Map<string, Map<string, number>>;

function count(tally: Tally, { call, answer: { code, replayed } }: Sent): void {
  const codes = tally.get(call.do) ?? new Map<string, number>();
  const outcome = replayed ? `${code} replayed` : code;
  tally.set(call.do, codes.set(outcome, (codes.get(outcome) ?? 0) + 1));
}

/**
 * Runs random steps of sequential or concurrent calls on processes that share a database.
 * @param tally counts the answers
 */
export function explained(processes: readonly ListeningService[], width: number, tally: Tally = new Map()) {
  let products: Promise<void> | undefined;
  return fc.asyncProperty(steps(width), async (all) => {
    products ??= createProducts(processes[0] as ListeningService);
    await products;
    const run = new Run(processes, tally);
    await run.open();
    for (const step of all) await run.step(step);
    await run.close();
  });
}

/** Proves the books of all runs together, at a time after that of each: the clock goes back after a run. */
export async function reconciles({ service }: ListeningService): Promise<void> {
  const clock = () => new Date('2100-01-01');
  assert.deepEqual(await differing({ ...service, clock }), []);
}
