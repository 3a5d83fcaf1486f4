import type { ChildProcess, PromiseWithChild } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenForStop } from '../../src/cli/signals.ts';

/**
 * A run stops what it starts (databases, services, folders, mounts), the last one first: at its end, when it
 * fails, and when a signal stops it at any moment.
 */

/** Takes whether it was a signal that ended the run. */
type Undo = (isStopped: boolean) => unknown;

const undos = new Set<Undo>();
let isOver = false;

/** The time for one thing to stop. After it, the run stops the next one. */
const UNDO_MS = 60_000;
/** The time in which a service finishes what it has accepted before it ends. */
const END_MS = 10_000;
/** The exit status of a command that Ctrl-C ended, as in a shell. */
const INTERRUPTED = 130;

/** Runs a command to its end or until a signal stops it, and then stops everything that it started. */
export async function leavingNothing(run: () => Promise<void>): Promise<void> {
  const stop = listenForStop();
  void stop.asked.then(() => {
    // The run continues until the process exits, while its databases and services are stopped: its errors
    // do not matter.
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
 * Registers a function to run at the end.
 * @returns cancels the registration
 * @throws after the end has begun: it would not stop what is started now
 */
export function atEnd(undo: Undo): () => void {
  if (isOver) throw new Error('the run is over');
  undos.add(undo);
  return () => void undos.delete(undo);
}

/**
 * Opens something that is closed at the end. After the end has begun, nothing is opened; what is being opened
 * at that moment is awaited, and closed. Without `close`: runs something that must not be interrupted.
 */
export function opened<T>(open: () => Promise<T>, close: (it: T) => unknown = () => {}): Promise<T> {
  if (isOver) return new Promise(() => {});
  const opening = open();
  atEnd(() => opening.then(close, () => {}));
  return opening;
}

/** A folder that is removed at the end. */
export function temporaryFolder(prefix: string): Promise<string> {
  return opened(
    () => mkdtemp(join(tmpdir(), prefix)),
    // A killed process may have left children that still write to it.
    (folder) => rm(folder, { recursive: true, force: true, maxRetries: 10 }),
  );
}

/** Starts a process that is ended at the end of the run if it still runs. */
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

/** Ends a process by SIGTERM, and after END_MS by SIGKILL. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timeout = setTimeout(() => child.kill('SIGKILL'), END_MS);
  await ended;
  clearTimeout(timeout);
}
