/** The arithmetic of charts. */

const TICKS = 4;
const STEPS = [1, 2, 2.5, 5, 10];

/** Round numbers from zero or below to above the largest value. */
export function ticksOf(values: readonly number[]): number[] {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const rough = (most - least || 1) / TICKS;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = magnitude * (STEPS.find((each) => each * magnitude >= rough) ?? 10);
  const [first, last] = [Math.floor(least / step), Math.ceil(most / step)];
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

/** Returns n such that every n-th label fits. */
export function strideOf(labels: readonly string[], width: number): number {
  const longest = Math.max(1, ...labels.map(({ length }) => length));
  const most = Math.max(1, Math.floor(width / (longest * 6.5 + 16)));
  return Math.max(1, Math.ceil(labels.length / most));
}
