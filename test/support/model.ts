import type { Answer, Asks, Call, Named } from './model.calls.ts';
import { type Entry, sameEntry } from './model.compare.ts';
import { refusedAtOnce } from './model.forms.ts';
import { type Movement, moveMoney } from './model.movements.ts';
import {
  type Batch,
  MERCHANTS,
  ModelState,
  minorOf,
  PRODUCTS,
  stateRefusal,
  type Voucher,
} from './model.state.ts';

/**
 * The service as plain rules over plain values. `step` checks an answer in a state, and changes the state.
 * Amounts are minor units of USD. A merchant is its position in MERCHANTS.
 */

const [MINOR_MAX, DEFAULT_MINOR] = [100_000_00, 5_000_00];
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const FOR_GOOD = Number.MAX_SAFE_INTEGER;

export class Model extends ModelState {
  /** Whether the rules give this answer now. If so, the state becomes the next one; if not, it is useless. */
  step(call: Call, answer: Answer, now: number): boolean {
    const expected = this.#decide(call, answer, now);
    return typeof expected === 'string' ? answer.code === expected : answer.code === '00' && expected;
  }

  /** The expected refusal, or whether the answer of a success is right. */
  #decide(call: Call, answer: Answer, now: number): string | boolean {
    const refusal = refusedAtOnce(call);
    if (refusal) return refusal;
    const { data } = answer;
    switch (call.do) {
      case 'generate':
        return this.#generate(call, answer, now);
      case 'download': {
        const batch = this.batchOf(call.merchant, call.reference);
        return batch ? answer.code === '00' && this.shows(batch, data) : '60';
      }
      case 'balance':
        return this.#guard(call, now) ?? (answer.code === '00' && this.showsBalance(call, data, now));
      case 'redeem':
        return this.#redeem(call, answer, now);
      case 'activateByCode':
        return this.#activate(call, answer, now, null);
      case 'activateBySerial':
        return this.#activate({ ...call, rightPin: true }, answer, now, call.amount);
      case 'update':
        return this.#update(call, answer, now);
      case 'details': {
        const original = this.find(call.merchant, 'redeem', call.reference);
        return original && this.reversalOf(original)
          ? this.showsUpdate(original, call.reference, answer)
          : '60';
      }
      case 'lookup':
        return this.#lookup(call.merchant, call.reference, answer);
      case 'list':
        return answer.code === '00' && this.showsList(call.merchant, call.inForceOnly, data);
      case 'cancel':
      case 'produce':
        return this.#end(call.transactionId, call.do === 'cancel', data);
      case 'topUp':
        this.floats[call.merchant] = this.float(call.merchant) + call.minor;
        return data.minor === this.floats[call.merchant];
      default:
        return this.#operate(call, answer, now);
    }
  }

  #generate(
    call: Extract<Call, { do: 'generate' }>,
    { code, replayed, data }: Answer,
    now: number,
  ): string | boolean {
    const { merchant, reference, quantity, until } = call;
    const product = PRODUCTS[call.product];
    const minor = call.amount === null ? null : Math.round(call.amount * 100);
    const prior = this.batchOf(merchant, reference);
    const same =
      prior?.quantity === quantity &&
      prior.minor === minor &&
      prior.product === call.product &&
      prior.until === until;
    // The retry of a successful generation is a replay, whatever has changed since.
    if (prior) return same ? code === '00' && replayed && this.shows(prior, data) : '94';
    if (until !== null && until < now + DAY_MS) return '17';
    if (!product?.onSale) return '15';
    if (minor !== null && (minor < product.leastMinor || minor > product.mostMinor)) return '61';
    if (quantity > product.most) return '16';
    const price = (minor ?? 0) * quantity;
    if (price > this.float(merchant)) return '50';
    if (code !== '00' || replayed || this.batches[data.transactionId]) return false;
    this.floats[merchant] = this.float(merchant) - price;
    const status = quantity > 10 ? 'PROCESSING' : 'COMPLETED';
    const expires = until ?? Date.parse(data.expiryDate);
    const request = { merchant, reference, quantity, minor, product: call.product, until };
    const batch: Batch = {
      ...request,
      id: data.transactionId,
      status,
      expires,
      unseen: status === 'COMPLETED',
    };
    this.batches[batch.id] = batch;
    return this.shows(batch, data);
  }

  /** Checks and counts a PIN. @returns the refusal, or undefined for a right PIN */
  #guard({ serial, rightPin, merchant }: Named & Asks, now: number): string | undefined {
    const voucher = serial === undefined ? undefined : this.vouchers[serial];
    if (!voucher) return '14';
    // To an opaque merchant an unknown code, a wrong PIN and a locked one look alike.
    const isOpaque = MERCHANTS[merchant]?.opaque;
    if (voucher.lockedUntil > now) return isOpaque ? '14' : '75';
    voucher.wrong = rightPin ? 0 : Math.min(voucher.wrong + 1, 15);
    voucher.lockedUntil = 0;
    if (voucher.wrong === 5) voucher.lockedUntil = now + 15 * MINUTE_MS;
    if (voucher.wrong === 10) voucher.lockedUntil = now + 24 * 60 * MINUTE_MS;
    if (voucher.wrong === 15) voucher.lockedUntil = FOR_GOOD;
    return rightPin ? undefined : isOpaque ? '14' : '55';
  }

  #redeem(call: Extract<Call, { do: 'redeem' }>, answer: Answer, now: number): string | boolean {
    const { serial = '', merchant, reference } = call;
    const minor = Math.round(call.amount * 100);
    const prior = reference === null ? undefined : this.find(merchant, 'redeem', reference);
    if (prior && (prior.serial !== call.serial || prior.minor !== minor)) return '94';
    const refusal = this.#guard(call, now);
    if (refusal) return refusal;
    if (prior) return answer.replayed && sameEntry(answer.data, prior, null);
    const voucher = this.vouchers[serial] as Voucher;
    const closed = stateRefusal(voucher, now);
    if (closed) return closed;
    if (voucher.value === null) return '40';
    if (voucher.issuerOnly && voucher.issuer !== merchant) return '47';
    if (voucher.balance === 0) return '42';
    if (voucher.balance < minor) return '51';
    voucher.balance -= minor;
    return this.#book(answer, {
      type: 'REDEMPTION',
      operation: 'redeem',
      merchant,
      serial,
      minor,
      reference,
    });
  }

  #activate(
    call: Named & Asks & { do: string; reference: string | null },
    answer: Answer,
    now: number,
    amount: number | null,
  ): string | boolean {
    const { merchant, reference } = call;
    const byCode = call.do === 'activateByCode';
    const requested = amount === null ? null : Math.round(amount * 100);
    const named = call.serial === undefined ? undefined : this.vouchers[call.serial];
    const voucher = byCode || named?.issuer === merchant ? named : undefined;
    const minor = voucher?.batchMinor ?? requested ?? DEFAULT_MINOR;
    if (voucher && requested !== null && voucher.batchMinor !== null && requested !== voucher.batchMinor)
      return '13';
    if (voucher && minor > MINOR_MAX) return '61';
    const prior = reference === null ? undefined : this.find(merchant, 'activate', reference);
    if (prior && (!voucher || prior.serial !== call.serial || prior.minor !== minor)) return '94';
    if (!voucher) return '14';
    const refusal = byCode ? this.#guard(call, now) : undefined;
    if (refusal) return refusal;
    if (prior) return answer.replayed && sameEntry(answer.data, prior, null);
    const closed = stateRefusal(voucher, now);
    if (closed) return closed;
    if (voucher.value !== null) return '41';
    if (voucher.issuerOnly && voucher.issuer !== merchant) return '47';
    // A voucher with a value of its batch was paid for when it was generated.
    const price = voucher.batchMinor === null ? minor : 0;
    if (price > this.float(merchant)) return '50';
    this.floats[merchant] = this.float(merchant) - price;
    Object.assign(voucher, { value: minor, balance: minor, payer: voucher.payer ?? merchant });
    const serial = call.serial as string;
    return this.#book(answer, {
      type: 'ACTIVATION',
      operation: 'activate',
      merchant,
      serial,
      minor,
      reference,
    });
  }

  #book({ code, replayed, data }: Answer, entry: Omit<Entry, 'id' | 'original'>): boolean {
    if (code !== '00' || replayed || this.entries[data.transactionId]) return false;
    const booked = { ...entry, id: data.transactionId, original: null };
    this.entries[booked.id] = booked;
    return sameEntry(data, booked, null);
  }

  #update(call: Extract<Call, { do: 'update' }>, answer: Answer, now: number): string | boolean {
    const minor = minorOf(call.amount ?? 0) as number;
    const original = this.find(call.merchant, 'redeem', call.reference);
    if (!original) return '60';
    const voucher = this.vouchers[original.serial] as Voucher;
    const last = this.#lastOf(original.serial);
    if (this.vouchers[last]?.canceled) return '44';
    const refusal = stateRefusal(voucher, now);
    if (refusal && minor > original.minor) return refusal;
    // The refusal shows the first update.
    if (this.reversalOf(original)) return this.showsUpdate(original, call.reference, answer) && '58';
    if (minor > voucher.balance + original.minor) return '51';
    if (answer.code !== '00') return false;
    this.#giveBack(last, original.minor - minor, last !== original.serial);
    const { merchant, serial } = original;
    const named = (prefix: string) => (original.reference === null ? null : prefix + original.reference);
    const common = { operation: null, merchant, serial, original: original.id } as const;
    const { cancellationTransaction, newTransaction } = answer.data;
    const id = cancellationTransaction.transactionId;
    const canceled = { ...common, id, minor: -original.minor, reference: named('CANCEL-') };
    this.entries[id] = { ...canceled, type: 'REDEMPTION_REVERSAL' };
    if (minor > 0) {
      const renewed = { ...common, id: newTransaction?.transactionId, minor, reference: named('NEW-') };
      this.entries[renewed.id] = { ...renewed, type: 'REDEMPTION' };
    }
    return this.showsUpdate(original, call.reference, answer);
  }

  /** Returns the last voucher of a chain of replacements. */
  #lastOf(serial: string): string {
    const { replaced } = this.vouchers[serial] as Voucher;
    return replaced === null ? serial : this.#lastOf(replaced);
  }

  #giveBack(serial: string, minor: number, hasReplaced: boolean): void {
    const voucher = this.vouchers[serial] as Voucher;
    voucher.balance += minor;
    if (!hasReplaced) return;
    voucher.value = (voucher.value ?? 0) + minor;
    this.takeOver(serial, minor);
  }

  #lookup(merchant: number, reference: string, { code, data }: Answer): string | boolean {
    const found = this.find(merchant, 'redeem', reference) ?? this.find(merchant, 'activate', reference);
    if (!found) return '60';
    if (!this.reversalOf(found)) return code === '00' && sameEntry(data, found, null);
    const active = this.replacementOf(found);
    return active ? code === '00' && sameEntry(data, active, 'NEW') : '60';
  }

  /** A batch ends once: completed by the worker, or canceled by the operator before that. */
  #end(transactionId: string, canceled: boolean, data: { status: string } | null): string | boolean {
    const batch = this.batches[transactionId];
    if (!batch) return '60';
    if (batch.status === 'PROCESSING') {
      batch.status = canceled ? 'CANCELED' : 'COMPLETED';
      batch.unseen = !canceled;
      if (canceled)
        this.floats[batch.merchant] = this.float(batch.merchant) + (batch.minor ?? 0) * batch.quantity;
    }
    return data?.status === batch.status;
  }

  #operate(
    call: Movement | Extract<Call, { do: 'block' | 'unblock' | 'unlock' | 'replace' | 'extend' }>,
    answer: Answer,
    now: number,
  ) {
    const voucher = call.serial === undefined ? undefined : this.vouchers[call.serial];
    if (!voucher) return '14';
    if (voucher.replaced || voucher.canceled) return '44';
    if (call.do === 'adjust' || call.do === 'cashOut' || call.do === 'cancelVoucher') {
      const { balance, payer, value, batchMinor } = voucher;
      const outcome = moveMoney(voucher, call, now);
      // A voucher that is not active holds nothing yet, but may have been paid for.
      const back = value === null ? (batchMinor ?? 0) : balance;
      if (voucher.canceled && payer !== null) this.floats[payer] = this.float(payer) + back;
      return outcome;
    }
    if (call.do === 'extend') {
      if (call.until <= now || call.until <= voucher.expires) return '17';
      voucher.expires = call.until;
    } else if (call.do === 'replace') {
      if (voucher.expires <= now) return '54';
      if (answer.code !== '00' || this.vouchers[answer.data.serial]) return false;
      const { serial } = answer.data;
      const { balance } = voucher;
      const value = voucher.value === null ? null : balance;
      this.vouchers[serial] = { ...voucher, value, blocked: false, wrong: 0, lockedUntil: 0 };
      Object.assign(voucher, { replaced: serial, balance: 0 });
      this.takeOver(serial, balance);
    } else if (call.do === 'unlock') Object.assign(voucher, { wrong: 0, lockedUntil: 0 });
    else voucher.blocked = call.do === 'block';
    return '00';
  }
}
