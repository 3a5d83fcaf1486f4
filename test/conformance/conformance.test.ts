import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RULES } from '../../conformance/src/index.ts';
import { check, resultsOf, withService } from '../support/conformance.ts';
import { Till } from '../support/till.ts';

/** The conformance kit passes on this service, and reports what a test merchant lacks. */

const BIN = fileURLToPath(new URL('../../conformance/bin/scrip-conformance.mjs', import.meta.url));

describe('the conformance kit', () => {
  it('passes every rule on this service, in both variants', async (t) => {
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

  it('reports what the test merchant lacks', async (t) => {
    await withService(t, { permit: [] }, async (till) => {
      const { keyId, secret } = till.merchant;
      const run = (args: string[], key = { keyId, secret }) => {
        const { promise, resolve } = Promise.withResolvers<{ status: number; out: string; err: string }>();
        const env = {
          PATH: process.env['PATH'],
          SCRIP_KEY_ID: key.keyId,
          SCRIP_SECRET: key.secret,
        };
        const all = [BIN, '--url', till.testService.baseUrl, ...args];
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
      const poor = await Till.another(till.testService, { float: 0n });
      assert.match(
        (await run([], poor.merchant)).err,
        /nothing was checked: the test merchant needs a float/,
      );
      const elsewhere = await run(['--url', 'http://127.0.0.1:1']);
      assert.match(elsewhere.err, /the service cannot be reached/);
      assert.equal((await run(['--only', 'nothing'])).status, 2);
    });
  });
});
