import type { Times } from './figures.ts';

/** Compares two lists of durations. */

/** Values in ascending order. */
export type Sorted = Float64Array;

export function sorted(values: readonly number[]): Sorted {
  return Float64Array.from(values).sort();
}

/** The value below which a share of all lies. */
export function quantile(values: Sorted, share: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
}

/** The times that most, nearly all and all but one in a thousand take at most. */
export function timesOf(durations: readonly number[]): Times {
  const took = sorted(durations);
  return { p50Ms: quantile(took, 0.5), p99Ms: quantile(took, 0.99), p999Ms: quantile(took, 0.999) };
}

/** The quantiles from 0 to 100 %, from which a curve is drawn. */
export function percentiles(values: Sorted): number[] {
  return Array.from({ length: 101 }, (_, percent) => quantile(values, percent / 100));
}

export type Difference = {
  /** The second median less the first, with its 99 % confidence interval. */
  readonly medianMs: number;
  readonly lowMs: number;
  readonly highMs: number;
  /**
   * Mann–Whitney: the chance that a value of the second list is longer than one of the first. 0.5: they
   * are alike.
   */
  readonly longer: number;
  /** How surprising that would be if they were alike, in standard deviations. */
  readonly deviations: number;
  /**
   * Kolmogorov–Smirnov: the greatest distance of the curves. A guess by one duration is right in (1 +
   * this) / 2 of all cases.
   */
  readonly distance: number;
};

const RESAMPLES = 1_000;
const CONFIDENCE = 0.99;

/** Compares two samples. */
export function compare(first: Sorted, second: Sorted): Difference {
  const medians = Array.from({ length: RESAMPLES }, () => resampledMedian(second) - resampledMedian(first));
  const spread = sorted(medians);
  return {
    medianMs: quantile(second, 0.5) - quantile(first, 0.5),
    lowMs: quantile(spread, (1 - CONFIDENCE) / 2),
    highMs: quantile(spread, (1 + CONFIDENCE) / 2),
    ...ranked(first, second),
  };
}

/**
 * The median of as many values, drawn with repetition. The middle of the positions drawn has a beta
 * distribution, which for thousands of values is a normal one, so that only this position is drawn.
 */
function resampledMedian(values: Sorted): number {
  const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
  const share = 0.5 + normal / (2 * Math.sqrt(values.length));
  return quantile(values, Math.min(1, Math.max(0, share)));
}

/** Walks both lists from the smallest value on. */
function ranked(first: Sorted, second: Sorted): Pick<Difference, 'longer' | 'deviations' | 'distance'> {
  let below = 0;
  let at = 0;
  let pairs = 0;
  let distance = 0;
  for (const value of second) {
    while (at < first.length && (first[at] as number) < value) at++;
    let equal = at;
    while (equal < first.length && first[equal] === value) equal++;
    // The curves can be farthest apart before this value or after it.
    distance = Math.max(distance, Math.abs(at / first.length - below / second.length));
    below++;
    distance = Math.max(distance, Math.abs(equal / first.length - below / second.length));
    pairs += at + (equal - at) / 2;
  }
  const all = first.length * second.length;
  const deviation = Math.sqrt((all * (first.length + second.length + 1)) / 12);
  return { longer: pairs / all, deviations: (pairs - all / 2) / deviation, distance };
}
