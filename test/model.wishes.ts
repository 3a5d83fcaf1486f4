import fc from 'fast-check';
import { MERCHANTS } from './model.state.ts';

/** Any calls of any merchants, by names that a run of the model puts vouchers and references in the place of. */

const REFERENCES = 3;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** No sum of these is close to a lock's or a voucher's end, so that a moment more or less decides nothing. */
const LEAPS_MS = [0, 0, 0, 0, 0, 0, 16 * MINUTE_MS, DAY_MS + 60 * MINUTE_MS, 100 * DAY_MS];
export const EXTENSION_MS = 33 * DAY_MS + 433 * MINUTE_MS;

const amount = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(0.01, 2.5, 7, 10, 25) },
  { weight: 1, arbitrary: fc.constantFrom(0, -1, 0.001, 30, 100_000.01) },
);
const nothing = fc.constant(null);
const base = {
  merchant: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 2, arbitrary: fc.nat(MERCHANTS.length - 1) }),
  dialect: fc.nat(1),
  reference: fc.nat(REFERENCES - 1).map((at) => `x${at}`),
};
/** The position of a voucher among those that are known when the call is sent; few, so that calls meet. */
const voucher = fc.oneof({ weight: 15, arbitrary: fc.nat(3) }, { weight: 1, arbitrary: nothing });
const named = { voucher, rightPin: fc.nat(7).map((die) => die > 0) };
/** Whether the transaction's id stands where its reference would: for those that were made without one. */
const byId = fc.nat(4).map((die) => die === 0);
const optionalReference = fc.oneof({ weight: 4, arbitrary: base.reference }, { weight: 1, arbitrary: nothing });

const is = <T extends string>(name: T) => fc.constant(name);
type Base = { merchant: number; dialect: number; reference: string };
const record = <T extends string, F extends object>(name: T, fields: { [K in keyof F]: fc.Arbitrary<F[K]> }) =>
  fc.record({ do: is(name), ...base, ...fields } as never) as fc.Arbitrary<{ do: T } & Omit<Base, keyof F> & F>;
const quantity = fc.constantFrom(1, 1, 2, 11);
const wish = fc.oneof(
  { weight: 9, arbitrary: record('redeem', { ...named, amount, reference: optionalReference }) },
  { weight: 5, arbitrary: record('update', { byId, amount: fc.option(amount, { nil: undefined, freq: 2 }) }) },
  { weight: 3, arbitrary: record('activateByCode', { ...named, reference: optionalReference }) },
  { weight: 4, arbitrary: record('activateBySerial', { voucher, amount: fc.option(amount, { nil: null, freq: 5 }) }) },
  { weight: 3, arbitrary: record('generate', { quantity, amount: fc.option(amount, { nil: null }) }) },
  { weight: 5, arbitrary: record('balance', named) },
  { weight: 3, arbitrary: record('lookup', { byId }) },
  { weight: 2, arbitrary: record('details', { byId }) },
  { weight: 2, arbitrary: record('list', {}) },
  { weight: 1, arbitrary: record('download', {}) },
  { weight: 1, arbitrary: record('block', { voucher }) },
  { weight: 3, arbitrary: record('unblock', { voucher }) },
  { weight: 1, arbitrary: record('unlock', { voucher }) },
  { weight: 1, arbitrary: record('replace', { voucher }) },
  { weight: 1, arbitrary: record('extend', { voucher }) },
  { weight: 1, arbitrary: record('cancel', { batch: fc.nat(2) }) },
);
export type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;
/** A wish that one of two processes is asked for; or, where it is not null, the call so many before it once more. */
type Sending = { readonly process: number; readonly again: number | null; readonly wanted: Wish };
export type Step = { readonly leapMs: number; readonly wishes: readonly Sending[] };

const sending: fc.Arbitrary<Sending> = fc.record({
  process: fc.nat(1),
  again: fc.oneof({ weight: 3, arbitrary: nothing }, { weight: 1, arbitrary: fc.nat(5) }),
  wanted: wish,
});

/** Steps one after the other; what stands in a step is asked for at the same time. @param width calls of a step at most */
export const steps = (width: number): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.record({
      leapMs: fc.constantFrom(...LEAPS_MS),
      wishes: fc.array(sending, { minLength: 1, maxLength: width, size: 'max' }),
    }),
    { minLength: 3, maxLength: Math.ceil(48 / width), size: 'max' },
  );
