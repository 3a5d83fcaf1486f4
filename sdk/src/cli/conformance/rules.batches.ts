import { pause } from '../../watch.ts';
import type { Loose, Seen } from './probe.ts';
import { expectCode, expectEqual, expectMatch, expectThat, type Rule, Untried } from './rule.ts';
import type { Till, Voucher } from './till.ts';

const LARGE = 11;
const LONGEST_PRODUCTION_MS = 60_000;
const LOOK_MS = 250;
const DAY_MS = 86_400_000;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function expectBatch({ data }: Seen, expected: { reference: string; value: number | null; status: string }): void {
  const { reference, value, status, transactionId, expiryDate } = data ?? {};
  expectEqual({ reference, value, status }, expected, 'the batch');
  expectMatch(transactionId, /./, 'a transactionId');
  expectMatch(expiryDate, TIME, 'an expiryDate');
}

function expectVouchers(vouchers: Loose, quantity: number): void {
  const isWhole = Array.isArray(vouchers) && vouchers.length === quantity;
  expectThat(isWhole, `${quantity} vouchers`, Array.isArray(vouchers) ? `${vouchers.length}` : 'none');
  const all: readonly Voucher[] = vouchers;
  const isCode = ({ code }: Voucher) => typeof code === 'string' && /^[1-9]\d{11}$/.test(code);
  expectThat(all.every(isCode), 'codes of 12 digits, the first not 0', 'others');
  const isPin = ({ pin }: Voucher) => typeof pin === 'string' && /^\d{4}$/.test(pin);
  expectThat(all.every(isPin), 'PINs of 4 digits', 'others');
  const isSerial = ({ serialNumber }: Voucher) =>
    Number.isSafeInteger(serialNumber) && /^\d{1,15}$/.test(`${serialNumber}`);
  expectThat(all.every(isSerial), 'serial numbers of at most 15 digits, as numbers', 'others');
  expectEqual(new Set(all.map(({ code }) => code)).size, quantity, 'the number of different codes');
  expectEqual(
    new Set(all.map(({ serialNumber }) => serialNumber)).size,
    quantity,
    'the number of different serial numbers',
  );
}

async function untilMade(till: Till, reference: string): Promise<Seen> {
  for (let elapsedMs = 0; ; elapsedMs += LOOK_MS) {
    const seen = await till.download(reference);
    if (seen.data?.status !== 'PROCESSING') return seen;
    expectThat(elapsedMs < LONGEST_PRODUCTION_MS, `a batch of ${LARGE} within a minute`, 'PROCESSING');
    expectThat(seen.data.vouchers === undefined, 'no vouchers while PROCESSING', 'a list of them');
    await pause(LOOK_MS, undefined);
  }
}

