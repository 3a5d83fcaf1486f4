import { Untried } from './broken.ts';
import { expectCode, expectEqual, expectMatch, expectThat } from './expect.ts';
import { UNKNOWN } from './merchant.ts';
import type { Seen } from './probe.ts';
import type { Rule } from './rule.ts';

const WRONG_PINS = 5;
const RIVALS = 6;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** Rules for balances, redemptions and PINs. */
export const VOUCHERS: readonly Rule[] = [
  {
    id: 'balance',
    title: 'A balance has serial number, code, balance, usable amount and the transactions, oldest first',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      expectCode(await merchant.redeem(voucher, 2, reference), '00');
      const { data, statusCode } = await merchant.balance(voucher);
      const { serialNumber, balance, usableAmount, value } = data ?? {};
      const inA = merchant.variant === 'a' ? 5 : undefined;
      expectEqual(
        [statusCode, serialNumber, balance, usableAmount, value],
        ['00', voucher.serialNumber, 3, 3, inA],
        'code, serial number, balance, usable amount and value',
      );
      expectThat(data.voucherCode === voucher.code, 'the code as it was sent', 'another one');
      const shown = data.transactions?.map((each: Record<string, unknown>) => [
        each['transactionType'],
        each['amount'],
      ]);
      expectEqual(
        shown,
        [
          ['ACTIVATION', 5],
          ['REDEMPTION', 2],
        ],
        'the transactions',
      );
      expectEqual(data.transactions[1].reference, reference, 'the reference of the redemption');
      expectMatch(data.transactions[1].transactionId, /./, 'a transactionId');
      expectMatch(data.transactions[1].timestamp, TIME, 'a timestamp');
    },
  },
  {
    id: 'code-forms',
    title: 'A code is 12 digits with a PIN of 4; in B also 16 digits without; anything else is 30',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const { code, pin } = voucher;
      const field = merchant.variant === 'a' ? 'code' : 'voucherCode';
      const wrong: Record<string, string>[] = [
        { [field]: code.slice(1), pin },
        { [field]: `${code}1`, pin },
        { [field]: code, pin: '12' },
      ];
      wrong.push({ [field]: code }, { [field]: code + pin, pin }, { [field]: `${code.slice(1)}x`, pin });
      for (const body of wrong) {
        const about = `a code of ${body[field]?.length} characters with a PIN of ${body['pin']?.length ?? 'none'}`;
        expectCode(await merchant.post('/balance', body), '30', about);
      }
      if (merchant.variant === 'a') return;
      const seen = await merchant.post('/balance', { voucherCode: code + pin, pin: null });
      expectCode(seen, '00', '16 digits with a PIN of null');
      expectThat(seen.data?.voucherCode === code + pin, 'the code as it was sent', 'another one');
    },
  },
  {
    id: 'unknown-voucher',
    title: 'An unknown code is 14',
    variants: 'ab',
    async run(merchant) {
      expectCode(await merchant.balance(UNKNOWN), '14');
    },
  },
  {
    id: 'redeem',
    title: 'A redemption takes its amount, in part or in full, and returns the transaction',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      const { data, statusCode } = await merchant.redeem(voucher, 2, reference);
      const { transactionType, amount, serialNumber, refundStatus, note } = data ?? {};
      const none = merchant.variant === 'a' ? null : undefined;
      expectEqual(
        [statusCode, transactionType, amount, data?.reference, serialNumber, refundStatus, note],
        ['00', 'REDEMPTION', 2, reference, String(voucher.serialNumber), none, none],
        'code, type, amount, reference, serial number, refundStatus and note',
      );
      expectMatch(data.transactionId, /./, 'a transactionId');
      expectMatch(data.timestamp, TIME, 'a timestamp');
      if (merchant.variant === 'b')
        expectThat(data.voucherCode === voucher.code, 'the code as it was sent', 'another one');
      expectCode(await merchant.redeem(voucher, 3), '00', 'the rest');
      expectEqual(await merchant.balanceOf(voucher), 0, 'the balance');
      expectCode(await merchant.redeem(voucher, 1), '42', 'a redemption from nothing');
    },
  },
  {
    id: 'redeem-too-much',
    title: 'An amount above the balance is 51 and takes nothing',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      expectCode(await merchant.redeem(voucher, 6), '51');
      expectEqual(await merchant.balanceOf(voucher), 5, 'the balance');
    },
  },
  {
    id: 'amounts',
    title: 'An amount that is not exact or not above zero is 13; none is rounded',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      for (const amount of [0, -1, 0.000_01, 1.000_01, 1e300]) {
        expectCode(await merchant.redeem(voucher, amount), '13', `an amount of ${amount}`);
      }
      expectEqual(await merchant.balanceOf(voucher), 5, 'the balance');
    },
  },
  {
    id: 'exact',
    title: 'Amounts add up to the cent',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const seen = await merchant.redeem(voucher, 0.1);
      if (seen.statusCode === '13') throw new Untried('the currency has no such decimals');
      expectCode(seen, '00');
      expectCode(await merchant.redeem(voucher, 0.2), '00');
      expectEqual(await merchant.balanceOf(voucher), 4.7, 'the balance');
      expectCode(await merchant.redeem(voucher, 4.7), '00', 'all that is left');
    },
  },
  {
    id: 'redeem-race',
    title: 'Concurrent redemptions never take more than the balance',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const rivals = await Promise.all(Array.from({ length: RIVALS }, () => merchant.redeem(voucher, 2)));
      const done = rivals.filter(({ statusCode }) => statusCode === '00');
      expectEqual(
        done.length,
        2,
        `the number of redemptions of 2 out of ${RIVALS} that a voucher of 5 allows`,
      );
      const isRefused = ({ statusCode }: Seen) => statusCode === '51';
      expectThat(
        rivals.every((each) => done.includes(each) || isRefused(each)),
        '51 for the others',
        'another code',
      );
      expectEqual(await merchant.balanceOf(voucher), 1, 'the balance');
    },
  },
  {
    id: 'wrong-pin',
    title: 'A wrong PIN is 55, whatever the state of the voucher',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      expectCode(await merchant.redeem(voucher, 5), '00');
      const wrong = merchant.withWrongPin(voucher);
      expectCode(await merchant.redeem(wrong, 1), '55', 'a voucher with nothing left');
      expectCode(await merchant.balance(voucher), '00', 'the right PIN afterwards');
    },
  },
  {
    id: 'pin-lock',
    title: `After ${WRONG_PINS} wrong PINs in a row the right PIN is refused too (75)`,
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      for (let times = 0; times < WRONG_PINS; times++)
        expectCode(await merchant.balance(merchant.withWrongPin(voucher)), '55');
      expectCode(await merchant.balance(voucher), '75', 'a balance with the right PIN');
      expectCode(await merchant.redeem(voucher, 1), '75', 'a redemption with the right PIN');
    },
  },
];
