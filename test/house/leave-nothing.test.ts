import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

/** Benchmarks and soaks leave no process or folder behind, whether they end, fail, or are stopped. */

const MODULE = new URL('../support/leave-nothing.ts', import.meta.url).href;

/** Starts one thing of each kind. The last one is open when the program has read a line. */
const RUN = `
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { atEnd, leavingNothing, opened, started, temporaryFolder } from '${MODULE}';
const [how] = process.argv.slice(1);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => console.log('signaled'));
await leavingNothing(async () => {
  const folder = await temporaryFolder('scrip-left-');
  const child = started(() => spawn('sleep', ['600']));
  atEnd(() => console.log('undone first'));
  atEnd((isStopped) => console.log('undone last, by a signal: ' + isStopped));
  const opening = opened(() => once(process.stdin, 'data'), () => console.log('closed'));
  console.log(JSON.stringify({ folder, pid: child.pid }));
  await opening;
  if (how === 'fails') throw new Error('it fails');
  if (how === 'ends') return;
  started(() => console.log('started too late'));
});`;

type Run = {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly folder: string;
  readonly pid: number;
  /** The lines of its output after the first one. */
  readonly lines: AsyncIterator<string>;
  readonly ended: Promise<{ readonly status: number; readonly errors: string }>;
};

async function rest({ lines }: Run): Promise<string[]> {
  const read: string[] = [];
  for (let line = await lines.next(); !line.done; line = await lines.next()) read.push(line.value);
  return read;
}

async function start(how: string): Promise<Run> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', RUN, how], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const [first] = (await once(child.stdout, 'data')) as [Buffer];
  const ended = Promise.all([once(child, 'close'), text(child.stderr)]).then(([[status], errors]) => ({
    status,
    errors,
  }));
  return {
    child,
    lines: createInterface(child.stdout)[Symbol.asyncIterator](),
    ...JSON.parse(first.toString()),
    ended,
  };
}

async function assertGone({ folder, pid }: Run): Promise<void> {
  await assert.rejects(access(folder), { code: 'ENOENT' });
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} ends everything that a run started, after what is being opened is open`, async () => {
    const run = await start('goes on');
    run.child.kill(signal);
    assert.equal((await run.lines.next()).value, 'signaled');
    run.child.stdin.write('\n');
    assert.deepEqual(await rest(run), ['closed', 'undone last, by a signal: true', 'undone first']);
    assert.equal((await run.ended).status, 130);
    await assertGone(run);
  });
}

for (const [how, status] of [
  ['ends', 0],
  ['fails', 1],
] as const) {
  test(`a run that ${how} ends everything that it started`, async () => {
    const run = await start(how);
    run.child.stdin.end('\n');
    assert.deepEqual(await rest(run), ['closed', 'undone last, by a signal: false', 'undone first']);
    const ended = await run.ended;
    assert.equal(ended.status, status);
    assert.equal(ended.errors.includes('it fails'), how === 'fails');
    await assertGone(run);
  });
}
