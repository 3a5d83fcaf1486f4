export type Counts = {
  readonly passed: number;
  readonly failed: number;
  /** The reason of each test that was skipped. */
  readonly skipped: readonly string[];
};

/** The last lines of a run: what was skipped and why, then what passed and failed. */
export function lastLines({ passed, failed, skipped }: Counts): string {
  const skips = [...new Set(skipped)].map((reason) => {
    const { length } = skipped.filter((each) => each === reason);
    return `${length} skipped: ${reason}\n`;
  });
  return `${skips.join('')}${passed} passed, ${failed} failed\n`;
}
