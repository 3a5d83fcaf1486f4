import type { BatchLoad } from './batch-load.ts';
import { copyIn } from './copy.ts';
import { middle, print, type Times, textOf, whole } from './figures.ts';
import { costOf, microsEach } from './measure.ts';
import { playBatches } from './play.ts';
import type { Serve, Stage } from './stage.ts';
import { watchMemory } from './usage.ts';

/**
 * Batches, small ones that their merchants wait for and a large one, beside COPY of the same rows into the
 * same tables: two transactions of rows that were made, sealed and encoded before are the least work that
 * a batch can be.
 */

/** The number of merchants that order and wait at the same time. */
const SMALL = { quantity: 50, clients: 8 };
/** The number for COPY, which takes about a second. */
const SMALL_COPIES = 400;
/** The default limit of a product. */
const LARGE_QUANTITY = 100_000;
const VALUE = 0.01;
const WARM_UP = { seconds: 1, quantity: 10_000 };

/**
 * Batches of one size: vouchers a second, ratios to the yardsticks of the same turns, and the cost of a
 * voucher.
 */
export type BatchFigures = {
  readonly quantity: number;
  readonly clients: number;
  readonly perSecond: number;
  readonly ratios: { readonly copy: number; readonly bare?: number };
  readonly first: Times;
  readonly whole: Times;
  readonly failed: number;
  readonly serviceCpuUs: number;
  readonly databaseCpuUs: number;
  /** The peak of the service, and the database at the end. */
  readonly serviceMb: number;
  readonly databaseMb: number;
};

/** The yardsticks are in vouchers a second, too. */
export type BatchesResult = {
  readonly turns: number;
  readonly yardsticks: { readonly small: BatchYardsticks; readonly large: BatchYardsticks };
  readonly small: BatchFigures;
  readonly large: BatchFigures;
};
export type BatchYardsticks = { readonly copy: number; readonly bare?: number };

export type BatchTurn = { readonly figures: BatchFigures; readonly yardsticks: BatchYardsticks };

export async function measureGenerate(stage: Stage, seconds: number, turns: number): Promise<BatchesResult> {
  const serve = await stage.serve();
  const small: BatchTurn[] = [];
  const large: BatchTurn[] = [];
  for (let turn = 0; turn <= turns; turn++) {
    const isWarmUp = turn === 0;
    const ordered = await orderSmall(stage, serve, turn, isWarmUp ? WARM_UP.seconds : seconds);
    const produced = await orderLarge(stage, serve, isWarmUp ? WARM_UP.quantity : LARGE_QUANTITY);
    if (isWarmUp) continue;
    small.push(ordered);
    large.push(produced);
    tellTurn('generate', turn, [ordered, produced]);
  }
  await serve.stop();
  return middleOf(small, large);
}

async function orderSmall(stage: Stage, serve: Serve, turn: number, seconds: number): Promise<BatchTurn> {
  const { quantity, clients } = SMALL;
  const copy = await copyIn(stage.embedded.ownerUrl, stage.context, quantity, SMALL_COPIES, clients);
  const what = { order: { prefix: `small-${turn}`, quantity } };
  const { url } = serve;
  const { authorization } = stage;
  const play = () => playBatches({ url, authorization, clients, seconds, what });
  return {
    figures: await figuresOf(stage, serve, { quantity, clients }, { copy }, play),
    yardsticks: { copy },
  };
}

async function orderLarge(stage: Stage, serve: Serve, quantity: number): Promise<BatchTurn> {
  const copy = await copyIn(stage.embedded.ownerUrl, stage.context, quantity);
  const produce = async (): Promise<BatchLoad> => {
    const beganAt = performance.now();
    await stage.order(quantity, VALUE);
    const tookMs = performance.now() - beganAt;
    const times = { p50Ms: tookMs, p99Ms: tookMs, p999Ms: tookMs };
    return { answered: 1, perSecond: 1000 / tookMs, bytes: 0, failed: 0, first: times, whole: times };
  };
  const figures = await figuresOf(stage, serve, { quantity, clients: 1 }, { copy }, produce);
  return { figures, yardsticks: { copy } };
}

/** Plays a load of batches. @returns its figures for each voucher */
export async function figuresOf(
  stage: Stage,
  serve: Serve,
  { quantity, clients }: { readonly quantity: number; readonly clients: number },
  yardsticks: BatchYardsticks,
  play: () => Promise<BatchLoad>,
): Promise<BatchFigures> {
  const memory = watchMemory(serve.pid);
  const { result: load, ...cost } = await costOf(stage, serve, play);
  const { mostMb } = await memory.stop();
  const perSecond = load.perSecond * quantity;
  const made = load.answered * quantity;
  return {
    quantity,
    clients,
    perSecond,
    ratios: {
      copy: perSecond / yardsticks.copy,
      ...(yardsticks.bare !== undefined && { bare: perSecond / yardsticks.bare }),
    },
    first: load.first,
    whole: load.whole,
    failed: load.failed,
    serviceCpuUs: microsEach(cost.serviceCpuMs, made),
    databaseCpuUs: microsEach(cost.databaseCpuMs, made),
    serviceMb: mostMb,
    databaseMb: cost.databaseMb,
  };
}

/** Prints the figures of a turn. */
export function tellTurn(name: string, turn: number, all: readonly BatchTurn[]): void {
  for (const { figures, yardsticks } of all) {
    const { quantity, perSecond, ratios, failed, serviceCpuUs, databaseCpuUs, serviceMb } = figures;
    const took = textOf({ perSecond, ...figures.whole });
    const bare = ratios.bare === undefined ? '' : `, ${ratios.bare.toFixed(2)} × bare`;
    print(
      `turn ${turn}: ${name} ${whole(quantity)}: vouchers ${took} = ${ratios.copy.toFixed(2)} × COPY (${whole(yardsticks.copy)}/s)${bare}; failed ${failed}; CPU a voucher: service ${serviceCpuUs.toFixed(1)} µs, database ${databaseCpuUs.toFixed(1)} µs; ${whole(serviceMb)} MB at most`,
    );
  }
}

/** The medians of all turns. A failure in any of them fails the benchmark. */
export function middleOf(few: readonly BatchTurn[], many: readonly BatchTurn[]): BatchesResult {
  const [small, large] = [middle(few), middle(many)];
  if (small.figures.failed + large.figures.failed > 0) process.exitCode = 1;
  return {
    turns: few.length,
    yardsticks: { small: small.yardsticks, large: large.yardsticks },
    small: small.figures,
    large: large.figures,
  };
}
