import { spawn } from 'node:child_process';
import { end, started } from '../test/support/leave-nothing.ts';
import { daysAgo } from './desk.lists.ts';
import { ask, refreshCalls } from './desk.measure.ts';
import { stockOf } from './desk.tills.ts';
import { median, pause, print, textOf } from './figures.ts';
import { type Measured, measure } from './measure.ts';
import type { Serve, Stage } from './stage.ts';

/**
 * The latency of tills while operators work: a hundred heavy requests at once, or ten consoles. For
 * comparison, beside a process that only keeps one core busy, as any long statement does.
 */

/** Tills that pause between two payments, and leave the machine idle time. */
const SHAPE = { connections: 32, pauseMs: 100 };
const HEAVY = 100;
const CONSOLES = 10;
/** The interval at which a console refreshes its first screen (console/src/pages/overview.tsx). */
const CONSOLE_MS = 60_000;

function heavyPaths(): string[] {
  const year = `from=${daysAgo(360)}&to=${daysAgo(0)}`;
  return [
    ...['trial-balance', 'liability', 'outstanding', 'settlement-statement'].map(
      (name) => `/books/reports/${name}?${year}`,
    ),
    ...['/vouchers?state=CANCELED&limit=200', '/transactions?limit=200', '/bank/entries?open=true&limit=200'],
    '/audit?limit=200',
  ];
}

export type Neighbors = 'crowd' | 'consoles' | 'core';

/** Keeps one core busy until it is stopped. */
export function keepCoreBusy(): () => Promise<string> {
  const child = started(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  return async () => {
    await end(child);
    return 'one core kept busy';
  };
}

/** Repeats requests until it is stopped. @returns the number of answers */
function askOn(serve: Serve, token: string, kind: Neighbors): () => Promise<string> {
  if (kind === 'core') return keepCoreBusy();
  let goesOn = true;
  let answered = 0;
  let refused = 0;
  const one = async (path: string) => {
    await ask(serve, token, { path }).then(
      () => answered++,
      async ({ retryAfterMs }: { retryAfterMs: number }) => {
        refused++;
        for (const until = Date.now() + retryAfterMs; goesOn && Date.now() < until; ) await pause(100);
      },
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
            await Promise.all(refreshCalls().map(({ path }) => one(path)));
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
  kind: Neighbors,
  { seconds, turns }: { readonly seconds: number; readonly turns: number },
): Promise<void> {
  const stock = await stockOf(stage, vouchers);
  const serve = await stage.serve(['--no-work', '--processes', '1']);
  const run = () => measure(stage, serve, stock, 'redeem', { ...SHAPE, seconds });
  const summary = (measured: Measured) => `${textOf(measured)}, failed ${measured.failed}`;
  const ratios: number[] = [];
  await run();
  for (let turn = 1; turn <= turns; turn++) {
    const alone = await run();
    const stop = askOn(serve, token, kind);
    const beside = await run();
    const answers = await stop();
    ratios.push(beside.p99Ms / alone.p99Ms);
    print(`${kind}: alone ${summary(alone)}; beside ${summary(beside)}; ${answers}`);
  }
  await serve.stop();
  print(`${kind}: redeem p99 × ${median(ratios).toFixed(2)} of alone`);
}
