/**
 * Loaded into every process of tests. A process that still runs when its tests are over has left something
 * open, and would block the run: it is ended here, as a failure. A process takes two minutes on a quiet
 * machine, and many times as long on a busy one, so the limit is that of the whole run.
 */
const DEADLINE_MS = 1_200_000;

setTimeout(() => {
  process.stderr.write(
    `${process.argv[1]} did not end within ${DEADLINE_MS / 1000} s: a test hangs, or left something open\n`,
  );
  process.exit(1);
}, DEADLINE_MS).unref();
