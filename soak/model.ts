import Table from 'cli-table3';
import fc from 'fast-check';
import { startListening } from '../test/harness.ts';
import { explained, reconciles, type Tally } from '../test/model.run.ts';
import { withTestServer } from '../test/server.ts';
import type { Wanted } from './arguments.ts';

const MINUTE_MS = 60_000;
/** Calls at the same time: more orders than these explain would take longer to search than to run. */
const WIDTHS = [1, 4, 7];

/** Searches an order of the model for the answers of two processes, for as long as it is told to. */
export async function soakModel({ minutes, seed }: Wanted): Promise<void> {
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
        process.stdout.write(`${details.numRuns} runs of up to ${width} calls at the same time\n`);
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

/** What was asked for, and what it came to: a call or a refusal that is missing here was not tried. */
function print(tally: Tally): void {
  const table = new Table({ style: { head: [], border: [] }, wordWrap: true, colWidths: [20, 100] });
  for (const [call, codes] of [...tally].sort()) {
    const told = [...codes].sort().map(([code, times]) => `${code}: ${times}`);
    table.push([call, told.join(', ')]);
  }
  process.stdout.write(`${table.toString()}\n`);
}
