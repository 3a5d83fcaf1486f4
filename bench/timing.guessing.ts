import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { play } from './play.ts';
import { SEPARATOR, type Stock } from './requests.ts';
import type { Serve, Stage } from './stage.ts';
import { forgetGuesses, opaqueMerchant, wrongPins } from './timing.cases.ts';

const CONNECTIONS = 64;
const SECONDS = 5;
const TURNS = 3;

/**
 * Wrong PINs a second, as balances: of a merchant that is told of them, and of an opaque one, for which each has to do the
 * work of an unknown code.
 */
export async function measureGuessing(stage: Stage, serve: Serve, stock: Stock): Promise<void> {
  const merchants = [
    { name: 'told', authorization: await opaqueMerchant(stage, false) },
    { name: 'opaque', authorization: await opaqueMerchant(stage) },
  ];
  for (let turn = 0; turn <= TURNS; turn++) {
    for (const { name, authorization } of merchants) {
      const file = join(stage.folder, 'guesses.requests');
      await writeFile(file, wrongPins(authorization, stock.vouchers).join(SEPARATOR), { mode: 0o600 });
      await forgetGuesses(stage);
      const load = await play({ url: serve.url, file, connections: CONNECTIONS, seconds: SECONDS });
      if (turn === 0) continue;
      process.stdout.write(
        `  ${name}: ${Math.round(load.answered / SECONDS)} wrong PINs a second, p50 ${load.p50Ms.toFixed(2)}, p99 ${load.p99Ms.toFixed(1)} ms\n`,
      );
    }
  }
}
