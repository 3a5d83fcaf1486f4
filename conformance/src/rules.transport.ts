import { Broken, Untried } from './broken.ts';
import { describe, expectCode, expectEqual, expectMatch, expectThat } from './expect.ts';
import { UNKNOWN } from './merchant.ts';
import type { Rule } from './rule.ts';

/** Rules for the transport: requests that are refused before their content is read. */
export const TRANSPORT: readonly Rule[] = [
  {
    id: 'unauthorized',
    title:
      'Missing, malformed and wrong credentials get the same 401: 01, "Unauthorized", WWW-Authenticate: Basic',
    variants: 'ab',
    async run({ probe }) {
      const wrong = `${probe.authorization.slice(0, -8)}AAAAAAA=`;
      const forms = [
        null,
        'Basic',
        'Basic !',
        'Bearer x',
        `Basic ${btoa('nobody:nothing')}`,
        `Basic ${btoa('x')}`,
        wrong,
      ];
      for (const authorization of forms) {
        const seen = await probe.send({ path: '/transactions', authorization });
        expectEqual(
          [seen.status, seen.statusCode, seen.message],
          [401, '01', 'Unauthorized'],
          'HTTP, code and message',
        );
        expectMatch(seen.headers.get('www-authenticate'), /^Basic\b/i, 'the header WWW-Authenticate');
        expectEqual(seen.data, null, 'data');
      }
    },
  },
  {
    id: 'unknown-path',
    title: 'An unknown path is 404, 98',
    variants: 'ab',
    async run(merchant) {
      for (const path of ['/nothing', '/vouchers/one/two']) {
        const seen = await merchant.get(path);
        expectEqual([seen.status, seen.statusCode], [404, '98'], 'HTTP and code');
      }
    },
  },
  {
    id: 'wrong-method',
    title: 'A wrong method is 405, 98',
    variants: 'ab',
    async run({ probe }) {
      for (const [method, path] of [
        ['DELETE', '/vouchers'],
        ['GET', '/redeem'],
        ['PUT', '/balance'],
      ] as const) {
        const seen = await probe.send({ method, path });
        expectEqual([seen.status, seen.statusCode], [405, '98'], `HTTP and code of ${method} ${path}`);
      }
    },
  },
  {
    id: 'media-type',
    title: 'A wrong media type is 415, 98',
    variants: 'ab',
    async run({ probe }) {
      const seen = await probe.send({ method: 'POST', path: '/balance', text: 'a=b', type: 'text/plain' });
      expectEqual([seen.status, seen.statusCode], [415, '98'], 'HTTP and code');
    },
  },
  {
    id: 'too-large',
    title: 'A body of a mebibyte is 413, 98',
    variants: 'ab',
    async run(merchant) {
      try {
        const seen = await merchant.post('/balance', {
          ...merchant.named(UNKNOWN),
          more: 'x'.repeat(1024 * 1024),
        });
        expectEqual([seen.status, seen.statusCode], [413, '98'], 'HTTP and code');
      } catch (error) {
        // A server may close the connection before it has read the whole body; then its response is lost.
        if (error instanceof Broken && error.expected === 'an answer')
          throw new Untried('the server closed the connection first');
        throw error;
      }
    },
  },
  {
    id: 'bad-json',
    title: 'A body that is missing or not JSON is 400, 30',
    variants: 'ab',
    async run({ probe }) {
      for (const text of ['{"', '', 'null null', '{"a":1,}']) {
        const seen = await probe.send({ method: 'POST', path: '/redeem', text, isUnparsable: true });
        expectEqual([seen.status, seen.statusCode], [400, '30'], 'HTTP and code');
      }
    },
  },
  {
    id: 'errors',
    title: 'An invalid request is 30, and errors lists field, rule and message',
    variants: 'ab',
    async run(merchant) {
      const code = merchant.variant === 'a' ? 'code' : 'voucherCode';
      const seen = await merchant.post('/redeem', { [code]: 7, amount: 'x' });
      expectCode(seen, '30');
      const errors = seen.body.errors;
      const isForm = (each: Record<string, unknown>) =>
        [each['field'], each['rule'], each['message']].every(
          (part) => typeof part === 'string' && part !== '',
        );
      expectThat(
        Array.isArray(errors) && errors.every(isForm),
        'errors of field, rule and message',
        'something else',
      );
      const fields: string[] = errors.map(({ field }: { field: string }) => field);
      for (const field of [code, 'amount']) {
        expectThat(
          fields.includes(field),
          `an error for ${field}`,
          `errors for ${fields.join(', ') || 'nothing'}`,
        );
      }
    },
  },
  {
    id: 'errors-without-values',
    title: 'An error never repeats a submitted value',
    variants: 'ab',
    async run(merchant) {
      const planted = 'planted-7f3a';
      const bodies = [
        {
          ...merchant.named({ ...UNKNOWN, code: planted, pin: planted }),
          amount: planted,
          reference: planted,
        },
        merchant.generateBody(planted, planted, [planted]),
      ];
      for (const [index, body] of bodies.entries()) {
        const seen = await merchant.post(index === 0 ? '/redeem' : '/vouchers', body);
        expectCode(seen, '30');
        expectThat(!seen.text.includes(planted), 'no value in the answer', `a value in ${describe(seen)}`);
      }
    },
  },
  {
    id: 'types',
    title: 'A string instead of a number is 30, and so is a missing field',
    variants: 'ab',
    async run(merchant) {
      const voucher = await merchant.voucher();
      expectCode(await merchant.redeem(voucher, '1'), '30', 'an amount as text');
      expectCode(await merchant.redeem(voucher, undefined), '30', 'no amount');
      expectCode(await merchant.redeem(voucher, null), '30', 'an amount of null');
      expectCode(await merchant.generate('2', 5), '30', 'a quantity as text');
      expectCode(await merchant.generate(1, '5'), '30', 'a value as text');
      expectCode(await merchant.post('/vouchers', { reference: merchant.fresh() }), '30', 'no quantity');
    },
  },
];
