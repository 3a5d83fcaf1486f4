import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Scrip, UnknownOutcomeError } from '../../sdk/src/index.ts';
import { fileStore } from '../../sdk/src/node/file-store.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { runClient, startMisbehaving } from '../support/misbehave.ts';
import { makeToken } from '../support/operator.api.ts';
import { failure } from '../support/sdk.server.ts';
import { Till } from '../support/till.ts';

/** The client for Python, against the service and the misbehaving server. It needs Python 3.10 or later. */

const FOLDER = fileURLToPath(new URL('../../clients/python/', import.meta.url));
const PYTHON = 'python3';

/** Why the client cannot be run here, or false where it can. */
function whyNot(): string | false {
  try {
    execFileSync(PYTHON, ['-c', 'import sys; assert sys.version_info >= (3, 10)'], { stdio: 'ignore' });
    return false;
  } catch {
    return `${PYTHON} 3.10 or later is not installed here`;
  }
}

const environment = (settings: Readonly<Record<string, string>>) => ({
  PATH: process.env['PATH'],
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONPATH: FOLDER,
  PYTHONUTF8: '1',
  ...settings,
});

async function open(t: Parameters<typeof Till.open>[0]) {
  const till = await Till.open(t);
  const { keyId, secret, id } = till.merchant;
  const settings = {
    SCRIP_BASE_URL: till.testService.baseUrl,
    SCRIP_KEY_ID: keyId,
    SCRIP_SECRET: secret,
    SCRIP_PORTAL_TOKEN: await makeToken(till.testService, ['cashier'], id),
  };
  return { till, settings };
}

describe('the client for Python', { skip: whyNot() }, () => {
  it('passes its own tests against the service', async (t) => {
    const { till, settings } = await open(t);
    const run = promisify(execFile);
    const args = ['-W', 'error', '-m', 'unittest', '-q', 'test_scrip_client'];
    const { stderr } = await run(PYTHON, args, { cwd: FOLDER, env: environment(settings) });
    assert.match(stderr, /^Ran [1-9]\d* tests in .*\n\nOK\n$/m);
    await till.reconciles();
  });

  for (const [seed, variant] of ['a', 'b'].entries()) {
    it(`doubles nothing and leaves nothing unknown at a server that misbehaves, in variant ${variant}`, async (t) => {
      const { settings, verdict } = await startMisbehaving(t, 500, seed);
      const env = environment({ ...settings, SCRIP_VARIANT: variant });
      assert.equal(await runClient(PYTHON, [join(FOLDER, 'misbehave.py')], env as never), 0);
      const { doubled, unknown, wrong, examples, status } = await verdict();
      assert.deepEqual([doubled, unknown, wrong, status], [0, 0, 0, 0], String(examples));
    });
  }

  it('recovers the calls that the client for TypeScript has kept', async (t) => {
    const { till, settings } = await open(t);
    const folder = await temporaryFolder('scrip-python-');
    t.after(() => rm(folder, { recursive: true, force: true }));
    const card = await till.voucher(100);
    const { keyId, secret } = till.merchant;
    const { baseUrl } = till.testService;
    const scrip = new Scrip({
      baseUrl,
      keyId,
      secret,
      variant: 'a',
      maxAttempts: 1,
      pending: fileStore(folder),
      fetch: () => Promise.reject(new TypeError('the connection is gone')),
    });
    const reference = 'Bon 17 – ä€🎁';
    await failure(scrip.redeem({ ...card, amount: 5.25, reference }), UnknownOutcomeError);
    await failure(
      scrip.generate({ productCode: 'DEFAULT', quantity: 2, value: 7.5, reference: 'batch' }),
      UnknownOutcomeError,
    );
    const program = `
import os, sys
from scrip_client import FileStore, Scrip
env = os.environ
scrip = Scrip(env["SCRIP_BASE_URL"], env["SCRIP_KEY_ID"], env["SCRIP_SECRET"], "a",
              portal_token=env["SCRIP_PORTAL_TOKEN"], pending=FileStore(sys.argv[1]))
for each in sorted(scrip.recover(), key=lambda each: each.call.reference):
    print(each.call.reference, each.call.amount, each.outcome)`;
    const args = ['-c', program, folder];
    const { stdout } = await promisify(execFile)(PYTHON, args, { env: environment(settings) });
    assert.equal(stdout, `${reference} 5.25 not-done\nbatch None done\n`);
    assert.deepEqual(await readdir(folder), []);
    assert.equal((await new Scrip({ baseUrl, keyId, secret, variant: 'a' }).download('batch')).value, 7.5);
    assert.equal(await till.balanceOf(card), 100);
  });
});
