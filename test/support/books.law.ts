import type { ByHand, Card, Entry } from './books.model.ts';
import { type Figures, Sums } from './reports.ts';

/**
 * The reports about the age of vouchers, for the tax adviser and for the bank, computed by hand: aging (R4),
 * cohorts and estimated breakage (R5), dormancy (R10), VAT (R11), the bank (R13).
 */

const MILLION = 1_000_000n;
const DAY_MS = 86_400_000;

/** The local time in the zone, such as `2026-03-28 23:30:00`. */
function wallClock(zone: string): (time: Date) => string {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  return (time) => format.format(time);
}

/** Rounds half away from zero. */
function divide(part: bigint, whole: bigint): bigint {
  const size = part < 0n ? -part : part;
  const rounded = size / whole + ((size % whole) * 2n >= whole ? 1n : 0n);
  return part < 0n ? -rounded : rounded;
}

/** What was issued is without what was voided; `other` is negative if money left the vouchers. */
const none = () => ({ issued: 0n, voided: 0n, redeemed: 0n, expired: 0n, other: 0n, outstanding: 0n });

function addTo(cohort: ReturnType<typeof none>, { kind, credit, amount }: Entry): void {
  const change = credit === 'VOUCHER' ? amount : -amount;
  cohort.outstanding += change;
  if (['ACTIVATION', 'IMPORT', 'VOID', 'CANCELLATION'].includes(kind)) cohort.issued += change;
  if (kind === 'VOID' || kind === 'CANCELLATION') cohort.voided -= change;
  if (['REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND'].includes(kind)) cohort.redeemed -= change;
  if (kind === 'EXPIRY' || kind === 'REINSTATEMENT') cohort.expired -= change;
  if (['ADJUSTMENT', 'CASH_OUT', 'ESCHEAT'].includes(kind)) cohort.other += change;
}

/**
 * The estimated breakage of a cohort, and what of it is recognized. The estimate lies between what has
 * expired and what has expired or can still expire; what is recognized, between what has expired and the
 * estimate.
 */
function recognized(entries: readonly Entry[], rate: bigint): { estimated: bigint; minor: bigint } {
  const cohort = none();
  for (const entry of entries) addTo(cohort, entry);
  const [issued, expired] = [cohort.issued > 0n ? cohort.issued : 0n, cohort.expired];
  const within = (minor: bigint, low: bigint, high: bigint) =>
    [low, minor, high].sort((one, other) => (one < other ? -1 : 1))[1] as bigint;
  const estimated = within(divide(issued * rate, MILLION), expired, expired + cohort.outstanding);
  const expected = issued - estimated;
  const share = expected > 0n ? divide(estimated * cohort.redeemed, expected) : estimated;
  return { estimated, minor: within(share, expired, estimated) };
}

export class ByLaw {
  readonly #hand: ByHand;
  readonly #clock: (time: Date) => string;
  readonly #activated: ReadonlyMap<bigint, Date>;
  readonly #cards: readonly Card[];

  constructor(hand: ByHand, cards: readonly Card[], zone: string) {
    this.#hand = hand;
    this.#clock = wallClock(zone);
    this.#cards = cards;
    this.#activated = new Map(cards.map(({ serial, activated }) => [serial, activated]));
  }

