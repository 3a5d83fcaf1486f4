import Table from 'cli-table3';
import fc from 'fast-check';
import { MINUTE_MS } from '../src/time.ts';
import { startListening } from '../test/support/harness.ts';
import { explained, reconciles, type Tally } from '../test/support/model.run.ts';
import { withTestServer } from '../test/support/server.ts';
import type { Options } from './arguments.ts';

/** The numbers of concurrent calls. With more of them, searching their orders would take too long. */
const WIDTHS = [1, 4, 7];

/** Compares the answers of two processes with the orders of the model, for the given time. */
export async function soakModel({ minutes, seed }: Options): Promise<void> {
  await withTestServer(async () => {
    const first = await startListening();
    const second = await startListening(first);
    const tally: Tally = new Map();
    try {
      for (const width of WIDTHS) {
        const details = await fc.check(explained([first, second], width, tally), {
          seed,
          numRuns: Number.MAX_SAFE_INTEGER,
          interruptAfterTimeLimit: (minutes * MINUTE_MS) / WIDTHS.length,
          endOnFailure: true,
        });
        process.stdout.write(`${details.numRuns} runs of up to ${width} concurrent calls\n`);
        if (details.failed) throw details.errorInstance;
      }
      await reconciles(first);
      print(tally);
    } finally {
      await second.stop();
      await first.stop();
    }
  });
}

/** Prints how often each call had which outcome. A call or refusal that is missing was not tried. */
function print(tally: Tally): void {
  const table = new Table({ style: { head: [], border: [] }, wordWrap: true, colWidths: [20, 100] });
  for (const [call, codes] of [...tally].sort()) {
    const outcomes = [...codes].sort().map(([code, times]) => `${code}: ${times}`);
    table.push([call, outcomes.join(', ')]);
  }
  process.stdout.write(`${table.toString()}\n`);
}
