import assert from 'node:assert/strict';

/**
 * Measures how the work on an input grows with its length: in processor time of this process, which the
 * others of a busy machine do not change.
 */

/** The factor by which the input grows from one measurement to the next. */
const STEP = 4;
/**
 * How much faster than its input the work may grow: room for caches, the garbage collector and noise. Where
 * every part of an input meets every other, an input 16 times as long takes 256 times as long, not 16.
 */
const MARGIN = 4;
/** The longest input of the first measurement, so that quadratic work is found while it is still short. */
const SHORT = 4_096;
/**
 * Shorter times are noise. Quadratic work on 64 KiB takes a second even if each step takes only a quarter
 * of a nanosecond, which is far above the limit that follows from this.
 */
const NOISE_MICROSECONDS = 2_000;
/** How often a measurement that looks bad is repeated. Whatever disturbs one makes it longer. */
const REPETITIONS = 4;

async function microsecondsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return Math.max(NOISE_MICROSECONDS, user + system);
}

/**
 * Checks that work grows like the length of its input, by inputs of growing length.
 * @param longest the length of the longest input, in characters
 * @param prepare makes the input of a length, and returns the work on it
 */
export async function assertLinear(
  name: string,
  longest: number,
  prepare: (length: number) => () => unknown,
): Promise<void> {
  const lengths = [longest];
  for (let next = longest; next > SHORT; lengths.unshift(next)) next = Math.floor(next / STEP);
  const works = lengths.map(prepare);
  // The first call compiles the code, and loads what it needs.
  await works[0]?.();
  const times: number[] = [];
  for (const [at, work] of works.entries()) {
    times.push(await microsecondsOf(work));
    const limit = () => (times[at - 2] ?? Number.POSITIVE_INFINITY) * STEP ** 2 * MARGIN;
    for (let left = REPETITIONS; left > 0 && (times[at] as number) > limit(); left--)
      times[at] = Math.min(times[at] as number, await microsecondsOf(work));
    assert.ok(
      (times[at] as number) <= limit(),
      `${name}: ${lengths[at]} characters took ${times[at]} µs, ${lengths[at - 2]} took ${times[at - 2]} µs`,
    );
  }
}

/** Does what a test measures, whether it is refused or not. */
export function trying(work: () => unknown): () => void {
  return () => {
    try {
      work();
    } catch (error) {
      assert.ok(error instanceof Error);
    }
  };
}
