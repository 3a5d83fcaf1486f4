import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { costOf } from './measure.ts';
import { play } from './play.ts';
import { SEPARATOR, type Stock } from './requests.ts';
import type { Serve, Stage } from './stage.ts';
import { forgetGuesses, guesserOf, wrongPins } from './timing.cases.ts';

const CONNECTIONS = 64;
/** Each waits for the end of a step of 50 ms; with many more the service would refuse some. */
const WAITING_CONNECTIONS = 128;
const SECONDS = 5;
const TURNS = 3;

/**
 * Wrong PINs a second, as balances: of a merchant that gets their status code, and of an opaque one, for
 * which each has to do the work of an unknown code.
 */
export async function measureGuessing(stage: Stage, serve: Serve, stock: Stock): Promise<void> {
  const merchants = [
    { name: 'told', connections: CONNECTIONS, authorization: await guesserOf(stage, false) },
    { name: 'opaque', connections: WAITING_CONNECTIONS, authorization: await guesserOf(stage, true) },
  ];
  for (let turn = 0; turn <= TURNS; turn++) {
    for (const { name, connections, authorization } of merchants) {
      const file = join(stage.folder, 'guesses.requests');
      await writeFile(file, wrongPins(authorization, stock.vouchers).join(SEPARATOR), { mode: 0o600 });
      await forgetGuesses(stage);
      const { result, ...cost } = await costOf(stage, serve, () =>
        play({ url: serve.url, file, connections, seconds: SECONDS }),
      );
      if (turn === 0) continue;
      const each = (ms: number) => Math.round((ms * 1000) / Math.max(1, result.answered));
      process.stdout.write(
        `  ${name}: ${Math.round(result.answered / SECONDS)} wrong PINs a second, p50 ${result.p50Ms.toFixed(2)}, p99 ${result.p99Ms.toFixed(1)} ms; CPU of each: service ${each(cost.serviceCpuMs)} µs, database ${each(cost.databaseCpuMs)} µs\n`,
      );
    }
  }
}
