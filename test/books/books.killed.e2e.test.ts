import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { compareWith, publishBooks, readPublished } from '../../src/books/publish.ts';
import { findProblem } from '../../src/cli/witness.ts';
import { type Ledger, openLedger, sell } from '../support/books.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { exportedText } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';
import { startScrip } from '../support/scrip.ts';

/** A command that is killed leaves a whole file or none, wherever it dies, and runs again. */

const STEPS_MAX = 50;
const PRELOAD = new URL('../support/killed.child.ts', import.meta.url).href;

const t = ofFile();
let ledger: Ledger;
let folder: string;

before(async () => {
  ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  await sell(await ledger.merchant(), 1, 25);
  await ledger.at('2026-03-04T00:30:00Z');
  await ledger.close();
  folder = await temporaryFolder('scrip-killed-');
});

/**
 * Runs a command again and again, killed at its first step, its second, and so on, until it ends by itself.
 * @param check looks at what it has left each time
 * @returns how often it was killed
 */
async function killed(args: readonly string[], check: () => Promise<unknown>): Promise<number> {
  const { url, keys } = ledger.started;
  const settings = { SCRIP_DATABASE_URL: url, SCRIP_KEYS: keys, NODE_OPTIONS: `--import=${PRELOAD}` };
  for (let step = 1; step < STEPS_MAX; step++) {
    const { child, ended } = startScrip({ ...settings, KILLED_AT: String(step) }, args);
    const { status, err } = await ended;
    await check();
    if (child.signalCode !== 'SIGKILL') {
      assert.deepEqual([status, err], [0, '']);
      return step - 1;
    }
  }
  return assert.fail('the command does not come to its end');
}

const drafts = async (path: string) => (await readdir(path)).filter((name) => name.endsWith('.part'));

test('an export that is killed leaves no file under its name', async () => {
  const wanted = { format: 'proof', from: '2026-03-02', to: '2026-03-04' } as const;
  const whole = await exportedText(ledger.started.service, wanted);
  const path = join(folder, 'proof.txt');
  const options = ['--format', wanted.format, '--from', wanted.from, '--to', wanted.to, '--out', path];
  const found = new Set<string | undefined>();
  const times = await killed(['books', 'export', ...options], async () =>
    found.add(await readFile(path, 'utf8').catch(() => undefined)),
  );
  assert.ok(times >= 2);
  assert.deepEqual([...found], [undefined, whole]);
  assert.deepEqual(await drafts(folder), []);
});

test('a publication or a witness that is killed leaves what agrees, and loses nothing', async () => {
  const { service } = ledger.started;
  const [web, state] = [join(folder, 'web'), join(folder, 'state')];
  const agrees = async () => {
    const published = (await readPublished(web)) ?? assert.fail();
    assert.deepEqual(await compareWith(service, web), []);
    assert.equal(findProblem(published, await readPublished(state)), undefined);
  };
  await publishBooks(service, web);
  const first = await killed(['witness', web, state], agrees);
  await ledger.at('2026-03-05T00:30:00Z');
  await ledger.close();
  const publication = await killed(['books', 'publish', web], agrees);
  const second = await killed(['witness', web, state], agrees);
  // Each file is written and renamed; a witness also has a lock.
  assert.deepEqual([first, publication, second], [7, 6, 7]);
  for (const path of [web, state]) {
    assert.match((await readFile(join(path, 'checkpoint'), 'utf8')).split('\n')[1] ?? '', /^3$/);
    assert.deepEqual(await drafts(path), []);
  }
});
