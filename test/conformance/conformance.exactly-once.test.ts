import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { certify, checkAgain, sentenceOf } from '../../conformance/src/exactly-once.certificate.ts';
import { CuttingClient, Unreachable } from '../../conformance/src/exactly-once.client.ts';
import type { Sent } from '../../conformance/src/exactly-once.history.ts';
import { FLOAT, shortRun } from '../support/exactly-once.run.ts';
import { FAULTS, startServer } from '../support/exactly-once.server.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import type { Scope } from '../support/scope.ts';
import { Till } from '../support/till.ts';

/** The certificate: a right server gets it, and no server with a fault does. */

/** The most runs until a fault is seen. */
const RUNS_MAX = 5;

async function rightRun(t: Scope) {
  const server = await startServer(t, FLOAT);
  return { ...(await shortRun(server)), server };
}

const raised = (call: Sent) => JSON.stringify({ ...call, shown: (call.shown ?? 0) + 1 });

describe('the certificate', () => {
  it('is given to this service', async (t) => {
    const till = await Till.open(t, { float: BigInt(FLOAT) });
    const { keyId, secret } = till.merchant;
    const access = { baseUrl: till.testService.baseUrl, keyId, secret };
    const { certificate, history } = await shortRun(access, { float: FLOAT / 100 });
    assert.deepEqual([certificate.verdict, certificate.reasons], ['exactly once', []]);
    assert.ok(!(await readFile(history, 'utf8')).includes(secret));
    await till.reconciles();
  });

  it('is given to a right server, is confirmed by the history, and shows no code', async (t) => {
    const { certificate, history, server } = await rightRun(t);
    assert.deepEqual([certificate.verdict, certificate.reasons], ['exactly once', []]);
    assert.match(
      sentenceOf(certificate),
      /^Every effect of \d+ calls and \d+ restarts at .* happened exactly once$/,
    );
    assert.deepEqual(await checkAgain(history), certificate);
    const text = await readFile(history, 'utf8');
    const codes = server.codes();
    assert.ok(codes.length > 0);
    for (const code of codes) assert.ok(!text.includes(code), 'the history holds a code');
  });

  it('is not confirmed by a history that was cut or changed', async (t) => {
    const { history } = await rightRun(t);
    const lines = (await readFile(history, 'utf8')).trimEnd().split('\n');
    const isBalance = (line: string) => line.includes('"do":"balance"') && line.includes('"code":"00"');
    const at = lines.findLastIndex(isBalance);
    // One balance that is off by one may be right in another order of the calls. All of them are not.
    const changed = lines.map((line) => (isBalance(line) ? raised(JSON.parse(line)) : line));
    const rewrite = (all: readonly string[]) => writeFile(history, `${all.join('\n')}\n`);

    await rewrite(lines.slice(0, -1));
    await assert.rejects(checkAgain(history), /its last line is missing/);
    await rewrite(lines.toSpliced(at, 1));
    await assert.rejects(checkAgain(history), /it has \d+ calls, and was written with \d+/);
    await rewrite(lines.with(at, '{"call":1}'));
    await assert.rejects(checkAgain(history), /line \d+ is not a call/);
    await rewrite(changed);
    await assert.rejects(checkAgain(history), /certificate.json is not that of this history/);
    assert.match(
      sentenceOf(await certify(history)),
      /is not exactly-once: no order of the calls explains .*: right would be 00 \d/,
    );
  });

  it('is not given for a run that was interrupted', async (t) => {
    const server = await startServer(t, FLOAT);
    const out = await temporaryFolder('scrip-once-');
    const run = shortRun(server, { out, signal: AbortSignal.timeout(200) });
    await assert.rejects(run, /interrupted: there is no certificate/);
    assert.ok(!existsSync(join(out, 'certificate.json')));
    await assert.rejects(checkAgain(join(out, 'history.ndjson')), /there is no certificate.json/);
  });

  it('is followed by no call of a run that is over', async (t) => {
    const { baseUrl } = await startServer(t, FLOAT);
    const client = new CuttingClient({ baseUrl, keyId: 'key', secret: 'secret' }, Math.random);
    const send = () => client.send({ variant: 'a', path: 'transactions/none', cut: null }, () => {});
    assert.equal((await send())?.code, '60');
    client.close();
    await assert.rejects(send(), Unreachable);
  });

  it('is not given for a run that spends the float, and says what it needs', async (t) => {
    const server = await startServer(t, 100);
    await assert.rejects(shortRun(server), /the float is spent: a run needs 60 for each of its batches/);
  });

  it('is not given to a run that saw too little', async (t) => {
    const { certificate } = await shortRun(await startServer(t, FLOAT * 100));
    assert.equal(certificate.verdict, 'too little seen');
    assert.deepEqual(certificate.reasons, ['refusal of the float, which is too large to be spent']);
  });

  for (const [first, fault] of FAULTS.entries()) {
    it(`is refused to a server that ${fault}`, async (t) => {
      const verdicts: string[] = [];
      // How much a run of a second sees depends on how busy the machine is.
      while (!verdicts.includes('broken') && verdicts.length < RUNS_MAX) {
        const seed = first * RUNS_MAX + verdicts.length;
        const { certificate } = await shortRun(await startServer(t, FLOAT, fault), { seed });
        verdicts.push(certificate.verdict);
      }
      assert.equal(verdicts.at(-1), 'broken');
    });
  }
});
