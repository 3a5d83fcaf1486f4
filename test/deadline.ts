/**
 * Loaded into the process of every test file. One that goes on when its tests are over has left something
 * open, and would keep the run from ending: it ends here, as a failure. The longest of the files takes
 * three quarters of a minute on a quiet machine, and five minutes on one whose load is twenty.
 */
const DEADLINE_MS = 600_000;

setTimeout(() => {
  process.stderr.write(
    `${process.argv[1]} did not end within ${DEADLINE_MS / 1000} s: a test hangs, or left something open\n`,
  );
  process.exit(1);
}, DEADLINE_MS).unref();
