/**
 * Loaded into the process of every test file. One that goes on when its tests are over has left something
 * open, and would keep the run from ending: it ends here, as a failure. The longest of the files, a tour of
 * the console, takes two and a half minutes on a quiet machine, and a busy one takes several times as long.
 */
const DEADLINE_MS = 600_000;

setTimeout(() => {
  process.stderr.write(
    `${process.argv[1]} did not end within ${DEADLINE_MS / 1000} s: a test hangs, or left something open\n`,
  );
  process.exit(1);
}, DEADLINE_MS).unref();
