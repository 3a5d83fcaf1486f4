import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Report, RULES, runConformance } from '../conformance/src/index.ts';
import { sweep, TASKS } from '../src/batches/tasks.ts';
import { startWorker } from '../src/jobs/worker.ts';
import { breakingProxy, type Coming, type Fault } from './breaking-proxy.ts';
import { findNodes, installPacked } from './sdk.packed.ts';
import { Till } from './till.ts';

/**
 * The conformance kit: this service keeps all rules, and the kit finds the rules that a faulty service
 * breaks.
 */

const BIN = fileURLToPath(new URL('../conformance/bin/scrip-conformance.mjs', import.meta.url));

/** Runs with a service that produces batches as well. */
async function withService(
  t: TestContext,
  wanted: Parameters<typeof Till.open>[1],
  run: (till: Till) => Promise<void>,
) {
  const till = await Till.open(t, wanted);
  const worker = await startWorker(till.testService.service, TASKS, sweep);
  try {
    await run(till);
  } finally {
    await worker.stop();
  }
}

async function check(till: Till, variants: readonly ('a' | 'b')[], baseUrl = till.testService.baseUrl) {
  const { keyId, secret } = till.merchant;
  const report = await runConformance({ baseUrl, keyId, secret, variants, product: 'DEFAULT', only: [] });
  assert.ok(!JSON.stringify(report).includes(secret), 'the report holds the secret');
  return report;
}

const resultsOf = ({ results }: Report, wanted: string) => results.filter(({ result }) => result === wanted);
const brokenIn = (report: Report) => resultsOf(report, 'failed').map(({ rule }) => rule);

const tell = (answer: Coming, statusCode: string, message: string) => {
  answer.body = { ...answer.body, statusCode, message, data: null };
};
const isLookup = (path: string) => /\/transactions\/./.test(path);

/** Full codes as a faulty service could tell them, by their masked form. */
const codes = new Map<string, string>();

/** What a service may do wrong, where, and the rules that must find it: these, and no others. */
const FAULTS: readonly (readonly [
  name: string,
  variant: 'a' | 'b',
  rules: readonly string[],
  fault: Fault,
])[] = [
  [
    'does not say that an answer is a replay',
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
    'answers a download that finds nothing by a fault',
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
    'tells refusals by HTTP 400',
    'b',
    ['http-status'],
    {
      coming(answer) {
        if (answer.status === 200 && answer.body.statusCode !== '00') answer.status = 400;
      },
    },
  ],
  [
    'gives a replay a transaction of its own',
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
    'shows an update as a list only',
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
    'hides a wrong PIN behind an unknown voucher, and says so with what was sent',
    'b',
    ['codes', 'masking', 'pin-lock', 'precedence', 'replay-wrong-pin', 'wrong-pin'],
    {
      coming(answer, { body }) {
        const { statusCode } = answer.body ?? {};
        if (statusCode === '55') tell(answer, '14', `${body.voucherCode} has no PIN ${body.pin}`);
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
    'does not ask for Basic',
    'a',
    ['unauthorized'],
    { coming: ({ headers }) => headers.delete('www-authenticate') },
  ],
  [
    'repeats what was wrong',
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
  it('finds every rule kept by this service, in both variants', async (t) => {
    await withService(t, {}, async (till) => {
      const report = await check(till, ['a', 'b']);
      assert.deepEqual(resultsOf(report, 'failed'), []);
      assert.deepEqual(resultsOf(report, 'skipped'), []);
      assert.equal(report.passed, report.results.length);
      assert.deepEqual(
        [...new Set(report.results.map(({ rule }) => rule))].sort(),
        RULES.map(({ id }) => id).sort(),
      );
      await till.reconciles();
    });
  });

  it('finds exactly the rules that a faulty service breaks', async (t) => {
    await withService(t, {}, async (till) => {
      for (const [name, variant, rules, fault] of FAULTS) {
        // A merchant of its own each: one that guesses as often as all of them together would be stopped.
        const other = await Till.at(till.testService);
        const proxy = await breakingProxy(t, till.testService.baseUrl, fault);
        const report = await check(other, [variant], proxy);
        assert.deepEqual(
          brokenIn(report).sort(),
          rules,
          `a service that ${name}: ${JSON.stringify(resultsOf(report, 'failed'))}`,
        );
        for (const [masked, code] of codes) assert.ok(!JSON.stringify(report).includes(code), masked);
        assert.ok(!/has no PIN \d{4}/.test(JSON.stringify(report)), 'the report holds a PIN');
      }
    });
  });

  it('says what the test merchant lacks', async (t) => {
    await withService(t, { permit: [] }, async (till) => {
      const { keyId, secret } = till.merchant;
      const run = (args: string[], key = { keyId, secret }) => {
        const { promise, resolve } = Promise.withResolvers<{ status: number; out: string; err: string }>();
        const env = {
          PATH: process.env['PATH'],
          SCRIP_KEY_ID: key.keyId,
          SCRIP_SECRET: key.secret,
        };
        const all = [BIN, '--base-url', till.testService.baseUrl, ...args];
        execFile(process.execPath, all, { env }, (error, out, err) =>
          resolve({ status: error ? Number(error.code) : 0, out, err }),
        );
        return promise;
      };
      const plain = await run(['--variant', 'a', '--only', 'update-once,lookup,envelope']);
      assert.equal(plain.status, 0, plain.err);
      assert.match(
        plain.out,
        /skip {2}a +update-once: .*\n +the test merchant lacks the permission update-redemption\n/,
      );
      assert.match(plain.out, /^2 passed, 0 failed, 1 skipped$/m);
      const asDocument = await run(['--variant', 'b', '--only', 'lookup', '--json']);
      assert.deepEqual([asDocument.status, asDocument.err, JSON.parse(asDocument.out).passed], [0, '', 1]);
      const wrong = await run([], { keyId, secret: 'wrong' });
      assert.deepEqual([wrong.status, wrong.out], [1, '']);
      assert.match(wrong.err, /nothing was checked: the credentials are not accepted/);
      const poor = await Till.at(till.testService, { float: 0n });
      assert.match(
        (await run([], poor.merchant)).err,
        /nothing was checked: the test merchant needs a float/,
      );
      const elsewhere = await run(['--base-url', 'http://127.0.0.1:1']);
      assert.match(elsewhere.err, /the service cannot be reached/);
      assert.equal((await run(['--only', 'nothing'])).status, 2);
    });
  });
});

describe('the package of the conformance kit', () => {
  it('is built, packed and run on every Node that is here', async (t) => {
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
