import { dayOf } from './desk.lists.ts';
import { ask, overviewCalls } from './desk.measure.ts';
import { stockOf } from './desk.tills.ts';
import { type Measured, measure, median } from './measure.ts';
import type { Serve, Stage } from './stage.ts';

/** What tills wait while operators work: a hundred heavy requests at once, or ten consoles. */

/** Tills that rest between two payments: the machine is not busy with them. */
const SHAPE = { connections: 32, pauseMs: 100 };
const HEAVY = 100;
const CONSOLES = 10;
/** A console asks again for what is on its first screen. */
const CONSOLE_MS = 10_000;

const print = (line: string) => process.stdout.write(`${line}\n`);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function heavyPaths(): string[] {
  const year = `from=${dayOf(360)}&to=${dayOf(0)}`;
  return [
    ...['trial-balance', 'liability', 'outstanding', 'settlement-statement'].map(
      (name) => `/books/reports/${name}?${year}`,
    ),
    ...['/vouchers?state=CANCELED&limit=200', '/transactions?limit=200', '/bank/entries?open=true&limit=200'],
    '/audit?limit=200',
  ];
}

/** Goes on asking until it is stopped; how many answers there were. */
function askOn(serve: Serve, token: string, kind: 'crowd' | 'consoles'): () => Promise<string> {
  let goesOn = true;
  let answered = 0;
  let refused = 0;
  const one = async (path: string) => {
    await ask(serve, token, { path }).then(
      () => answered++,
      () => refused++,
    );
  };
  const heavy = heavyPaths();
  const clients =
    kind === 'crowd'
      ? Array.from({ length: HEAVY }, async (_, place) => {
          for (let turn = place; goesOn; turn++) await one(heavy[turn % heavy.length] as string);
        })
      : Array.from({ length: CONSOLES }, async (_, place) => {
          await pause((place * CONSOLE_MS) / CONSOLES);
          while (goesOn) {
            await Promise.all(overviewCalls().map(({ path }) => one(path)));
            await pause(CONSOLE_MS);
          }
        });
  return async () => {
    goesOn = false;
    await Promise.all(clients);
    return `${answered} answers to operators, ${refused} refused`;
  };
}

/** Redemptions alone and beside operators, in turns. */
export async function measureBeside(
  stage: Stage,
  token: string,
  vouchers: number,
  kind: 'crowd' | 'consoles',
  { seconds, turns }: { readonly seconds: number; readonly turns: number },
): Promise<void> {
  const stock = await stockOf(stage, vouchers);
  const serve = await stage.serve(['--no-work', '--processes', '1']);
  const run = () => measure(stage, serve, stock, 'redeem', { ...SHAPE, seconds });
  const told = ({ perSecond, p50Ms, p99Ms, failed }: Measured) =>
    `${Math.round(perSecond)}/s, p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)} ms, failed ${failed}`;
  const ratios: number[] = [];
  try {
    await run();
    for (let turn = 1; turn <= turns; turn++) {
      const alone = await run();
      const stop = askOn(serve, token, kind);
      const beside = await run();
      const answers = await stop();
      ratios.push(beside.p99Ms / alone.p99Ms);
      print(`${kind}: alone ${told(alone)}; beside ${told(beside)}; ${answers}`);
    }
  } finally {
    await serve.stop();
  }
  print(`${kind}: redeem p99 × ${median(ratios).toFixed(2)} of alone`);
}
