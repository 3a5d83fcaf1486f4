import { Untried } from './broken.ts';
import { describe, expectCode, expectEqual, expectMatch, expectThat } from './expect.ts';
import type { TestMerchant } from './merchant.ts';
import type { Loose, Seen } from './probe.ts';
import type { Rule } from './rule.ts';

const RIVALS = 6;

/** A redemption of 3 from a voucher of 5. */
async function redeemed(merchant: TestMerchant) {
  const voucher = await merchant.voucher(5);
  const reference = merchant.fresh();
  const seen = await merchant.redeem(voucher, 3, reference);
  expectCode(seen, '00', 'a redemption to update');
  return { voucher, reference, original: seen.data };
}

/** Expects the result of an update, in both shapes. */
function expectUpdate({ data }: Seen, reference: string, original: Loose, newAmount: number): void {
  const all = [data?.originalTransaction, data?.cancellationTransaction, data?.newTransaction];
  const shown = all.map((each) =>
    each ? [each.transactionType, each.amount, each.reference, each.refundStatus ?? null] : each,
  );
  const { amount } = original;
  expectEqual(
    shown,
    [
      ['REDEMPTION', amount, reference, 'CANCELLED'],
      ['REDEMPTION_REVERSAL', -amount, `CANCEL-${reference}`, null],
      newAmount === 0 ? null : ['REDEMPTION', newAmount, `NEW-${reference}`, 'NEW'],
    ],
    'original, cancellation and new transaction: type, amount, reference and refundStatus',
  );
  const named = all.filter((each) => each !== null);
  for (const each of named) expectMatch(each.note, /./, 'a note on each transaction');
  const ids = (list: Loose) =>
    Array.isArray(list) ? list.map(({ transactionId }: Loose) => transactionId) : list;
  expectEqual(ids(data.transactions), ids(named), 'the transactions as a list, in the same order');
  expectEqual(data.originalTransaction.transactionId, original.transactionId, 'the original transaction');
  const { originalAmount, newAmount: summed, reference: about } = data.summary ?? {};
  expectEqual([originalAmount, summed, about], [amount, newAmount, reference], 'the summary');
}

const needs = 'update-redemption';

