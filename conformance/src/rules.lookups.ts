import { Untried } from './broken.ts';
import { expectCode, expectEqual, expectThat } from './expect.ts';
import type { Loose } from './probe.ts';
import type { Rule } from './rule.ts';

const LISTED_MAX = 50;

/** Rules for lookups and lists. */
export const LOOKUPS: readonly Rule[] = [
  {
    id: 'lookup',
    title: 'A lookup by reference returns the redemption',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      const { data } = await merchant.redeem(voucher, 2, reference);
      const seen = await merchant.lookup(reference);
      expectCode(seen, '00');
      expectEqual(
        [seen.data.transactionId, seen.data.transactionType, seen.data.amount, seen.data.reference],
        [data.transactionId, 'REDEMPTION', 2, reference],
        'the transaction',
      );
    },
  },
  {
    id: 'lookup-unknown',
    title: 'An unknown reference is 60 in A, and 99 with data null in B',
    variants: 'ab',
    async run(merchant) {
      const seen = await merchant.lookup(merchant.fresh());
      const code = merchant.variant === 'a' ? '60' : '99';
      expectEqual(
        [seen.statusCode, seen.message, seen.data],
        [code, 'Transaction not found', null],
        'the answer',
      );
    },
  },
  {
    id: 'lookup-batch',
    title: 'The reference of a batch finds no transaction',
    variants: 'ab',
    async run(merchant) {
      const reference = merchant.fresh();
      expectCode(await merchant.generate(1, 5, reference), '00');
      expectCode(await merchant.lookup(reference), merchant.variant === 'a' ? '60' : '99');
    },
  },
  {
    id: 'list',
    title: 'The list holds at most the 50 most recent transactions, newest first',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const references = [merchant.fresh(), merchant.fresh()];
      for (const reference of references) expectCode(await merchant.redeem(voucher, 1, reference), '00');
      const seen = await merchant.get('/transactions');
      expectCode(seen, '00');
      const { data } = seen;
      expectThat(Array.isArray(data) && data.length <= LISTED_MAX, 'a list of at most 50', 'something else');
      const newest = data.slice(0, 2).map((each: Loose) => each.reference);
      expectEqual(newest, references.toReversed(), 'the newest two references');
      const times: number[] = data.map((each: Loose) => Date.parse(each.timestamp));
      const isSorted = times.every((time, index) => index === 0 || time <= (times[index - 1] ?? 0));
      expectThat(isSorted, 'the newest first', 'another order');
    },
  },
  {
    id: 'one-core',
    title: 'Both prefixes share vouchers and references: a retry through the other prefix is a replay',
    variants: 'between',
    async run(merchant) {
      const { other } = merchant;
      if (!other) throw new Untried('only one variant is tried');
      const order = merchant.fresh();
      const made = await merchant.generate(1, 5, order);
      expectCode(made, '00');
      const [voucher] = made.data.vouchers;
      const downloaded = await other.download(order);
      expectEqual(
        downloaded.data?.transactionId,
        made.data.transactionId,
        'the batch through the other prefix',
      );
      const reference = merchant.fresh();
      const first = await merchant.redeem(voucher, 2, reference);
      expectCode(first, '00');
      const again = await other.redeem(voucher, 2, reference, { isReplay: true });
      expectCode(again, '00', 'the same redemption through the other prefix');
      expectEqual(again.data.transactionId, first.data.transactionId, 'its transactionId');
      expectCode(await other.redeem(voucher, 1, reference), '94', 'another amount through the other prefix');
      expectEqual(
        (await other.lookup(reference)).data?.transactionId,
        first.data.transactionId,
        'the look-up',
      );
      expectEqual(await other.balanceOf(voucher), 3, 'the balance');
    },
  },
];
