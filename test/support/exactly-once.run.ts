import { join } from 'node:path';
import { type ExactlyOncePlan, runExactlyOnce } from '../../conformance/src/exactly-once.ts';
import { temporaryFolder } from './leave-nothing.ts';

/** The float of the merchant. */
export const FLOAT = 1_000_000;

/** A run of a second or so. */
export async function shortRun(
  server: Pick<ExactlyOncePlan, 'baseUrl' | 'restart'>,
  more: Partial<ExactlyOncePlan> = {},
) {
  const out = await temporaryFolder('scrip-once-');
  const certificate = await runExactlyOnce({
    ...{ keyId: 'key', secret: 'secret', variants: ['a', 'b'], product: 'DEFAULT', kit: 'test' },
    ...{ minutes: 0.01, callers: 8, seed: 1, drain: true, float: FLOAT, out, ...server, ...more },
  });
  return { certificate, history: join(out, 'history.ndjson') };
}