/** Rules of generation and download. */
export const BATCHES: readonly Rule[] = [
  {
    id: 'batch',
    title: 'An order of up to 10 is COMPLETED at once, with its vouchers',
    variants: 'ab',
    async run(till) {
      const reference = till.fresh();
      const seen = await till.generate(10, 1, reference);
      expectCode(seen, '00');
      expectBatch(seen, { reference, value: 1, status: 'COMPLETED' });
      expectVouchers(seen.data.vouchers, 10);
    },
  },
  {
    id: 'batch-large',
    title: 'A larger order is PROCESSING without vouchers, then COMPLETED with exactly the quantity',
    variants: 'ab',
    async run(till) {
      const reference = till.fresh();
      const seen = await till.generate(LARGE, 1, reference);
      expectCode(seen, '00');
      expectBatch(seen, { reference, value: 1, status: 'PROCESSING' });
      expectThat(seen.data.vouchers === undefined, 'no vouchers while PROCESSING', 'a list of them');
      const made = await untilMade(till, reference);
      expectCode(made, '00');
      expectBatch(made, { reference, value: 1, status: 'COMPLETED' });
      expectVouchers(made.data.vouchers, LARGE);
      expectEqual(made.data.transactionId, seen.data.transactionId, 'the transactionId');
    },
  },
  {
    id: 'download',
    title: 'A download by the reference is the batch, as often as one likes',
    variants: 'ab',
    async run(till) {
      const reference = till.fresh();
      const { data } = await till.generate(3, 2, reference);
      for (let times = 0; times < 2; times++) {
        const seen = await till.download(reference);
        expectCode(seen, '00');
        const isSame = JSON.stringify(seen.data) === JSON.stringify(data);
        expectThat(isSame, 'the batch as it was answered', 'another one');
      }
    },
  },
  {
    id: 'download-unknown',
    title: 'A download of an unknown reference is 60',
    variants: 'ab',
    async run(till) {
      const seen = await till.download(till.fresh());
      expectCode(seen, '60');
      expectEqual(seen.message, 'Vouchers not found', 'the message');
    },
  },
  {
    id: 'quantity',
    title: 'A quantity that is no whole number from 1 to the limit is 16',
    variants: 'ab',
    async run(till) {
      for (const quantity of [0, -1, 1.5, 1e9])
        expectCode(await till.generate(quantity, 1), '16', `${quantity} vouchers`);
    },
  },
  {
    id: 'value',
    title: 'A value that is no exact amount above zero is 13, and one outside the limits 61',
    variants: 'ab',
    async run(till) {
      for (const value of [0, -1, 0.000_01, 1e300])
        expectCode(await till.generate(1, value), '13', `a value of ${value}`);
      expectCode(await till.generate(1, 900_000_000), '61', 'a value of 900,000,000');
    },
  },
  {
    id: 'product',
    title: 'An unknown product is 15',
    variants: 'a',
    async run(till) {
      const body = { ...till.generateBody(1, 1, till.fresh()), productCode: `NO-${till.shared.run}` };
      expectCode(await till.post('/vouchers', body), '15');
    },
  },
  {
    id: 'expiry',
    title: 'An expiry date is at least a day ahead (17), is kept, and is a year ahead unless said',
    variants: 'b',
    async run(till) {
      const order = (expiryDate: unknown) =>
        till.post('/vouchers', { ...till.generateBody(1, 1, till.fresh()), expiryDate });
      const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
      for (const days of [-1, 0.5]) expectCode(await order(inDays(days)), '17', `${days} days from now`);
      expectCode(await order('tomorrow'), '30', 'a date that is none');
      const wanted = inDays(30);
      const seen = till.keep(await order(wanted));
      expectCode(seen, '00', '30 days from now');
      expectEqual(Date.parse(seen.data.expiryDate), Date.parse(wanted), 'the expiry date');
      const usual = await till.generate(1, 1);
      const days = Math.round((Date.parse(usual.data?.expiryDate) - Date.now()) / DAY_MS);
      expectThat(Math.abs(days - 365) <= 1, 'an expiry in 365 days', `one in ${days} days`);
    },
  },
  {
    id: 'activate',
    title: 'A voucher without a value is not active, is activated once, and then carries its value',
    variants: 'ab',
    async run(till) {
      const [voucher] = await till.inactive();
      if (!voucher) throw new Untried('there are no vouchers without a value here: variant a alone cannot order them');
      const before = await till.balance(voucher);
      expectEqual([before.statusCode, before.data?.balance, before.data?.usableAmount], ['00', 0, 0], 'what is on it');
      expectCode(await till.redeem(voucher, 1), '40', 'a redemption before the activation');
      const reference = till.fresh();
      const body = till.variant === 'a' ? till.named(voucher) : { serialNumber: voucher.serialNumber, value: 7 };
      const seen = await till.post('/activate', { ...body, reference });
      if (seen.statusCode === '50') throw new Untried('the float is too small for an activation of 5000');
      expectCode(seen, '00');
      const value = till.variant === 'a' ? 5000 : 7;
      const { transactionType, amount, reference: told } = seen.data ?? {};
      expectEqual([transactionType, amount, told], ['ACTIVATION', value, reference], 'the transaction');
      expectEqual(await till.balanceOf(voucher), value, 'the balance');
      expectCode(await till.activate(voucher), '41', 'another activation');
      expectEqual((await till.lookup(reference)).data?.transactionType, 'ACTIVATION', 'the look-up');
    },
  },
  {
    id: 'activate-serial',
    title: 'An unknown serial number is 14, and another value than the batch has is 13',
    variants: 'b',
    async run(till) {
      const unknown = { serialNumber: 999_999_999_999_999, reference: till.fresh(), value: 5 };
      expectCode(await till.post('/activate', unknown), '14');
      const { serialNumber } = await till.voucher(5);
      expectCode(await till.post('/activate', { serialNumber, reference: till.fresh(), value: 6 }), '13');
      expectCode(await till.post('/activate', { serialNumber, reference: till.fresh(), value: 5 }), '41');
    },
  },
  {
    id: 'float',
    title: 'An order that the float does not cover is 50',
    variants: 'ab',
    async run(till) {
      const seen = await till.generate(100_000, 100_000);
      if (['16', '61'].includes(seen.statusCode ?? '')) throw new Untried('the product does not allow such an order');
      expectCode(seen, '50', 'an order of ten billions');
    },
  },
];
