import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Report, runConformance } from '../../conformance/src/index.ts';
import { BATCH_JOBS } from '../../src/batches/fill.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { Till } from './till.ts';

/** Runs of the conformance kit on a service of a test. */

/** Runs with a service that also produces batches. */
export async function withService(
  t: TestContext,
  wanted: Parameters<typeof Till.open>[1],
  run: (till: Till) => Promise<void>,
) {
  const till = await Till.open(t, wanted);
  const worker = startJobs(till.testService.service, [BATCH_JOBS]);
  try {
    await run(till);
  } finally {
    await worker.stop();
  }
}

export async function check(
  till: Till,
  variants: readonly ('a' | 'b')[],
  baseUrl = till.testService.baseUrl,
) {
  const { keyId, secret } = till.merchant;
  const report = await runConformance({ baseUrl, keyId, secret, variants, product: 'DEFAULT', only: [] });
  assert.ok(!JSON.stringify(report).includes(secret), 'the report contains the secret');
  return report;
}

export const resultsOf = ({ results }: Report, wanted: string) =>
  results.filter(({ result }) => result === wanted);
