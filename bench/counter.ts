import { ask } from './desk.measure.ts';
import { print, whole } from './figures.ts';
import type { Voucher } from './requests.ts';
import { type Given, numberOf } from './scenario.ts';
import { type Serve, Stage } from './stage.ts';
import { quantile, sorted } from './statistics.ts';

/** Cashiers at the till of the portal, each with one redemption after the other. */

/** Redemptions before the measurement: they compile the code, and read the pages into memory. */
const WARM_UP_MS = 2_000;

type Till = { readonly serve: Serve; readonly authorization: string; readonly vouchers: readonly Voucher[] };

let references = 0;

/** Redeems a cent. @returns the time to the end of the answer @throws if it is not booked */
async function redeem({ serve, authorization, vouchers }: Till): Promise<number> {
  const at = ++references;
  const { code, pin } = vouchers[at % vouchers.length] as Voucher;
  const body = { code, pin, amount: 0.01, reference: `counter-${at}` };
  return (await ask(serve, authorization, { path: '/till/redeem', body }, 'portal')).tookMs;
}

/** Lets all cashiers redeem for a time. @returns how long each redemption took */
async function redeemFor(till: Till, cashiers: number, ms: number): Promise<number[]> {
  const took: number[] = [];
  const until = performance.now() + ms;
  const work = async () => {
    while (performance.now() < until) took.push(await redeem(till));
  };
  await Promise.all(Array.from({ length: cashiers }, work));
  return took;
}

async function tillOf(stage: Stage, serve: Serve): Promise<Till> {
  const merchantId = String(stage.merchantId);
  const authorization = await stage.token({ roles: ['cashier'], merchantId });
  const { vouchers } = await stage.stock(0, 0);
  return { serve, authorization, vouchers };
}

export async function run(given: Given): Promise<void> {
  const cashiers = numberOf(given, 'cashiers');
  const seconds = numberOf(given, 'seconds');
  const stage = await Stage.open();
  const serve = await stage.serve();
  const till = await tillOf(stage, serve);
  await redeemFor(till, cashiers, WARM_UP_MS);
  const took = sorted(await redeemFor(till, cashiers, seconds * 1_000));
  await serve.stop();
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => quantile(took, share).toFixed(1));
  print(
    `${cashiers} cashiers: ${whole(took.length / seconds)}/s, p50 ${p50}, p95 ${p95}, p99 ${p99} ms, ` +
      `the longest ${quantile(took, 1).toFixed(1)} ms`,
  );
}
