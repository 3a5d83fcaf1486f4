import { Untried } from './broken.ts';
import { expectCode, expectEqual, expectThat } from './expect.ts';
import { type TestMerchant, UNKNOWN } from './merchant.ts';
import type { Seen } from './probe.ts';
import type { Rule } from './rule.ts';

const COPIES = 8;

/** Expects two responses to be about one effect. */
function expectSame(again: Seen, first: Seen, about: string): void {
  expectCode(again, '00', about);
  expectEqual(again.data?.transactionId, first.data?.transactionId, `the transactionId of ${about}`);
}

/** A voucher to activate. @throws Untried where none can be ordered */
async function activatable(merchant: TestMerchant) {
  const [voucher] = await merchant.inactive();
  if (!voucher)
    throw new Untried('there are no vouchers without a value here: variant a alone cannot order them');
  return voucher;
}

/** Rules for references, which make it safe to repeat a request. */
export const REFERENCES: readonly Rule[] = [
  {
    id: 'reference-form',
    title:
      'A reference has 1 to 100 characters, no control characters, and does not begin with CANCEL- or NEW- (18)',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher();
      const wrong = ['', 'x'.repeat(101), 'a\u0007b', 'CANCEL-1', 'NEW-1'];
      for (const reference of wrong) {
        const about = `a reference like ${JSON.stringify(reference.slice(0, 10))}`;
        expectCode(await merchant.redeem(voucher, 1, reference), '18', about);
        expectCode(await merchant.generate(1, 5, reference), '18', about);
      }
      expectCode(await merchant.activate(voucher, 'NEW-1'), '18', 'an activation under NEW-1');
      const longest = merchant.fresh().padEnd(98, '-').concat('é/');
      expectCode(await merchant.redeem(voucher, 1, longest), '00', 'a reference of 100 characters');
      expectCode(await merchant.lookup(longest), '00', 'the look-up of it');
    },
  },
  {
    id: 'replay-generate',
    title: 'The same order again returns the same batch',
    variants: 'ab',
    async run(merchant) {
      const reference = merchant.fresh();
      const first = await merchant.generate(2, 5, reference, { isReplay: false });
      expectCode(first, '00');
      const again = await merchant.generate(2, 5, reference, { isReplay: true });
      expectSame(again, first, 'the same order again');
      expectEqual(again.data?.vouchers?.length, 2, 'the number of vouchers of the same order again');
    },
  },
  {
    id: 'replay-redeem',
    title: 'The same redemption again has no second effect',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      const first = await merchant.redeem(voucher, 2, reference, { isReplay: false });
      expectCode(first, '00');
      expectSame(
        await merchant.redeem(voucher, 2, reference, { isReplay: true }),
        first,
        'the same redemption again',
      );
      expectEqual(await merchant.balanceOf(voucher), 3, 'the balance');
    },
  },
  {
    id: 'replay-activate',
    title: 'The same activation again has no second effect',
    variants: 'ab',
    async run(merchant) {
      const voucher = await activatable(merchant);
      const reference = merchant.fresh();
      const body =
        merchant.variant === 'a' ? merchant.named(voucher) : { serialNumber: voucher.serialNumber, value: 5 };
      const first = await merchant.post('/activate', { ...body, reference }, { isReplay: false });
      if (first.statusCode === '50') throw new Untried('the float is too small for an activation of 5000');
      expectCode(first, '00');
      const again = await merchant.post('/activate', { ...body, reference }, { isReplay: true });
      expectSame(again, first, 'the same activation again');
    },
  },
  {
    id: 'replay-concurrent',
    title: 'Concurrent copies of a request have one effect, and all get its response',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      const copies = await Promise.all(
        Array.from({ length: COPIES }, () => merchant.redeem(voucher, 1, reference)),
      );
      for (const copy of copies) expectSame(copy, copies[0] as Seen, `one of ${COPIES} copies`);
      expectEqual(await merchant.balanceOf(voucher), 4, 'the balance');
      const order = merchant.fresh();
      const orders = await Promise.all(Array.from({ length: COPIES }, () => merchant.generate(1, 1, order)));
      for (const each of orders) expectSame(each, orders[0] as Seen, `one of ${COPIES} orders`);
    },
  },
  {
    id: 'replay-spelling',
    title: 'Another spelling of a request is the same request',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      const first = await merchant.redeem(voucher, 2, reference);
      const text = JSON.stringify({ reference, amount: 0, ...merchant.named(voucher, 'in one') }).replace(
        '"amount":0',
        '"amount":2.00',
      );
      const again = await merchant.probe.send({ method: 'POST', path: '/redeem', text, isReplay: true });
      expectSame(again, first, 'the same redemption, spelled in another way');
    },
  },
  {
    id: 'reference-conflict',
    title: 'A different request under a used reference is 94 and changes nothing',
    variants: 'ab',
    async run(merchant) {
      const [one, two] = await merchant.vouchers(2, 5);
      if (!one || !two) throw new Untried('there are no vouchers');
      const reference = merchant.fresh();
      expectCode(await merchant.redeem(one, 2, reference), '00');
      expectCode(await merchant.redeem(one, 1, reference), '94', 'another amount');
      expectCode(await merchant.redeem(two, 2, reference), '94', 'another voucher');
      expectEqual([await merchant.balanceOf(one), await merchant.balanceOf(two)], [3, 5], 'the balances');
      const order = merchant.fresh();
      expectCode(await merchant.generate(1, 5, order), '00');
      expectCode(await merchant.generate(2, 5, order), '94', 'another quantity');
      expectCode(await merchant.generate(1, 6, order), '94', 'another value');
    },
  },
  {
    id: 'reference-per-operation',
    title: 'Operations do not share references',
    variants: 'ab',
    async run(merchant) {
      const reference = merchant.fresh();
      const made = await merchant.generate(1, 5, reference);
      expectCode(made, '00');
      const [voucher] = made.data.vouchers;
      expectCode(
        await merchant.redeem(voucher, 1, reference),
        '00',
        'a redemption under the reference of a batch',
      );
    },
  },
  {
    id: 'declined-unused',
    title: 'A declined request does not use up its reference',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      expectCode(await merchant.redeem(voucher, 6, reference), '51');
      expectCode(await merchant.redeem(voucher, 5, reference), '00', 'another try under the reference');
    },
  },
  {
    id: 'replay-wrong-pin',
    title: 'A wrong PIN under a used reference is a wrong PIN',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const reference = merchant.fresh();
      expectCode(await merchant.redeem(voucher, 1, reference), '00');
      expectCode(await merchant.redeem(merchant.withWrongPin(voucher), 1, reference), '55');
    },
  },
  {
    id: 'no-reference',
    title: 'A redemption without a reference is found by its transactionId',
    variants: 'a',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const seen = await merchant.post('/redeem', { ...merchant.named(voucher), amount: 1 });
      expectCode(seen, '00');
      expectEqual(seen.data.reference, null, 'its reference');
      const found = await merchant.lookup(seen.data.transactionId);
      expectCode(found, '00', 'the look-up by transactionId');
      expectEqual(found.data.transactionId, seen.data.transactionId, 'what is found');
    },
  },
  {
    id: 'reference-required',
    title: 'A redemption, an activation and an order need a reference',
    variants: 'b',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      expectCode(await merchant.redeem(voucher, 1, null), '30', 'a redemption without reference');
      expectCode(await merchant.activate(voucher, null), '30', 'an activation without reference');
      expectCode(await merchant.generate(1, 5, null), '30', 'an order without reference');
    },
  },
  {
    id: 'precedence',
    title: 'Where two refusals apply, the earlier one in the order of precedence is returned',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher(5);
      const used = merchant.fresh();
      expectCode(await merchant.redeem(voucher, 5, used), '00');
      const hidden = await merchant.probe.send({ path: '/nothing', authorization: null });
      expectCode(hidden, '98', 'an unknown path without credentials');
      const bare = await merchant.probe.send({
        method: 'POST',
        path: '/redeem',
        body: {},
        authorization: null,
      });
      expectCode(bare, '01', 'a wrong body without credentials');
      expectCode(await merchant.generate('x', 0, 'NEW-1'), '30', 'a wrong type with a wrong reference');
      expectCode(await merchant.generate(0, 0, 'NEW-1'), '18', 'a wrong reference with a wrong quantity');
      expectCode(await merchant.generate(0, -1), '16', 'a wrong quantity with a wrong amount');
      expectCode(await merchant.redeem(UNKNOWN, 0), '13', 'a wrong amount on an unknown voucher');
      expectCode(await merchant.redeem(UNKNOWN, 1, used), '94', 'an unknown voucher under a used reference');
      expectCode(
        await merchant.redeem(merchant.withWrongPin(voucher), 9),
        '55',
        'a wrong PIN on a voucher with nothing left',
      );
      const other = await merchant.redeem(voucher, 9);
      expectThat(
        other.statusCode === '42',
        '42 for too large an amount on an empty voucher',
        other.statusCode ?? 'none',
      );
    },
  },
];
