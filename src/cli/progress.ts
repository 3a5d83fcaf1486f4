import { SingleBar } from 'cli-progress';

type Progress = { update(done: number, total: number): void; stop(): void };

const NONE: Progress = { update() {}, stop() {} };

/** The redraws per second: enough to show activity. */
const FPS = 5;

/**
 * Shows a progress bar on stderr from its first update on, so that stdout contains only results. There is
 * none if stderr is not a terminal, or with `quiet`.
 * @param what the noun of the counted things, in the plural
 */
export function showProgress(what: string, quiet = false): Progress {
  if (quiet || !process.stderr.isTTY) return NONE;
  const bar = new SingleBar({
    stream: process.stderr,
    format: `{bar} {percentage} %  {value} of {total} ${what}  {duration_formatted} elapsed, about {eta_formatted} left`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 25,
    hideCursor: true,
    fps: FPS,
    // The command handles signals itself.
    gracefulExit: false,
  });
  return {
    update(done, total) {
      if (!bar.isActive) bar.start(total, 0);
      bar.update(done);
    },
    stop: () => bar.stop(),
  };
}
