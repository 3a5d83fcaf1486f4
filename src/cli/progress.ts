import { SingleBar } from 'cli-progress';

export type Progress = { update(done: number): void; stop(): void };

const NONE: Progress = { update() {}, stop() {} };

/** Redraws a second: enough to look alive. */
const FPS = 5;

/**
 * A progress bar on stderr, so that stdout stays clean; nothing at all where stderr is not a terminal, or where `quiet`.
 * @param what is counted, in the plural
 */
export function showProgress(total: number, what: string, quiet = false): Progress {
  if (quiet || !process.stderr.isTTY) return NONE;
  const bar = new SingleBar({
    stream: process.stderr,
    format: `{bar} {percentage} %  {value} of {total} ${what}  {duration_formatted}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: true,
    fps: FPS,
    // Signals are the command's own to answer.
    gracefulExit: false,
  });
  bar.start(total, 0);
  return { update: (done) => bar.update(done), stop: () => bar.stop() };
}