  #month(time: Date | undefined): string {
    return time ? this.#clock(time).slice(0, 7) : '';
  }

  /**
   * Movements of vouchers up to the end, by currency, product and month of issue.
   * @param more returns what else tells the cohorts apart
   */
  #cohorts(more: (serial: bigint) => string = () => ''): Map<string, Entry[]> {
    const moved = this.#hand.all.filter(
      ({ at, kind, debit, credit }) =>
        at < this.#hand.to && kind !== 'REPLACEMENT' && [debit, credit].includes('VOUCHER'),
    );
    return Map.groupBy(moved, ({ currency, product, serial }) => {
      const month = this.#month(this.#activated.get(serial ?? 0n));
      return `${currency} ${product} ${month}${more(serial ?? 0n)}`;
    });
  }

  cohorts(): Figures {
    const sums = new Sums();
    for (const [name, entries] of this.#cohorts()) {
      const first = Number(name.slice(-2));
      const months = entries.map(({ at }) => Number(this.#month(at).slice(5)) - first);
      for (const month of new Set(months)) {
        const cohort = none();
        for (const [index, entry] of entries.entries())
          if ((months[index] ?? 0) <= month) addTo(cohort, entry);
        for (const [column, minor] of Object.entries(cohort)) sums.add(`${name} ${month} ${column}`, minor);
        if (cohort.issued > 0n) {
          const percent = divide(cohort.redeemed * 10_000n, cohort.issued);
          sums.add(`${name} ${month} redeemedPercent`, percent);
        }
      }
    }
    return sums.figures();
  }

  /** @param rateOn the rate of a product on a day, in millionths */
  estimate(rateOn: (product: string, day: string) => bigint | undefined): Figures {
    const sums = new Sums();
    const policies = new Map(this.#cards.map(({ serial, policy }) => [serial, policy]));
    const dayBefore = (time: Date) => this.#clock(new Date(time.getTime() - 1)).slice(0, 10);
    for (const [name, entries] of this.#cohorts((serial) => ` ${policies.get(serial)}`)) {
      const [, product = '', , policy] = name.split(' ');
      const rate = rateOn(product, dayBefore(this.#hand.to));
      if (rate === undefined) continue;
      const cohort = none();
      for (const entry of entries) addTo(cohort, entry);
      for (const [column, minor] of Object.entries(cohort)) sums.add(`${name} ${column}`, minor);
      // Unclaimed money belongs to a state.
      if (policy === 'unclaimed') continue;
      const now = recognized(entries, rate);
      const earlier = entries.filter(({ at }) => at < this.#hand.from);
      const before = recognized(earlier, rateOn(product, dayBefore(this.#hand.from)) ?? 0n);
      sums.add(`${name} estimated`, now.estimated);
      sums.add(`${name} recognized`, now.minor);
      sums.add(`${name} before`, before.minor);
      sums.add(`${name} inInterval`, now.minor - before.minor);
      sums.add(`${name} deferred`, now.estimated - now.minor);
      sums.add(`${name} toBook`, now.minor - cohort.expired);
    }
    return sums.figures();
  }

  /**
   * The last redemption with a card or one that it replaced, or its activation. A correction is no use. A
   * replacement has a greater number.
   */
  #lastUse({ serial, activated }: Card): Date {
    const numbers = new Set([serial]);
    for (const each of this.#cards.toSorted((one, other) => Number(other.serial - one.serial)))
      if (each.replacedBy !== null && numbers.has(each.replacedBy)) numbers.add(each.serial);
    const uses = this.#hand.all.filter(
      (each) => each.kind === 'REDEMPTION' && each.original === null && numbers.has(each.serial ?? 0n),
    );
    return uses.findLast(({ at }) => at < this.#hand.to)?.at ?? activated;
  }

  /** @param isByProduct whether each figure is of one product, of which its name then tells */
  aging(isByProduct = false): Figures {
    const sums = new Sums();
    const held = this.#hand.held();
    const bounds = [
      [30, '0-30'],
      [60, '31-60'],
      [90, '61-90'],
      [180, '91-180'],
      [365, '181-365'],
      [Number.POSITIVE_INFINITY, '>365'],
    ] as const;
    // Days are those of the zone of the books.
    const dayOf = (time: Date) => Date.parse(`${this.#clock(time).slice(0, 10)}T00:00:00Z`) / DAY_MS;
    const today = dayOf(new Date(this.#hand.to.getTime() - 1));
    for (const card of this.#cards) {
      const { serial, currency, product, expires } = card;
      const minor = held.get(serial);
      if (!minor) continue;
      const ages = { expires: dayOf(expires) - today, idle: today - dayOf(this.#lastUse(card)) };
      for (const [basis, age] of Object.entries(ages)) {
        const [, bucket] = bounds.find(([most]) => age <= most) ?? [0, ''];
        const name = `${currency} ${isByProduct ? `${product} ` : ''}${basis} ${bucket}`;
        sums.add(`${name} outstanding`, minor);
        sums.add(`${name} vouchers`, 1n);
      }
    }
    return sums.figures();
  }

  /** The balances of vouchers by the month in which they expire. */
  expiryMonths(): Figures {
    const sums = new Sums();
    const held = this.#hand.held();
    const now = this.#clock(new Date(this.#hand.to.getTime() - 1)).slice(0, 7);
    for (const { serial, currency, expires } of this.#cards) {
      const minor = held.get(serial);
      if (!minor) continue;
      const month = this.#clock(expires).slice(0, 7);
      // A correction of an expired voucher gives it a balance until the next sweep.
      const shown = month < now ? now : month > nextYear(now) ? 'later' : month;
      const name = `${currency} ${shown}`;
      sums.add(`${name} outstanding`, minor);
      sums.add(`${name} vouchers`, 1n);
    }
    return sums.figures();
  }

  /** The lines of vouchers that are dormant, one month after their issue or last redemption. */
  dormant(rules: readonly { name: string; basis: 'issue' | 'last-use' }[]): string[] {
    const lines: string[] = [];
    const held = this.#hand.held();
    for (const card of this.#cards) {
      const { serial, currency, activated } = card;
      const minor = held.get(serial);
      if (!minor) continue;
      const used = this.#lastUse(card);
      for (const { name, basis } of rules) {
        const due = monthLater(this.#clock(basis === 'issue' ? activated : used));
        if (due > this.#clock(this.#hand.to)) continue;
        const days = [this.#clock(activated), this.#clock(used), due].map((time) => time.slice(0, 10));
        lines.push([currency, name, serial, ...days, minor].join(' '));
      }
    }
    return lines.sort();
  }

  /**
   * Commission and VAT by merchant, product and day. A correction follows the terms of the redemption.
   * @param termsOn the terms of a merchant on a day
   */
  commission(termsOn: (merchantId: number, day: string) => Rates | undefined): Figures {
    const bases = new Sums();
    const day = ({ at }: Entry) => this.#clock(at).slice(0, 10);
    const redeemed = new Map(this.#hand.all.map((each) => [each.id, each]));
    for (const each of this.#hand.own) {
      if (!['REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND'].includes(each.kind)) continue;
      const of = redeemed.get(each.original ?? '') ?? each;
      const sign = each.kind === 'REDEMPTION' ? 1n : -1n;
      bases.add(
        [each.currency, each.merchant, each.product, day(each), day(of)].join(' '),
        sign * each.amount,
      );
    }
    const sums = new Sums();
    for (const [name, minor] of Object.entries(bases.figures())) {
      const [currency, merchant, product, on, of] = name.split(' ');
      const { commissionPpm, vatPpm } = termsOn(Number(merchant), of ?? '') ?? {
        commissionPpm: 0,
        vatPpm: 0,
      };
      const fee = divide(minor * BigInt(commissionPpm), MILLION);
      sums.add(`${currency} ${merchant} ${product} ${on} FEE`, fee);
      sums.add(`${currency} ${merchant} ${product} ${on} FEE_VAT`, divide(fee * BigInt(vatPpm), MILLION));
    }
    return sums.figures();
  }

  /** The same, as it was booked. */
  bookedCommission(): Figures {
    const sums = new Sums();
    for (const { kind, at, currency, merchant, product, amount } of this.#hand.own) {
      if (!kind.startsWith('FEE')) continue;
      const name = [currency, merchant, product, this.#clock(at).slice(0, 10)].join(' ');
      sums.add(`${name} ${kind.replace('_REVERSAL', '')}`, kind.endsWith('_REVERSAL') ? -amount : amount);
    }
    return sums.figures();
  }

  /** @param treatmentOf the VAT treatment of a product on a day */
  vat(treatmentOf: (product: string, day: string) => Treatment | undefined): Figures {
    const sums = new Sums();
    const taxed = new Map<string, { minor: bigint; rate: bigint }>();
    for (const { kind, at, currency, product, amount } of this.#hand.own) {
      const [column, sign] = VAT_COLUMNS[kind] ?? ['', 0n];
      if (column === '') continue;
      const { treatment, country, rate } = treatmentOf(product, this.#clock(at).slice(0, 10)) ?? {};
      const percent = rate === undefined ? null : Number(rate) / 10_000;
      const name = [currency, product, treatment ?? null, country ?? null, percent].join(' ');
      sums.add(`${name} ${column}`, sign * amount);
      const isTaxed = { single: 'issued', multi: 'redeemed', outside: '' }[treatment ?? 'outside'] === column;
      const sum = taxed.get(name) ?? { minor: 0n, rate: rate ?? 0n };
      if (isTaxed) taxed.set(name, { ...sum, minor: sum.minor + sign * amount });
    }
    for (const [name, { minor, rate }] of taxed) {
      const base = divide(minor * MILLION, MILLION + rate);
      sums.add(`${name} taxed`, minor);
      sums.add(`${name} base`, base);
      sums.add(`${name} tax`, minor - base);
    }
    return sums.figures();
  }

  /** @param shown the entries of the bank, each for one movement or none */
  bank(shown: readonly Shown[], own: Readonly<Record<string, bigint>>): Figures {
    const sums = new Sums();
    const end = this.#clock(this.#hand.to).slice(0, 10);
    const booked = new Map(
      this.#hand.all.filter(({ at }) => at < this.#hand.to).map((each) => [each.id, each]),
    );
    for (const [currency, minor] of Object.entries(own)) {
      sums.add(`${currency} own money in the account`, minor);
      sums.add(`${currency} bank`, minor);
    }
    for (const { currency, debit, credit, amount } of booked.values()) {
      const minor = debit === 'FUNDING' ? amount : credit === 'FUNDING' ? -amount : 0n;
      sums.add(`${currency} funding, as booked`, minor);
      sums.add(`${currency} booked, not at the bank`, -minor);
    }
    for (const { currency, day, minor, movement } of shown) {
      if (day >= end) continue;
      sums.add(`${currency} bank`, minor);
      const what = movement && booked.has(movement) ? 'booked, not at the bank' : 'at the bank, not booked';
      sums.add(`${currency} ${what}`, minor);
    }
    const figures = sums.figures();
    for (const currency of Object.keys(own)) {
      const bank = figures[`${currency} bank`];
      if (bank) figures[`${currency} expected`] = bank;
    }
    return Object.fromEntries(Object.entries(figures).map(([name, minor]) => [`${name} amount`, minor]));
  }
}

type Rates = { readonly commissionPpm: number; readonly vatPpm: number };

export type Treatment = {
  readonly treatment: 'single' | 'multi' | 'outside';
  readonly country: string;
  readonly rate: bigint;
};

/** An entry of a bank's statement. */
export type Shown = {
  readonly currency: string;
  readonly day: string;
  readonly minor: bigint;
  /** The movement it belongs to. */
  readonly movement: string | null;
};

const VAT_COLUMNS: Readonly<Record<string, readonly [string, bigint]>> = {
  ACTIVATION: ['issued', 1n],
  VOID: ['issued', -1n],
  CANCELLATION: ['issued', -1n],
  CASH_OUT: ['issued', -1n],
  IMPORT: ['imported', 1n],
  REDEMPTION: ['redeemed', 1n],
  REDEMPTION_REVERSAL: ['redeemed', -1n],
  REFUND: ['redeemed', -1n],
  EXPIRY: ['expired', 1n],
  REINSTATEMENT: ['expired', -1n],
};

/** The same month of the year after. */
const nextYear = (month: string) => `${Number(month.slice(0, 4)) + 1}${month.slice(4)}`;

/** The same time of day a month later, on the last day if the month is shorter. */
function monthLater(clock: string): string {
  const [year = 0, month = 0, day = 0] = clock.slice(0, 10).split('-').map(Number);
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const later = new Date(Date.UTC(year, month, Math.min(day, last)));
  return later.toISOString().slice(0, 10) + clock.slice(10);
}
