import assert from 'node:assert/strict';
import { readdir, readFile, rename } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { Installation } from '../support/installation.ts';
import { MAIN } from '../support/scrip.ts';
import { openShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

/** A service of several processes, one of which is killed in the middle of redemptions. */

const TILLS = 12;
/** A call without an answer after this time is lost. */
const ANSWERED_MS = 60_000;

async function serve(t: TestContext): Promise<{ installation: Installation; url: string }> {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_LOG_LEVEL'] = 'info';
  return { installation, url: await installation.serve('--processes', '2') };
}

/** The processes that answer: children of the first one that run the same program. */
async function answering({ serving }: Installation): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found: number[] = [];
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (parent === serving.child.pid && command.includes(MAIN)) found.push(Number(pid));
  }
  return found;
}

/** How often the log of the service has a text. */
const logged = ({ serving }: Installation, text: string) => serving.printed.err.split(text).length - 1;
const NO_KEYS = 'the key ring of this database is missing';

test('a process that is killed under load is replaced; every reference has exactly one effect', async (t) => {
  const { installation, url } = await serve(t);
  const shop = await openShop(installation, url);
  const before = await answering(installation);
  assert.equal(before.length, 2);

  let stopped = false;
  let answered = 0;
  let sent = 0;
  /** Repeats each redemption under its reference until it is answered. */
  const till = async (number: number) => {
    const card = shop.cards[number % shop.cards.length] ?? assert.fail();
    for (let turn = 0; !stopped; turn++) {
      sent++;
      const redeem = () => shop.redeem(card, `sale-${number}-${turn}`).catch(() => undefined);
      const { statusCode } = await until('the till is answered', redeem);
      assert.equal(statusCode, '00');
      answered++;
    }
  };
  const tills = Array.from({ length: TILLS }, (_, number) => till(number));
  await until('the tills are served', () => answered > 10 * TILLS);
  process.kill(before[0] as number, 'SIGKILL');
  await until('the process is replaced', async () => {
    const now = await answering(installation);
    return now.length === 2 && !now.includes(before[0] as number);
  });
  const after = answered;
  await until('the tills are served again', () => answered > after + 10 * TILLS);
  stopped = true;
  await Promise.all(tills);

  assert.equal(await shop.spent(), sent);
  assert.equal(logged(installation, 'a process that answers has died'), 1);
  assert.equal(await installation.stop(), 0, installation.serving.printed.err.slice(-500));
  assert.deepEqual(await answering(installation), []);
});

test('a process that hangs takes no connection from the other one, and is replaced', async (t) => {
  const { installation, url } = await serve(t);
  const [hanging = 0] = await answering(installation);
  process.kill(hanging, 'SIGSTOP');
  // Each call opens a connection of its own.
  const headers = { connection: 'close' };
  for (let call = 0; call < 20; call++) {
    const { status } = await fetch(`${url}/readyz`, { headers, signal: AbortSignal.timeout(ANSWERED_MS) });
    assert.equal(status, 200);
  }
  await until('it is replaced', async () => {
    const now = await answering(installation);
    return now.length === 2 && !now.includes(hanging);
  });
  assert.equal(logged(installation, 'a process that answers hangs'), 1);
  assert.equal(await installation.stop(), 0, installation.serving.printed.err.slice(-500));
});

test('a process that cannot start again is tried again until it can, and delays no stop', async (t) => {
  const { installation } = await serve(t);
  const keys = installation.at('data', 'keys');
  const started = () => logged(installation, '"msg":"serving"');
  // The first process logs after it has written its address.
  await until('each process serves', () => started() === 3);
  const [first = 0] = await answering(installation);
  await rename(keys, `${keys}.away`);
  process.kill(first, 'SIGKILL');
  await until('it fails twice', () => logged(installation, NO_KEYS) >= 2);
  await rename(`${keys}.away`, keys);
  await until('it serves again', () => started() === 4);
  // One that cannot start may be on its way when the service is stopped.
  await rename(keys, `${keys}.away`);
  for (const pid of await answering(installation)) process.kill(pid, 'SIGKILL');
  await until('it fails again', () => logged(installation, NO_KEYS) >= 3);
  assert.equal(await installation.stop(), 0, installation.serving.printed.err.slice(-500));
});

test('a process that is killed while the first one has a message for it is replaced', async (t) => {
  const { installation } = await serve(t);
  const { child } = installation.serving;
  const keys = installation.at('data', 'keys');
  const before = await answering(installation);
  await rename(keys, `${keys}.away`);
  process.kill(before[0] as number, 'SIGKILL');
  const next = await until('another process starts', async () =>
    (await answering(installation)).find((pid) => !before.includes(pid)),
  );
  child.kill('SIGSTOP');
  // It takes its leave of the first process, and waits for the answer.
  await until('it cannot start', () => logged(installation, NO_KEYS) > 0);
  try {
    process.kill(next, 'SIGKILL');
  } catch (error) {
    // On a busy machine it may have ended before the first one was stopped.
    assert.equal((error as NodeJS.ErrnoException).code, 'ESRCH');
  }
  await until('it has died', async () => !(await answering(installation)).includes(next));
  await rename(`${keys}.away`, keys);
  child.kill('SIGCONT');
  await until('it is replaced', async () => {
    assert.equal(child.exitCode, null, installation.serving.printed.err.slice(-500));
    const now = await answering(installation);
    return now.length === 2 && !now.includes(next);
  });
});

test('the other processes end when the first process is killed', async (t) => {
  const { installation } = await serve(t);
  const others = await answering(installation);
  assert.equal(others.length, 2);
  await installation.stop('SIGKILL');
  for (const pid of others)
    await until(`process ${pid} has ended`, async () => {
      const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      return state === '' || / Z /.test(state);
    });
  // The next command finds and stops the database, which still runs.
  await installation.json`merchant list`;
});
