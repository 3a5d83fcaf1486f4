import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type Report, RULES } from '../../conformance/src/index.ts';
import { breakingProxy, type Coming, type Fault } from '../support/breaking-proxy.ts';
import { check, resultsOf, withService } from '../support/conformance.ts';
import { findNodes, installPacked } from '../support/sdk.packed.ts';
import { Till } from '../support/till.ts';

/** The conformance kit finds the rules that a faulty service breaks, and is installed as a package. */

const brokenIn = (report: Report) => resultsOf(report, 'failed').map(({ rule }) => rule);

const refuse = (answer: Coming, statusCode: string, message: string) => {
  answer.body = { ...answer.body, statusCode, message, data: null };
};
const isLookup = (path: string) => /\/transactions\/./.test(path);

/** Full codes by their masked form, which a faulty service leaks. */
const codes = new Map<string, string>();

/** The faults of a service, and for each the rules that must find it, and no others. */
const FAULTS: readonly (readonly [
  name: string,
  variant: 'a' | 'b',
  rules: readonly string[],
  fault: Fault,
])[] = [
  [
    'does not mark an answer as a replay',
    'a',
    ['replay-header'],
    { coming: ({ headers }) => headers.delete('idempotent-replayed') },
  ],
  ['has no request id', 'b', ['request-id'], { coming: ({ headers }) => headers.delete('x-request-id') }],
  [
    'leaks a full code in the look-up',
    'b',
    ['masking'],
    {
      coming({ body }, { path }) {
        for (const { code } of body?.data?.vouchers ?? [])
          codes.set(`${code.slice(0, 4)}****${code.slice(8)}`, code);
        if (isLookup(path) && body.data) body.data.voucherCode = codes.get(body.data.voucherCode);
      },
    },
  ],
  [
    'answers an unknown download with a server error',
    'a',
    ['download-unknown', 'envelope', 'no-faults'],
    {
      coming(answer, { path }) {
        if (!path.includes('/vouchers/') || answer.body?.statusCode !== '60') return;
        answer.status = 500;
        answer.text = '<h1>Internal Server Error</h1>';
      },
    },
  ],
  [
    'answers refusals with HTTP 400',
    'b',
    ['http-status'],
    {
      coming(answer) {
        if (answer.status === 200 && answer.body.statusCode !== '00') answer.status = 400;
      },
    },
  ],
  [
    'returns a new transaction id for a replay',
    'b',
    ['replay-activate', 'replay-concurrent', 'replay-generate', 'replay-redeem', 'replay-spelling'],
    {
      coming({ headers, body }) {
        if (headers.has('idempotent-replayed')) body.data.transactionId += '0';
      },
    },
  ],
  [
    'updates twice',
    'a',
    ['update-once', 'update-race'],
    {
      coming(answer) {
        if (answer.body?.statusCode !== '58') return;
        answer.status = 200;
        Object.assign(answer.body, { statusCode: '00', message: 'Success' });
      },
    },
  ],
  [
    'returns an update as a list only',
    'a',
    ['update-less', 'update-lookup', 'update-more', 'update-reverse'],
    {
      coming({ body }) {
        if (!body?.data?.summary) return;
        for (const name of ['original', 'cancellation', 'new']) delete body.data[`${name}Transaction`];
      },
    },
  ],
  [
    'rounds amounts',
    'b',
    ['amounts'],
    {
      going({ path, body }) {
        if (path.endsWith('/redeem') && body?.amount > 1 && body.amount < 100)
          body.amount = Math.round(body.amount * 100) / 100;
      },
    },
  ],
  [
    'answers a wrong PIN as an unknown voucher, and repeats the code and PIN',
    'b',
    ['codes', 'masking', 'pin-lock', 'precedence', 'replay-wrong-pin', 'wrong-pin'],
    {
      coming(answer, { body }) {
        const { statusCode } = answer.body ?? {};
        if (statusCode === '55') refuse(answer, '14', `${body.voucherCode} has no PIN ${body.pin}`);
      },
    },
  ],
  [
    'lists the oldest first',
    'b',
    ['list'],
    {
      coming({ body }, { path }) {
        if (path.endsWith('/transactions') && Array.isArray(body.data)) body.data.reverse();
      },
    },
  ],
  [
    'does not request Basic authentication',
    'a',
    ['unauthorized'],
    { coming: ({ headers }) => headers.delete('www-authenticate') },
  ],
  [
    'repeats wrong values',
    'b',
    ['errors-without-values', 'masking'],
    {
      coming({ body }, request) {
        if (body?.errors?.[0]) body.errors[0].message += ` and not ${JSON.stringify(request.body)}`;
      },
    },
  ],
  [
    'forgets the expiry date',
    'b',
    ['expiry'],
    {
      going({ body }) {
        if (body && typeof body === 'object') delete body.expiryDate;
      },
    },
  ],
];

describe('the conformance kit', () => {
  it('finds exactly the rules that a faulty service breaks', async (t) => {
    await withService(t, {}, async (till) => {
      for (const [name, variant, rules, fault] of FAULTS) {
        // A merchant for each fault: the guesses of all together would block one merchant.
        const other = await Till.another(till.testService);
        const proxy = await breakingProxy(t, till.testService.baseUrl, fault);
        const report = await check(other, [variant], proxy);
        assert.deepEqual(
          brokenIn(report).sort(),
          rules,
          `a service that ${name}: ${JSON.stringify(resultsOf(report, 'failed'))}`,
        );
        for (const [masked, code] of codes) assert.ok(!JSON.stringify(report).includes(code), masked);
        assert.ok(!/has no PIN \d{4}/.test(JSON.stringify(report)), 'the report contains a PIN');
      }
    });
  });
});

describe('the package of the conformance kit', () => {
  it('is built, packed and run on every installed Node', async (t) => {
    const { folder, paths, remove } = await installPacked('conformance');
    t.after(remove);
    for (const path of paths)
      assert.match(path, /^(LICENSE|README\.md|package\.json|bin\/[\w.-]+\.mjs|dist\/[\w.-]+\.(js|d\.ts))$/);
    const command = join(folder, 'node_modules', '@scrip', 'conformance', 'bin', 'scrip-conformance.mjs');
    for (const { path: node } of await findNodes()) {
      const { stdout } = await promisify(execFile)(node, [command, '--list', '--json']);
      assert.equal(JSON.parse(stdout).length, RULES.length);
    }
  });
});
