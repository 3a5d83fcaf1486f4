import { setTimeout as sleep } from 'node:timers/promises';
import { Untried } from './broken.ts';
import { expectCode, expectEqual, expectMatch, expectThat } from './expect.ts';
import type { TestMerchant, Voucher } from './merchant.ts';
import type { Loose, Seen } from './probe.ts';
import type { Rule } from './rule.ts';

const LARGE = 11;
const PRODUCTION_MAX_MS = 60_000;
const POLL_MS = 250;
const DAY_MS = 86_400_000;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function expectBatch(
  { data }: Seen,
  expected: { reference: string; value: number | null; status: string },
): void {
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

async function untilMade(merchant: TestMerchant, reference: string): Promise<Seen> {
  for (let elapsedMs = 0; ; elapsedMs += POLL_MS) {
    const seen = await merchant.download(reference);
    if (seen.data?.status !== 'PROCESSING') return seen;
    expectThat(elapsedMs < PRODUCTION_MAX_MS, `a batch of ${LARGE} within a minute`, 'PROCESSING');
    expectThat(seen.data.vouchers === undefined, 'no vouchers while PROCESSING', 'a list of them');
    await sleep(POLL_MS);
  }
}

/** Rules of generation and download. */
export const BATCHES: readonly Rule[] = [
  {
    id: 'batch',
    title: 'An order of up to 10 is COMPLETED at once, with its vouchers',
    variants: 'ab',
    async run(merchant) {
      const reference = merchant.fresh();
      const seen = await merchant.generate(10, 1, reference);
      expectCode(seen, '00');
      expectBatch(seen, { reference, value: 1, status: 'COMPLETED' });
      expectVouchers(seen.data.vouchers, 10);
    },
  },
  {
    id: 'batch-large',
    title: 'A larger order is PROCESSING without vouchers, then COMPLETED with exactly the quantity',
    variants: 'ab',
    async run(merchant) {
      const reference = merchant.fresh();
      const seen = await merchant.generate(LARGE, 1, reference);
      expectCode(seen, '00');
      expectBatch(seen, { reference, value: 1, status: 'PROCESSING' });
      expectThat(seen.data.vouchers === undefined, 'no vouchers while PROCESSING', 'a list of them');
      const made = await untilMade(merchant, reference);
      expectCode(made, '00');
      expectBatch(made, { reference, value: 1, status: 'COMPLETED' });
      expectVouchers(made.data.vouchers, LARGE);
      expectEqual(made.data.transactionId, seen.data.transactionId, 'the transactionId');
    },
  },
  {
    id: 'download',
    title: 'Every download by the reference returns the same batch',
    variants: 'ab',
    async run(merchant) {
      const reference = merchant.fresh();
      const { data } = await merchant.generate(3, 2, reference);
      for (let times = 0; times < 2; times++) {
        const seen = await merchant.download(reference);
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
    async run(merchant) {
      const seen = await merchant.download(merchant.fresh());
      expectCode(seen, '60');
      expectEqual(seen.message, 'Vouchers not found', 'the message');
    },
  },
  {
    id: 'quantity',
    title: 'A quantity that is not a whole number from 1 to the limit is 16',
    variants: 'ab',
    async run(merchant) {
      for (const quantity of [0, -1, 1.5, 1e9])
        expectCode(await merchant.generate(quantity, 1), '16', `${quantity} vouchers`);
    },
  },
  {
    id: 'value',
    title: 'A value that is not an exact amount above zero is 13; a value outside the limits is 61',
    variants: 'ab',
    async run(merchant) {
      for (const value of [0, -1, 0.000_01, 1e300])
        expectCode(await merchant.generate(1, value), '13', `a value of ${value}`);
      expectCode(await merchant.generate(1, 900_000_000), '61', 'a value of 900,000,000');
    },
  },
  {
    id: 'product',
    title: 'An unknown product is 15',
    variants: 'a',
    async run(merchant) {
      const body = {
        ...merchant.generateBody(1, 1, merchant.fresh()),
        productCode: `NO-${merchant.shared.run}`,
      };
      expectCode(await merchant.post('/vouchers', body), '15');
    },
  },
  {
    id: 'expiry',
    title: 'An expiry date must be at least a day ahead (17) and is kept; the default is 365 days',
    variants: 'b',
    async run(merchant) {
      const order = (expiryDate: unknown) =>
        merchant.post('/vouchers', { ...merchant.generateBody(1, 1, merchant.fresh()), expiryDate });
      const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
      for (const days of [-1, 0.5]) expectCode(await order(inDays(days)), '17', `${days} days from now`);
      expectCode(await order('tomorrow'), '30', 'a text that is not a date');
      const wanted = inDays(30);
      const seen = merchant.keep(await order(wanted));
      expectCode(seen, '00', '30 days from now');
      expectEqual(Date.parse(seen.data.expiryDate), Date.parse(wanted), 'the expiry date');
      const usual = await merchant.generate(1, 1);
      const days = Math.round((Date.parse(usual.data?.expiryDate) - Date.now()) / DAY_MS);
      expectThat(Math.abs(days - 365) <= 1, 'an expiry in 365 days', `one in ${days} days`);
    },
  },
  {
    id: 'activate',
    title: 'A voucher without a value is not active, is activated once, and then carries its value',
    variants: 'ab',
    async run(merchant) {
      const [voucher] = await merchant.inactive();
      if (!voucher)
        throw new Untried('there are no vouchers without a value here: variant a alone cannot order them');
      const before = await merchant.balance(voucher);
      expectEqual(
        [before.statusCode, before.data?.balance, before.data?.usableAmount],
        ['00', 0, 0],
        'what is on it',
      );
      expectCode(await merchant.redeem(voucher, 1), '40', 'a redemption before the activation');
      const reference = merchant.fresh();
      const body =
        merchant.variant === 'a' ? merchant.named(voucher) : { serialNumber: voucher.serialNumber, value: 7 };
      const seen = await merchant.post('/activate', { ...body, reference });
      if (seen.statusCode === '50') throw new Untried('the float is too small for an activation of 5000');
      expectCode(seen, '00');
      const value = merchant.variant === 'a' ? 5000 : 7;
      const { transactionType, amount, reference: shown } = seen.data ?? {};
      expectEqual([transactionType, amount, shown], ['ACTIVATION', value, reference], 'the transaction');
      expectEqual(await merchant.balanceOf(voucher), value, 'the balance');
      expectCode(await merchant.activate(voucher), '41', 'another activation');
      expectEqual((await merchant.lookup(reference)).data?.transactionType, 'ACTIVATION', 'the look-up');
    },
  },
  {
    id: 'activate-serial',
    title: 'An unknown serial number is 14; a value that differs from the batch is 13',
    variants: 'b',
    async run(merchant) {
      const unknown = { serialNumber: 999_999_999_999_999, reference: merchant.fresh(), value: 5 };
      expectCode(await merchant.post('/activate', unknown), '14');
      const { serialNumber } = await merchant.voucher(5);
      expectCode(
        await merchant.post('/activate', { serialNumber, reference: merchant.fresh(), value: 6 }),
        '13',
      );
      expectCode(
        await merchant.post('/activate', { serialNumber, reference: merchant.fresh(), value: 5 }),
        '41',
      );
    },
  },
  {
    id: 'float',
    title: 'An order that the float does not cover is 50',
    variants: 'ab',
    async run(merchant) {
      const seen = await merchant.generate(100_000, 100_000);
      if (['16', '61'].includes(seen.statusCode ?? ''))
        throw new Untried('the product does not allow such an order');
      expectCode(seen, '50', 'an order of ten billions');
    },
  },
];