/** Rules for updates of redemptions. */
export const UPDATES: readonly Rule[] = [
  {
    id: 'update-less',
    title: 'A lower amount gives money back: original, reversal and new transaction, by name and in a list',
    variants: 'a',
    needs,
    async run(merchant) {
      const { voucher, reference, original } = await redeemed(merchant);
      const seen = await merchant.update({ reference, amountUsed: 1 });
      expectCode(seen, '00');
      expectUpdate(seen, reference, original, 1);
      expectEqual(await merchant.balanceOf(voucher), 4, 'the balance');
    },
  },
  {
    id: 'update-more',
    title: 'A higher amount takes more, up to the balance (51); a refusal does not use up the update',
    variants: 'a',
    needs,
    async run(merchant) {
      const { voucher, reference, original } = await redeemed(merchant);
      expectCode(await merchant.update({ reference, amountUsed: 6 }), '51', 'more than there is');
      expectEqual(await merchant.balanceOf(voucher), 2, 'the balance after the refusal');
      const seen = await merchant.update({ reference, amountUsed: 5 });
      expectCode(seen, '00');
      expectUpdate(seen, reference, original, 5);
      expectEqual(await merchant.balanceOf(voucher), 0, 'the balance');
    },
  },
  {
    id: 'update-reverse',
    title:
      'An update to 0, or without an amount, is a full reversal: newTransaction is null, and the lookup finds nothing',
    variants: 'a',
    needs,
    async run(merchant) {
      for (const amount of [{ amountUsed: 0 }, {}]) {
        const { voucher, reference, original } = await redeemed(merchant);
        const seen = await merchant.update({ reference, ...amount });
        expectCode(seen, '00');
        expectUpdate(seen, reference, original, 0);
        expectEqual(await merchant.balanceOf(voucher), 5, 'the balance');
        expectCode(await merchant.lookup(reference), '60', 'the look-up after a full reversal');
      }
    },
  },
  {
    id: 'update-media-types',
    title: 'An update also accepts the media types of JSON Patch and merge patch, with the plain object',
    variants: 'a',
    needs,
    async run(merchant) {
      for (const type of ['application/json-patch+json', 'application/merge-patch+json']) {
        const { reference } = await redeemed(merchant);
        const text = JSON.stringify({ reference, amountUsed: 1 });
        const seen = await merchant.probe.send({ method: 'POST', path: '/redemptions/update', text, type });
        expectCode(seen, '00', type);
      }
    },
  },
  {
    id: 'update-once',
    title: 'A second update, equal or not, is 58 with the result of the first, and changes nothing',
    variants: 'a',
    needs,
    async run(merchant) {
      const { voucher, reference } = await redeemed(merchant);
      const first = await merchant.update({ reference, amountUsed: 1 });
      expectCode(first, '00');
      for (const amountUsed of [1, 2, 0]) {
        const second = await merchant.update({ reference, amountUsed });
        expectCode(second, '58', `an update to ${amountUsed} after one to 1`);
        expectEqual(second.data, first.data, 'data of the refusal');
      }
      expectEqual(await merchant.balanceOf(voucher), 4, 'the balance');
    },
  },
  {
    id: 'update-race',
    title: 'Of concurrent updates exactly one succeeds',
    variants: 'a',
    needs,
    async run(merchant) {
      const { voucher, reference } = await redeemed(merchant);
      const rivals = await Promise.all(
        Array.from({ length: RIVALS }, (_, index) => merchant.update({ reference, amountUsed: index % 2 })),
      );
      const done = rivals.filter(({ statusCode }) => statusCode === '00');
      expectEqual(done.length, 1, `the number of updates that were done, out of ${RIVALS}`);
      const other = rivals.find((each) => !done.includes(each) && each.statusCode !== '58');
      expectThat(other === undefined, '58 for the others', () => describe(other as Seen));
      expectEqual(
        await merchant.balanceOf(voucher),
        5 - (done[0]?.data?.summary?.newAmount ?? 0),
        'the balance',
      );
    },
  },
  {
    id: 'update-unknown',
    title: 'An update of an unknown reference is 60',
    variants: 'a',
    needs,
    async run(merchant) {
      const seen = await merchant.update({ reference: merchant.fresh(), amountUsed: 1 });
      expectEqual([seen.statusCode, seen.message], ['60', 'Redemption not found'], 'code and message');
    },
  },
  {
    id: 'update-amounts',
    title: 'An amount that is negative or not exact is 13; one that is not a number is 30',
    variants: 'a',
    needs,
    async run(merchant) {
      const { voucher, reference } = await redeemed(merchant);
      for (const amountUsed of [-1, 0.000_01]) {
        expectCode(await merchant.update({ reference, amountUsed }), '13', `an amount of ${amountUsed}`);
      }
      expectCode(await merchant.update({ reference, amountUsed: '1' }), '30', 'an amount as text');
      expectCode(await merchant.update({ amountUsed: 1 }), '30', 'no reference');
      expectEqual(await merchant.balanceOf(voucher), 2, 'the balance');
    },
  },
  {
    id: 'update-details',
    title: 'The details of an update are its response; without an update they are 60',
    variants: 'a',
    needs,
    async run(merchant) {
      const { reference } = await redeemed(merchant);
      const none = await merchant.details(reference);
      expectEqual([none.statusCode, none.message], ['60', 'Redemption update not found'], 'code and message');
      const { data } = await merchant.update({ reference, amountUsed: 1 });
      const seen = await merchant.details(reference);
      expectCode(seen, '00');
      expectEqual(seen.data, data, 'the details');
    },
  },
  {
    id: 'update-lookup',
    title: 'After an update a lookup returns the new redemption; NEW- and CANCEL- find nothing',
    variants: 'a',
    needs,
    async run(merchant) {
      const { reference } = await redeemed(merchant);
      const { data } = await merchant.update({ reference, amountUsed: 1 });
      const seen = await merchant.lookup(reference);
      expectEqual(seen.data?.transactionId, data?.newTransaction?.transactionId, 'the transaction in force');
      for (const prefix of ['NEW-', 'CANCEL-']) {
        expectCode(await merchant.lookup(prefix + reference), '60', `the look-up of ${prefix}…`);
      }
    },
  },
  {
    id: 'update-list',
    title:
      'The list of A has all three transactions of an update, the list of B only the redemption in force',
    variants: 'between',
    needs,
    async run(merchant) {
      const { other } = merchant;
      if (!other) throw new Untried('only one variant is tried');
      const { reference } = await redeemed(merchant);
      expectCode(await merchant.update({ reference, amountUsed: 1 }), '00');
      const ours = (list: Loose) =>
        list
          .filter((each: Loose) => typeof each.reference === 'string' && each.reference.endsWith(reference))
          .map((each: Loose) => [each.reference, each.amount]);
      const inA = ours((await merchant.get('/transactions')).data);
      const expected = [
        [reference, 3],
        [`CANCEL-${reference}`, -3],
        [`NEW-${reference}`, 1],
      ];
      expectEqual(inA.toSorted(), expected.toSorted(), 'the list of A');
      const inB = ours((await other.get('/transactions')).data);
      expectEqual(
        inB.map(([, amount]: number[]) => amount),
        [1],
        'the amounts in the list of B',
      );
    },
  },
];
