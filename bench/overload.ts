import { pause, print, type Rate, textOf, whole } from './figures.ts';
import { prepare } from './measure.ts';
import type { OpenLoad, Window } from './open-load.ts';
import { playOpen } from './play.ts';
import type { Stage } from './stage.ts';
import { watchMemory } from './usage.ts';

/**
 * An open load of redemptions of one merchant, five times as many as can be served, beside the tills of
 * another merchant, which run before, during and after it. Service, database and load share the machine,
 * so that the generator takes time from the service. The greatest load is therefore measured with the same
 * generator, and the generator's share is reported.
 */

const TIMES = 5;
const GREATEST_CONNECTIONS = 128;
const FLOOD_CONNECTIONS = 2_000;
const LIGHT = { connections: 32, perSecond: 200 };
const WINDOW_MS = 250;
const BEFORE_MS = 3_000;
const AFTER_MS = 4_000;
/** Normal again: not much slower than the slowest window before the flood. A window holds fifty answers. */
const NORMAL = 1.25;

type Shape = { readonly connections: number; readonly perSecond?: number; readonly windowMs?: number };

export type OverloadResult = {
  readonly greatest: Rate;
  readonly offeredPerSecond: number;
  /** The share of the offered requests that found all clients waiting for an answer. */
  readonly unsentPerSecond: number;
  readonly accepted: Rate;
  /** Without the first second, in which a burst is accepted and waits. */
  readonly later: Rate;
  readonly refused: Rate;
  readonly withoutRetryAfter: number;
  readonly broken: number;
  /** The generator's share of a core, and the longest that it was late by itself. */
  readonly generator: { readonly cores: number; readonly lateMs: number };
  /**
   * Another merchant with a constant load: its p99 before and during the flood, the time until it is back
   * to normal, and its refused requests.
   */
  readonly light: {
    readonly beforeP99Ms: number;
    readonly besideP99Ms: number;
    readonly backMs: number;
    readonly asked: number;
    readonly refused: number;
  };
  readonly memoryMb: { readonly before: number; readonly most: number; readonly after: number };
};

export async function measureOverload(stage: Stage, seconds: number): Promise<OverloadResult> {
  const serve = await stage.serve();
  const own = await stage.stock(0, 0);
  const ask = async (shape: Shape, lastsMs: number, stock = own) => {
    const spanSeconds = Math.ceil((lastsMs / 1000) * (shape.perSecond ? 1 : 2));
    // A list of its own: the same requests again would be replays.
    const file = await prepare(stage, stock, 'redeem', spanSeconds, `overload-${shape.connections}`);
    return () => playOpen({ url: serve.url, file, seconds: lastsMs / 1000, ...shape });
  };
  await (await ask({ connections: GREATEST_CONNECTIONS }, 3_000))();
  const greatest = await (await ask({ connections: GREATEST_CONNECTIONS }, seconds * 1000))();
  const offeredPerSecond = Math.round((greatest.accepted.count / greatest.seconds) * TIMES);
  const flood = await ask({ connections: FLOOD_CONNECTIONS, perSecond: offeredPerSecond }, seconds * 1000);
  const lightMs = BEFORE_MS + seconds * 1000 + AFTER_MS;
  const others = { ...own, authorization: await stage.anotherMerchant() };
  const light = await ask({ ...LIGHT, windowMs: WINDOW_MS }, lightMs, others);
  const memory = watchMemory(serve.pid);
  const beside = light();
  const lightFrom = performance.now();
  await pause(BEFORE_MS);
  const before = await memory.now();
  const floodFrom = performance.now() - lightFrom;
  const flooded = await flood();
  const floodUntil = performance.now() - lightFrom;
  const seen = await beside;
  const after = await memory.now();
  const { mostMb } = await memory.stop();
  const result: OverloadResult = {
    greatest: timesOf(greatest.accepted, greatest.seconds),
    offeredPerSecond,
    unsentPerSecond: flooded.unsent / flooded.seconds,
    accepted: timesOf(flooded.accepted, flooded.seconds),
    later: timesOf(flooded.later, flooded.seconds - 1),
    refused: timesOf(flooded.refused, flooded.seconds),
    withoutRetryAfter: flooded.withoutRetryAfter,
    broken: flooded.broken + seen.broken,
    generator: { cores: flooded.cpuShare, lateMs: flooded.lateMs },
    light: { ...judge(seen.windows, floodFrom, floodUntil), asked: seen.sent, refused: seen.refused.count },
    memoryMb: { before, most: mostMb, after },
  };
  describeResult(result, greatest);
  if (result.broken > 0 || result.withoutRetryAfter > 0) process.exitCode = 1;
  await serve.stop();
  return result;
}

function timesOf({ count, p50Ms, p99Ms, p999Ms }: OpenLoad['accepted'], seconds: number): Rate {
  return { perSecond: count / seconds, p50Ms, p99Ms, p999Ms };
}

/** The light load before, during and after the flood. Its first second is a warm-up. */
function judge(windows: readonly Window[], floodFrom: number, floodUntil: number) {
  const between = (fromMs: number, untilMs: number) =>
    windows.filter((each) => each.fromMs >= fromMs && each.fromMs + WINDOW_MS <= untilMs);
  const worst = (of: readonly Window[]) => Math.max(0, ...of.map(({ p99Ms }) => p99Ms));
  const beforeP99Ms = worst(between(1_000, floodFrom));
  const after = between(floodUntil, Number.POSITIVE_INFINITY);
  const slow = after.findLast(({ p99Ms, accepted }) => accepted === 0 || p99Ms > beforeP99Ms * NORMAL);
  const backMs = slow ? slow.fromMs + WINDOW_MS - floodUntil : 0;
  return { beforeP99Ms, besideP99Ms: worst(between(floodFrom, floodUntil)), backMs };
}

function describeResult(result: OverloadResult, greatest: OpenLoad): void {
  const { accepted, refused, withoutRetryAfter, broken, generator, light, memoryMb } = result;
  print(
    `greatest load: ${textOf(result.greatest)}; the generator took ${greatest.cpuShare.toFixed(2)} cores`,
  );
  print(
    `overload: ${whole(result.offeredPerSecond)}/s offered (${TIMES} ×), ${whole(result.unsentPerSecond)}/s not sent since all ${FLOOD_CONNECTIONS} clients waited; the generator took ${generator.cores.toFixed(2)} cores, and was ${generator.lateMs.toFixed(0)} ms late at most`,
  );
  print(`  accepted ${textOf(accepted)}`);
  print(`  after the first second ${textOf(result.later)}`);
  print(`  refused  ${textOf(refused)}; ${withoutRetryAfter} without Retry-After, anything else ${broken}`);
  print(
    `  another merchant beside it: ${light.refused} of ${whole(light.asked)} refused, p99 ${light.beforeP99Ms.toFixed(1)} ms before, ${light.besideP99Ms.toFixed(1)} ms beside the flood, as before ${whole(light.backMs)} ms after it`,
  );
  print(
    `  memory of the service: ${whole(memoryMb.before)} MB before, ${whole(memoryMb.most)} at most, ${whole(memoryMb.after)} after`,
  );
}
