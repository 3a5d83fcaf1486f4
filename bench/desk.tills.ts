import { createKey } from '../src/api-keys/keys.ts';
import { fillDesk } from './desk.fill.ts';
import { median, print } from './figures.ts';
import { draw } from './fill.ts';
import { measure } from './measure.ts';
import { basic, type Stock } from './requests.ts';
import { Stage } from './stage.ts';

/** Tills on a large database beside tills on a small one, in turns. */

const OPERATIONS = ['redeem', 'balance', 'list'] as const;
const CONNECTIONS = 64;
const DRAWN = 20_000;
const SMALL = 100_000;

/** The vouchers that the tills of the busiest merchant use. */
export async function stockOf(stage: Stage, vouchers: number): Promise<Stock> {
  const { rows } = await stage.owner.query('select id from bench.merchants where place = 0');
  const authorization = basic(await createKey(stage.operator, rows[0].id));
  const none: never[] = [];
  return {
    authorization,
    vouchers: draw(vouchers, DRAWN),
    quiet: draw(vouchers, DRAWN),
    inactive: none.values(),
    redeemed: none,
    updatable: none.values(),
  };
}

export async function measureTills(
  stage: Stage,
  vouchers: number,
  { seconds, turns }: { readonly seconds: number; readonly turns: number },
): Promise<void> {
  const other = await Stage.open();
  await fillDesk(other, SMALL);
  const sides = await Promise.all(
    [
      { stage: other, vouchers: SMALL },
      { stage, vouchers },
    ].map(async (side) => ({
      ...side,
      stock: await stockOf(side.stage, side.vouchers),
      serve: await side.stage.serve(['--no-work', '--processes', '1']),
    })),
  );
  const ratios = new Map<string, number[]>(OPERATIONS.map((operation) => [operation, []]));
  // The first turn compiles the code, and reads the pages into memory.
  for (let turn = 0; turn <= turns; turn++)
    for (const operation of OPERATIONS) {
      const runs = [];
      for (const { stage: own, serve, stock } of sides)
        runs.push(await measure(own, serve, stock, operation, { connections: CONNECTIONS, seconds }));
      const [small, large] = runs;
      if (!small || !large) continue;
      if (turn > 0) ratios.get(operation)?.push(large.perSecond / small.perSecond);
      const figures = runs.map(
        ({ perSecond, p99Ms, databaseCpuUs, failed }) =>
          `${Math.round(perSecond)}/s, p99 ${p99Ms.toFixed(1)} ms, database ${databaseCpuUs.toFixed(1)} µs, failed ${failed}`,
      );
      print(`${operation}: ${figures.join(' | ')}`);
    }
  for (const [operation, all] of ratios)
    print(
      `${operation}: ${median(all).toFixed(2)} of the small database (${all.map((each) => each.toFixed(2)).join(' ')})`,
    );
  for (const { serve } of sides) await serve.stop();
}
