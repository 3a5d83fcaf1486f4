import type { ChildProcess, PromiseWithChild } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenForStop } from '../src/cli/stop.ts';

/**
 * What a run starts (databases, services, folders, mounts) it stops again, the last one first: at its
 * end, when it fails, and when it is asked to stop by a signal, at whatever moment that comes.
 */

/** Takes whether it was a signal that ended the run. */
type Undo = (isStopped: boolean) => unknown;

const undos = new Set<Undo>();
let isOver = false;

/** Nothing takes longer to stop, unless it never will: then the rest is to be stopped all the same. */
const UNDO_MS = 60_000;
/** A service that was asked to end finishes what it has accepted first. */
const END_MS = 10_000;
/** As a shell tells a command that a Ctrl-C ended. */
const INTERRUPTED = 130;

/** Runs a command to its end, or until a signal asks it to stop; nothing that it started is left behind. */
export async function leavingNothing(run: () => Promise<void>): Promise<void> {
  const stop = listenForStop();
  void stop.asked.then(() => {
    // The run goes on beside its end until the process is gone, and what it works with is taken from
    // under it.
    for (const event of ['unhandledRejection', 'uncaughtException']) process.on(event, () => {});
  });
  const failed = await Promise.race([
    run().then(
      () => undefined,
      (error: unknown) => ({ error }),
    ),
    stop.asked.then(() => undefined),
  ]);
  isOver = true;
  for (const undo of [...undos].reverse()) {
    await Promise.race([undone(() => undo(stop.isAsked())), sleep(UNDO_MS, undefined, { ref: false })]);
  }
  if (stop.isAsked()) {
    process.stderr.write('stopped by a signal, with everything that was started\n');
    process.exit(INTERRUPTED);
  }
  if (failed) throw failed.error;
}

async function undone(undo: () => unknown): Promise<void> {
  try {
    await undo();
  } catch (error) {
    process.stderr.write(`something may be left behind: ${(error as Error).message}\n`);
  }
}

/**
 * Registers what has to be done at the end of the run.
 * @returns takes it back
 * @throws where the end has come: what would be started now, nobody would stop
 */
export function atEnd(undo: Undo): () => void {
  if (isOver) throw new Error('the run is over');
  undos.add(undo);
  return () => void undos.delete(undo);
}

/**
 * Opens something that is closed at the end. Once that has come nothing is opened any more; what is being
 * opened just then is waited for, and closed. Without `close`: does something that is not to be cut in
 * two.
 */
export function opened<T>(open: () => Promise<T>, close: (it: T) => unknown = () => {}): Promise<T> {
  if (isOver) return new Promise(() => {});
  const opening = open();
  atEnd(() => opening.then(close, () => {}));
  return opening;
}

/** A folder that is gone at the end. */
export function temporaryFolder(prefix: string): Promise<string> {
  return opened(
    () => mkdtemp(join(tmpdir(), prefix)),
    // Who was killed may have left something that others just write to.
    (folder) => rm(folder, { recursive: true, force: true, maxRetries: 10 }),
  );
}

/** Starts a process, or what runs in one, that is ended at the end if it has not ended by then. */
export function started<Running extends ChildProcess | PromiseWithChild<unknown>>(
  start: () => Running,
): Running {
  if (isOver) throw new Error('the run is over');
  const running = start();
  const either: ChildProcess | PromiseWithChild<unknown> = running;
  const child = either instanceof Promise ? either.child : either;
  child.once(
    'exit',
    atEnd(() => end(child)),
  );
  return running;
}

/** Asks a process to end, and after a while makes it. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const patience = setTimeout(() => child.kill('SIGKILL'), END_MS);
  await ended;
  clearTimeout(patience);
}
