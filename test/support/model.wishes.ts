import fc from 'fast-check';
import { MERCHANTS } from './model.state.ts';

/**
 * Random calls of random merchants, with placeholders for which a run of the model puts vouchers and
 * references.
 */

const REFERENCES = 3;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** No sum of these is close to the end of a lock or voucher, so that a small delay changes no answer. */
const LEAPS_MS = [0, 0, 0, 0, 0, 0, 16 * MINUTE_MS, DAY_MS + 60 * MINUTE_MS, 100 * DAY_MS];
export const EXTENSION_MS = 33 * DAY_MS + 433 * MINUTE_MS;
/** An expiry that is too soon, and one that passes after a few leaps. */
export const EXPIRIES_MS = [60 * MINUTE_MS, 2 * DAY_MS + 127 * MINUTE_MS];

const amount = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(0.01, 2.5, 7, 10, 25) },
  { weight: 2, arbitrary: fc.constantFrom(0, -1, 0.001, 30, 4_000, 100_000.01) },
);
const nothing = fc.constant(null);
const base = {
  merchant: fc.oneof(
    { weight: 12, arbitrary: fc.constant(0) },
    { weight: 6, arbitrary: fc.nat(2) },
    { weight: 1, arbitrary: fc.integer({ min: 3, max: MERCHANTS.length - 1 }) },
  ),
  dialect: fc.nat(1),
  reference: fc.oneof(
    { weight: 24, arbitrary: fc.nat(REFERENCES - 1).map((at) => `x${at}`) },
    { weight: 1, arbitrary: fc.constantFrom('CANCEL-x0', 'NEW-x1') },
  ),
  flaw: fc.oneof(
    { weight: 30, arbitrary: nothing },
    { weight: 1, arbitrary: fc.constantFrom('secret', 'form') },
  ),
};
/** The position of a voucher among those known when the call is sent: few, so that calls share vouchers. */
const voucher = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 10, arbitrary: fc.nat(3) },
  { weight: 1, arbitrary: nothing },
);
const named = { voucher, rightPin: fc.nat(7).map((die) => die > 0) };
/**
 * The position among the successful redemptions or generations. Most calls name one: the answers to others
 * show little.
 */
const known = fc.oneof({ weight: 4, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: nothing });
/** Whether a redemption takes the whole balance, which only one of several can. */
const whole = fc.nat(3).map((die) => die === 0);
const optionalReference = fc.oneof(
  { weight: 4, arbitrary: base.reference },
  { weight: 1, arbitrary: nothing },
);

const is = <T extends string>(name: T) => fc.constant(name);
type Base = { merchant: number; dialect: number; reference: string; flaw: 'secret' | 'form' | null };
const record = <T extends string, F extends object>(
  name: T,
  fields: { [K in keyof F]: fc.Arbitrary<F[K]> },
) =>
  fc.record({ do: is(name), ...base, ...fields } as never) as fc.Arbitrary<
    { do: T } & Omit<Base, keyof F> & F
  >;
const order = {
  quantity: fc.constantFrom(1, 1, 1, 2, 2, 6, 11, 11, 0, 100_001),
  amount: fc.option(amount, { nil: null, freq: 4 }),
  product: fc.constantFrom(
    'DEFAULT',
    'DEFAULT',
    'DEFAULT',
    'ISSUER',
    'ISSUER',
    'LATER',
    'LATER',
    'CLOSED',
    'NONE',
  ),
  /** The position of the requested expiry in EXPIRIES_MS. */
  expiry: fc.oneof(
    { weight: 4, arbitrary: nothing },
    { weight: 2, arbitrary: fc.nat(EXPIRIES_MS.length - 1) },
  ),
};
const wish = fc.oneof(
  { weight: 9, arbitrary: record('redeem', { ...named, amount, whole, reference: optionalReference }) },
  {
    weight: 5,
    arbitrary: record('update', { known, amount: fc.option(amount, { nil: undefined, freq: 2 }) }),
  },
  { weight: 3, arbitrary: record('activateByCode', { ...named, reference: optionalReference }) },
  {
    weight: 4,
    arbitrary: record('activateBySerial', { voucher, amount: fc.option(amount, { nil: null, freq: 2 }) }),
  },
  { weight: 3, arbitrary: record('generate', order) },
  { weight: 5, arbitrary: record('balance', named) },
  { weight: 3, arbitrary: record('lookup', { known }) },
  { weight: 2, arbitrary: record('details', { known }) },
  { weight: 2, arbitrary: record('list', {}) },
  { weight: 3, arbitrary: record('download', { known }) },
  { weight: 1, arbitrary: record('block', { voucher }) },
  { weight: 3, arbitrary: record('unblock', { voucher }) },
  { weight: 1, arbitrary: record('unlock', { voucher }) },
  { weight: 1, arbitrary: record('replace', { voucher }) },
  { weight: 1, arbitrary: record('extend', { voucher }) },
  { weight: 1, arbitrary: record('adjust', { voucher, minor: fc.constantFrom(3_00, -2_00) }) },
  { weight: 1, arbitrary: record('cashOut', { voucher }) },
  { weight: 1, arbitrary: record('cancelVoucher', { voucher }) },
  { weight: 1, arbitrary: record('cancel', { batch: fc.nat(2) }) },
  { weight: 2, arbitrary: record('produce', { batch: fc.nat(1) }) },
  { weight: 1, arbitrary: record('topUp', { minor: fc.constantFrom(1, 2_500_00) }) },
);
export type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;
/**
 * A call for one of two processes. If `again` is not null, an earlier call is repeated instead, counted back
 * from the last one.
 */
type Sending = { readonly process: number; readonly again: number | null; readonly wanted: Wish };
export type Step = { readonly leapMs: number; readonly wishes: readonly Sending[] };

const sending: fc.Arbitrary<Sending> = fc.record({
  process: fc.nat(1),
  again: fc.oneof({ weight: 3, arbitrary: nothing }, { weight: 1, arbitrary: fc.nat(11) }),
  wanted: wish,
});

/** Copies of one call, to each process in turn. */
const copies = (most: number): fc.Arbitrary<readonly Sending[]> =>
  fc
    .record({ wanted: wish, count: fc.integer({ min: Math.min(2, most), max: most }) })
    .map(({ wanted, count }) =>
      Array.from({ length: count }, (_, number) => ({
        process: number % 2,
        again: number === 0 ? null : 0,
        wanted,
      })),
    );

/**
 * Sequential steps of concurrent calls.
 * @param width the greatest number of calls in a step
 */
export const steps = (width: number): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.record({
      leapMs: fc.constantFrom(...LEAPS_MS),
      wishes: fc.oneof(
        { weight: 3, arbitrary: fc.array(sending, { minLength: 1, maxLength: width, size: 'max' }) },
        { weight: 1, arbitrary: copies(width) },
      ),
    }),
    { minLength: 3, maxLength: Math.ceil(48 / width), size: 'max' },
  );
