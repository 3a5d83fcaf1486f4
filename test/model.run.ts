import assert from 'node:assert/strict';
import fc from 'fast-check';
import { cancelBatch } from '../src/batches/cancel.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { listFloats } from '../src/merchants/floats.ts';
import { Refusal } from '../src/refusal.ts';
import {
  blockVoucher,
  extendVoucher,
  replaceVoucher,
  showVoucher,
  unblockVoucher,
  unlockPin,
} from '../src/vouchers/operate.ts';
import { type Asked, DIALECTS, type Dialect, update, updateDetails, type Voucher } from './dialects.ts';
import { asOperator, type ListeningService } from './harness.ts';
import { FLOAT_MINOR, MERCHANTS } from './model.state.ts';
import { type Answer, type Call, Model } from './model.ts';
import { EXTENSION_MS, type Step, steps, type Wish } from './model.wishes.ts';
import { UNKNOWN, withWrongPin } from './till.ts';

/** Runs groups of calls against processes of the service, and searches an order of the model that explains their answers. */

type Merchant = Awaited<ReturnType<ListeningService['createMerchant']>>;
type Sent = { readonly call: Call; readonly answer: Answer };

/** A run with merchants and vouchers of its own. */
class Run {
  readonly #processes: readonly ListeningService[];
  readonly #merchants: Merchant[] = [];
  #vouchers: Voucher[] = [];
  /** Ids of transactions without a reference, and of batches. */
  #ids: string[] = [];
  #batches: string[] = [];
  /** Calls that can be sent again as they are. */
  readonly #sent: { readonly wish: Wish; readonly call: Call }[] = [];
  /** What was told of each transaction; nothing of it ever changes. */
  readonly #told = new Map<string, string>();
  /** For whoever has to find out why no order explains an answer. */
  readonly #story: string[] = [];
  states: Model[] = [new Model()];

  constructor(processes: readonly ListeningService[]) {
    this.#processes = processes;
  }

  async open(): Promise<void> {
    const [process] = this.#processes as [ListeningService];
    for (const { opaque, mayUpdate } of MERCHANTS) {
      const permit = mayUpdate ? (['update-redemption'] as const) : [];
      this.#merchants.push(await process.createMerchant({ opaque, permit, float: BigInt(FLOAT_MINOR) }));
    }
    const common = { do: 'generate', quantity: 2, merchant: 0, dialect: 1 } as const;
    const order = (wanted: Wish) => this.step({ leapMs: 0, wishes: [{ process: 0, again: null, wanted }] });
    await order({ ...common, reference: 'without', amount: null });
    await order({ ...common, reference: 'with a value', amount: 25 });
  }

  /** Sends the calls of a step at once, and keeps the states of the model that can follow. */
  async step({ leapMs, wishes }: Step): Promise<void> {
    const { clock } = this.#processes[0] as ListeningService;
    clock.advance(leapMs);
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
    this.#story.push(`${new Date(now).toISOString()}, ${next.length} states after:`, ...sent.map(tell));
    assert.ok(next.length > 0, `no order of the model explains the last of these answers:\n${this.#story.join('\n')}`);
    this.states = next;
    for (const one of sent) this.#learn(one);
  }

  #call(wanted: Wish, now: number): Call {
    const { dialect, merchant } = wanted;
    const position = 'voucher' in wanted ? wanted.voucher : null;
    // The newest ones, so that those that came last are met too.
    const serial = position === null ? undefined : this.#vouchers.at(-1 - position)?.serialNumber;
    const common = { merchant, serial: serial === undefined ? undefined : String(serial) };
    const reference =
      'byId' in wanted && wanted.byId ? (this.#ids.at(-1) ?? wanted.reference) : (wanted.reference ?? null);
    switch (wanted.do) {
      case 'redeem':
        return { ...wanted, ...common, reference: dialect === 1 ? (wanted.reference ?? 'x0') : wanted.reference };
      case 'activateByCode':
        return { ...wanted, ...common };
      case 'activateBySerial':
        return { ...wanted, ...common };
      case 'generate':
        return { ...wanted, amount: dialect === 0 ? (wanted.amount ?? 10) : wanted.amount };
      case 'list':
        return { do: 'list', merchant, inForceOnly: dialect === 1 };
      case 'extend':
        return { ...common, do: 'extend', until: now + EXTENSION_MS };
      case 'cancel':
        return { do: 'cancel', merchant, transactionId: this.#batches.at(-1 - wanted.batch) ?? '' };
      default:
        return { ...wanted, ...common, reference } as Call;
    }
  }

  async #send(process: ListeningService, wanted: Wish, call: Call): Promise<Answer> {
    const asked = this.#spell(call, DIALECTS[wanted.dialect] as Dialect);
    if (!asked) return operate(process, call);
    const merchant = this.#merchants[call.merchant] as Merchant;
    const { statusCode, replayed, data } = await process.request(merchant, asked);
    return { code: statusCode === '99' ? '60' : statusCode, replayed, data };
  }

