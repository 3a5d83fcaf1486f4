import { type Call, daysAgo, makeCalls } from './desk.lists.ts';
import { print } from './figures.ts';
import type { Serve, Stage } from './stage.ts';
import { quantile, sorted } from './statistics.ts';

/** The latency of a page of each list, and of the first screen of the console. */

const PAGES = 5;
const SLOW_MS = 150;

/**
 * Sends a request to the operator API, or to the portal.
 * @returns the time to the end of the answer @throws if it is not a success
 */
export async function ask({ url }: Serve, token: string, { path, body }: Call, door = 'operator') {
  const since = performance.now();
  const response = await fetch(`${url}/${door}/v1${path}`, {
    headers: { authorization: token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const tookMs = performance.now() - since;
  if (!response.ok) {
    const retryAfterMs = 1_000 * Number(response.headers.get('retry-after') ?? 1);
    throw Object.assign(new Error(`${path}: ${response.status} ${text.slice(0, 300)}`), { retryAfterMs });
  }
  return { tookMs, answer: JSON.parse(text) as { nextCursor?: string | null } };
}

const nextPage = (path: string, cursor: string) => `${path}${path.includes('?') ? '&' : '?'}cursor=${cursor}`;

/** Reads a list several times, each time up to its fifth page. */
async function walk(
  serve: Serve,
  token: string,
  make: (turn: number) => Call,
  calls: number,
): Promise<number[]> {
  const took: number[] = [];
  for (let turn = 0; took.length < calls; turn++) {
    const call = make(turn);
    let cursor: string | null | undefined;
    for (let page = 0; page < PAGES && took.length < calls; page++) {
      const path = cursor ? nextPage(call.path, cursor) : call.path;
      const body = call.body && cursor ? { ...call.body, cursor } : call.body;
      const { tookMs, answer } = await ask(serve, token, {
        path: call.body ? call.path : path,
        ...(body && { body }),
      });
      took.push(tookMs);
      cursor = answer.nextCursor;
      if (!cursor) break;
    }
  }
  return took;
}

const calls = (...paths: readonly string[]): Call[] => paths.map((path) => ({ path }));
const today = () => `from=${daysAgo(0)}&to=${daysAgo(-1)}&section=total`;
const yesterday = () => `from=${daysAgo(1)}&to=${daysAgo(0)}`;

/** The concurrent requests of the first screen of the console, besides its files. */
const overviewCalls = (): Call[] =>
  calls(
    ...['/settings', '/setup', '/inbox', '/audit/break-glass', '/installation/check'],
    ...['/books/days', '/floats?limit=200', '/merchants?limit=200', '/transactions?limit=8'],
    `/declines/count?${yesterday()}`,
    `/books/reports/outstanding?from=${daysAgo(90)}&to=${daysAgo(0)}`,
    `/books/reports/liability?${today()}`,
    `/books/reports/liability?${yesterday()}&section=total`,
  );

/** What that screen asks again each minute while it is open. */
export const refreshCalls = (): Call[] =>
  calls(
    ...['/inbox', '/transactions?limit=8', '/transactions?limit=8'],
    `/declines/count?${yesterday()}`,
    `/books/reports/liability?${today()}`,
  );

/** How long the first screen of the console takes. */
async function openConsole(serve: Serve, token: string, calls: number): Promise<number[]> {
  const took: number[] = [];
  while (took.length < calls) {
    const since = performance.now();
    await Promise.all(overviewCalls().map((call) => ask(serve, token, call)));
    took.push(performance.now() - since);
  }
  return took;
}

/** Reads every list, and prints them, the slowest first. */
export async function measureLists(stage: Stage, token: string, calls: number): Promise<void> {
  const serve = await stage.serve(['--no-work']);
  const found: { name: string; p50: number; p95: number; most: number }[] = [];
  const note = (name: string, all: readonly number[]) => {
    const took = sorted(all);
    found.push({ name, p50: quantile(took, 0.5), p95: quantile(took, 0.95), most: quantile(took, 1) });
  };
  for (const [name, make] of Object.entries(await makeCalls(stage))) {
    // The audit counts how often a person looks codes up.
    const most = /code$/.test(name) ? 14 : calls;
    try {
      note(name, await walk(serve, token, make, most));
    } catch (error) {
      print(`${name}: ${(error as Error).message}`);
    }
  }
  try {
    note('first screen of the console', await openConsole(serve, token, calls));
  } catch (error) {
    print(`first screen of the console: ${(error as Error).message}`);
  }
  for (const { name, p50, p95, most } of found.sort((one, other) => other.p95 - one.p95))
    print(
      `${p95 > SLOW_MS ? '!' : ' '} ${name}: p50 ${p50.toFixed(1)}, p95 ${p95.toFixed(1)}, most ${most.toFixed(1)} ms`,
    );
  await serve.stop();
}
