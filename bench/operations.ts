import { middle, print, textOf, whole } from './figures.ts';
import { type Measured, measure, needOf } from './measure.ts';
import type { OperationName } from './requests.ts';
import type { Stage } from './stage.ts';
import { bareFastify, yardstick } from './yardstick.ts';

/**
 * Numbers of clients. The peak of throughput depends on the operation and the machine: the best of these
 * counts, as for the yardstick.
 */
const CONNECTIONS = [64, 128];
const WARM_UP_SECONDS = 2;
const YARDSTICK_SECONDS = 3;

type Yardsticks = { readonly function: number; readonly plain: number; readonly bare: number };

/** The median of an operation's turns, and its ratios to the yardsticks of the same turns. */
type OperationResult = Measured & { readonly ratios: Yardsticks; readonly turns: number };

export type OperationsResult = { readonly yardsticks: Yardsticks; readonly all: readonly OperationResult[] };

/** Measures operations and yardsticks in alternating turns, after a warm-up of each operation. */
export async function measureOperations(
  stage: Stage,
  names: readonly OperationName[],
  seconds: number,
  turns: number,
): Promise<OperationsResult> {
  const serve = await stage.serve();
  await stage.stock(0, 0);
  const measured: Measured[][] = [];
  const yardsticks: Yardsticks[] = [];
  for (let turn = 0; turn <= turns; turn++) {
    const runSeconds = turn === 0 ? WARM_UP_SECONDS : seconds;
    const need = needOf(names, runSeconds);
    const stock = await stage.stock(need.inactive * CONNECTIONS.length, need.updatable * CONNECTIONS.length);
    if (turn > 0) yardsticks.push(await measureYardsticks(stage, turn));
    const runs: Measured[] = [];
    for (const name of names) {
      const tried: Measured[] = [];
      for (const connections of turn === 0 ? CONNECTIONS.slice(0, 1) : CONNECTIONS) {
        tried.push(await measure(stage, serve, stock, name, { connections, seconds: runSeconds }));
      }
      const best = tried.reduce((one, other) => (other.perSecond > one.perSecond ? other : one));
      runs.push(best);
      if (turn > 0) print(lineOf(best));
    }
    if (turn > 0) measured.push(runs);
  }
  const all = names.map((_, index) =>
    summarize(
      measured.map((runs) => runs[index] as Measured),
      yardsticks,
    ),
  );
  for (const each of all) print(summaryOf(each));
  if (all.some(({ failed }) => failed > 0)) process.exitCode = 1;
  await serve.stop();
  return { yardsticks: middle(yardsticks), all };
}

async function measureYardsticks(stage: Stage, turn: number): Promise<Yardsticks> {
  const found = {
    function: await yardstick(stage, 'function', YARDSTICK_SECONDS),
    plain: await yardstick(stage, 'plain', YARDSTICK_SECONDS),
    bare: await bareFastify(stage, YARDSTICK_SECONDS),
  };
  print(
    `turn ${turn}: stored function ${whole(found.function)}/s, plain transaction ${whole(found.plain)}/s, bare Fastify ${whole(found.bare)}/s`,
  );
  return found;
}

function summarize(runs: readonly Measured[], yardsticks: readonly Yardsticks[]): OperationResult {
  const ratios = runs.map(({ perSecond }, turn) => {
    const { function: called = 1, plain = 1, bare = 1 } = yardsticks[turn] ?? {};
    return { function: perSecond / called, plain: perSecond / plain, bare: perSecond / bare };
  });
  return { ...middle(runs), ratios: middle(ratios), turns: runs.length };
}

function lineOf(run: Measured): string {
  const cost = `CPU a request: service ${run.serviceCpuUs.toFixed(0)} µs, database ${run.databaseCpuUs.toFixed(0)} µs`;
  const memory = `${run.serviceMb.toFixed(0)} and ${run.databaseMb.toFixed(0)} MB`;
  return `  ${run.operation.padEnd(9)}${textOf(run)} at ${run.connections}; failed ${run.failed}; ${cost}; ${memory}`;
}

function summaryOf({ operation, perSecond, ratios }: OperationResult): string {
  const of = `${ratios.function.toFixed(2)} × stored function, ${ratios.plain.toFixed(2)} × plain transaction`;
  return `${operation}: median ${whole(perSecond)}/s = ${of}, ${ratios.bare.toFixed(2)} × bare Fastify`;
}