  /** The voucher that a call names, with the PIN that it sends. */
  #voucher(serial: string | undefined, rightPin = true): Voucher {
    const known = this.#vouchers.find(({ serialNumber }) => String(serialNumber) === serial) ?? UNKNOWN;
    return rightPin ? known : withWrongPin(known);
  }

  #spell(call: Call, dialect: Dialect): Asked | undefined {
    switch (call.do) {
      case 'generate':
        return dialect.generate(call.reference, call.quantity, call.amount as number);
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
        return dialect.redeem(this.#voucher(call.serial, call.rightPin), call.amount, call.reference as string);
      case 'activateByCode':
        return DIALECTS[0]?.activate(this.#voucher(call.serial, call.rightPin), call.reference as string);
      case 'activateBySerial': {
        const asked = DIALECTS[1]?.activate(this.#voucher(call.serial), call.reference) as Asked;
        return { ...asked, body: { ...(asked.body as object), value: call.amount } };
      }
      default:
        return undefined;
    }
  }

  /** What the next calls can name, and that what was told of a transaction before is told again. */
  #learn({ call, answer: { code, data } }: Sent): void {
    const list = call.do === 'list' ? data : (data?.transactions ?? []);
    const ids = list.map(({ transactionId }: { transactionId: string }) => transactionId);
    // Newest first in lists, oldest first in a balance. An update tells its transactions by what they are.
    if (call.do === 'list') assert.deepEqual(ids, [...ids].sort().reverse());
    if (call.do === 'balance') assert.deepEqual(ids, [...ids].sort());
    for (const { transactionId, transactionType, amount, timestamp } of [...list, data ?? {}]) {
      if (transactionType === undefined || timestamp === undefined) continue;
      const told = JSON.stringify([transactionType, amount, timestamp]);
      assert.equal(this.#told.get(transactionId) ?? told, told);
      this.#told.set(transactionId, told);
    }
    if (code !== '00') return;
    if (call.do === 'generate' && !this.#batches.includes(data.transactionId)) {
      this.#batches.push(data.transactionId);
      this.#vouchers.push(...(data.vouchers ?? []));
    }
    if (call.do === 'replace') this.#vouchers.push(data);
    if ('reference' in call && call.reference === null) this.#ids.push(data.transactionId);
  }

  /** Balances and floats are those of a state that explains all answers. */
  async close(): Promise<void> {
    const { service } = this.#processes[0] as ListeningService;
    const floats: number[] = [];
    for (const { id } of this.#merchants) {
      floats.push(Number((await listFloats(service.db, id))[0]?.balance.minor ?? 0n));
    }
    const found: Record<string, number> = {};
    for (const serial of Object.keys((this.states[0] as Model).vouchers)) {
      found[serial] = Number((await showVoucher(service, BigInt(serial))).balance.minor);
    }
    const fits = this.states.some(
      (state) =>
        floats.every((float, merchant) => float === state.floats[merchant]) &&
        Object.entries(state.vouchers).every(([serial, { balance }]) => balance === found[serial]),
    );
    assert.ok(fits, `no state of the model has these floats ${floats} and balances ${JSON.stringify(found)}`);
  }
}

async function operate({ service }: ListeningService, call: Call): Promise<Answer> {
  const operator = asOperator(service);
  const done = (data: unknown): Answer => ({ code: '00', replayed: false, data });
  const serial = BigInt(('serial' in call ? call.serial : undefined) ?? UNKNOWN.serialNumber);
  try {
    if (call.do === 'block') return done(await blockVoucher(operator, serial));
    if (call.do === 'unblock') return done(await unblockVoucher(operator, serial));
    if (call.do === 'unlock') return done(await unlockPin(operator, serial));
    if (call.do === 'extend') return done(await extendVoucher(operator, serial, new Date(call.until)));
    if (call.do === 'cancel') {
      // What is no id of a batch finds none.
      const batch = call.transactionId === '' ? undefined : await cancelBatch(operator, call.transactionId);
      return batch ? done({ status: batch.status }) : { code: '60', replayed: false, data: null };
    }
    return done(await replaced(operator, serial));
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code, replayed: false, data: null };
    throw error;
  }
}

/** Replaces a voucher; the new one's code and PIN are read as its merchant would read them. */
async function replaced(operator: ReturnType<typeof asOperator>, serial: bigint) {
  const made = await replaceVoucher(operator, serial);
  const sealed = await sealedOf(operator.service, made);
  return { serial: String(made), serialNumber: Number(made), ...operator.service.keys.open(made, sealed) };
}

async function sealedOf({ db }: ListeningService['service'], serial: bigint): Promise<Buffer> {
  const text = 'select sealed from vouchers where serial_number = $1';
  const [row] = await db.query<{ sealed: Buffer }>({ text, values: [serial] });
  return row?.sealed ?? assert.fail('a voucher has gone');
}

const tell = ({ call, answer }: Sent) => `  ${JSON.stringify(call)}\n    ${JSON.stringify(answer)}`;

/** The states that some order of calls made at the same time leads to, with exactly these answers. */
export function linearize(from: readonly Model[], sent: readonly Sent[], now: number): Model[] {
  let level = new Map<number, Map<string, Model>>([[0, new Map(from.map((state) => [state.key(), state]))]]);
  for (let done = 0; done < sent.length; done++) {
    const next = new Map<number, Map<string, Model>>();
    for (const [mask, states] of level) {
      for (const [at, { call, answer }] of sent.entries()) {
        if (mask & (1 << at)) continue;
        for (const state of states.values()) {
          const after = state.clone();
          if (!after.step(call, answer, now)) continue;
          const reached = next.get(mask | (1 << at)) ?? new Map<string, Model>();
          next.set(mask | (1 << at), reached.set(after.key(), after));
        }
      }
    }
    level = next;
  }
  return [...(level.get((1 << sent.length) - 1)?.values() ?? [])];
}

/** Any steps, of calls one after the other or at the same time, over processes that share a database. */
export function explained(processes: readonly ListeningService[], width: number) {
  return fc.asyncProperty(steps(width), async (all) => {
    const run = new Run(processes);
    await run.open();
    for (const step of all) await run.step(step);
    await run.close();
  });
}

/** Proves the books of all runs together. */
export async function reconciles({ service }: ListeningService): Promise<void> {
  const { checks } = await reconcile(service.db);
  const different = checks.filter(({ ok }) => !ok);
  assert.deepEqual(different, []);
}
