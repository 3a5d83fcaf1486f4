import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { fail, printJson, printTable, say } from './output.ts';
import { countOf, parseOrigin } from './parse.ts';
import { listenForStop } from './signals.ts';
import { type Card, CREATE, STEPS, type Step, StepFailed, Till } from './till.ts';

/** `scrip bench`: how many sales a second an installation answers, measured from outside. */

const PREFIX = 'bench-';
const TILLS_MAX = 64;
const SECONDS_MAX = 600;
const MS = 1_000;
/** The answer to an update of a redemption that does not exist. */
const NOT_FOUND = '60';
/** A service that refuses is not asked again at once: refusals are quick, and would be most of the load. */
const PAUSE_MS = 100;

export function registerBench(program: Command): void {
  program
    .command('bench')
    .description(
      'measure an installation from outside: tills that redeem vouchers of their own and take it back',
    )
    .requiredOption('--url <address>', 'the address of the service, as tills have it', parseOrigin)
    .option('--tills <n>', 'how many tills at the same time', countOf('--tills', 1, TILLS_MAX), 4)
    .option('--seconds <n>', 'for how long', countOf('--seconds', 1, SECONDS_MAX), 10)
    .option('--json', 'print JSON')
    .action(run);
}

type Options = {
  readonly url: string;
  readonly tills: number;
  readonly seconds: number;
  readonly json?: boolean;
};

async function run({ url, tills, seconds, json }: Options): Promise<void> {
  const stop = listenForStop();
  const till = new Till(url, readConfig(), PREFIX);
  await requireOwnMerchant(till);
  const cards = await Promise.all(
    Array.from({ length: tills }, (_, number) => till.card(number, new Date())),
  );
  const measured = new Measured();
  const begun = performance.now();
  const isOver = () => stop.isAsked() || performance.now() - begun >= seconds * MS;
  await Promise.all(cards.map((card) => sellUntil(isOver, till, card, measured)));
  const took = (performance.now() - begun) / MS;
  const { steps, failures } = measured.report(took);
  if (json) return printJson({ tills, seconds: took, steps, failures });
  printTable(
    ['step', 'a second', 'p50 ms', 'p95 ms', 'p99 ms', 'longest ms'],
    steps.map(({ step, perSecond, ...ms }) => [
      step,
      perSecond.toFixed(1),
      ...[ms.p50Ms, ms.p95Ms, ms.p99Ms, ms.maxMs].map((each) => each.toFixed(1)),
    ]),
  );
  for (const [what, count] of Object.entries(failures)) say(`${count} × ${what}`);
}

/** Ends after a whole sale: what was redeemed is given back. */
async function sellUntil(isOver: () => boolean, till: Till, card: Card, measured: Measured): Promise<void> {
  while (!isOver())
    await till.sell(card, measured.took).catch(async (error: unknown) => {
      if (!(error instanceof StepFailed)) throw error;
      measured.failed(error.message);
      await sleep(PAUSE_MS);
    });
}

const OWN = /^(?:CANCEL-|NEW-)?(?:bench|probe)-/;

/**
 * Refuses a merchant that does anything else than measure, before anything is ordered. A real one has sold
 * something; one that is about to open has no permission to update redemptions, unless it was given.
 */
async function requireOwnMerchant(till: Till): Promise<void> {
  const { statusCode, message, data } = await till.call('/merchant-client/v2/transactions');
  if (statusCode !== '00') fail(`the service refuses the key: ${statusCode} ${message}`);
  const foreign = (data as { reference: string | null }[]).some(
    ({ reference }) => !OWN.test(reference ?? ''),
  );
  if (foreign) fail(`the merchant of this key does other things than measure, so it is refused: ${CREATE}`);
  const update = { reference: `${PREFIX}none`, amountUsed: 0 };
  const unknown = await till.call('/merchant-client/v2/redemptions/update', update);
  if (unknown.statusCode !== NOT_FOUND)
    fail(`the merchant of this key may not update redemptions (${unknown.statusCode}): ${CREATE}`);
}

class Measured {
  readonly #ms = new Map<Step, number[]>(STEPS.map((step) => [step, []]));
  readonly #failures: Record<string, number> = {};

  readonly took = (step: Step, ms: number): void => {
    this.#ms.get(step)?.push(ms);
  };

  failed(what: string): void {
    this.#failures[what] = (this.#failures[what] ?? 0) + 1;
  }

  report(seconds: number) {
    const steps = [...this.#ms].map(([step, unsorted]) => {
      const ms = unsorted.sort((one, other) => one - other);
      const at = (share: number) => ms[Math.min(ms.length - 1, Math.floor(ms.length * share))] ?? 0;
      return {
        step,
        count: ms.length,
        perSecond: ms.length / seconds,
        ...{ p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: at(1) },
      };
    });
    return { steps, failures: this.#failures };
  }
}
