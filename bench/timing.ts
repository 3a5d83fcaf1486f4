import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { print } from './figures.ts';
import { costOf, measure, microsEach, prepare } from './measure.ts';
import { halfOf, play } from './play.ts';
import { SEPARATOR, type Stock } from './requests.ts';
import { type Given, numberOf, wants } from './scenario.ts';
import { type Serve, Stage, shuffle } from './stage.ts';
import { compare, quantile, type Sorted, sorted } from './statistics.ts';
import {
  type Case,
  forgetGuesses,
  guesserOf,
  MOST_SAMPLES,
  type Subject,
  subjectsOf,
  wrongPins,
} from './timing.cases.ts';
import { type SubjectResult, writeTimingReport } from './timing.report.ts';
import { Wire } from './wire.ts';

/** The warm-up before samples count: code is compiled, caches are filled, connections are open. */
const WARM_UP = 300;
const GREATEST_CONNECTIONS = 128;
const LOAD_SECONDS = 5;

const GUESSERS = 64;
/** Each waits for the end of a step of 50 ms; with many more the service would refuse some. */
const GUESSERS_WAITING = 128;
const GUESSING_SECONDS = 5;
const GUESSING_TURNS = 3;

const us = (ms: number) => `${Math.round(ms * 1000)} µs`;

/** Sends all cases of a subject in random order, and keeps their durations. */
async function sample(serve: Serve, subject: Subject, count: number): Promise<Map<string, Sorted>> {
  const durations = new Map(subject.cases.map(({ name }) => [name, [] as number[]]));
  const numbers = new Map<string, number>();
  const ask = async (wire: Wire, each: Case, counts: boolean) => {
    const number = numbers.get(each.name) ?? 0;
    numbers.set(each.name, number + 1);
    const request = each.make(number);
    const startedAt = performance.now();
    const { status, body } = await wire.ask(request);
    const tookMs = performance.now() - startedAt;
    const answered = `${status} ${/"statusCode":"(\d+)"/.exec(body)?.[1]}`;
    if (answered !== each.expected)
      throw new Error(`${subject.name}, ${each.name}: ${answered}, not ${each.expected}`);
    if (counts) durations.get(each.name)?.push(tookMs);
  };
  const order = shuffle(subject.cases.flatMap((each) => Array.from({ length: count }, () => each)));
  const warmUp = Array.from(
    { length: WARM_UP },
    (_, number) => subject.cases[number % subject.cases.length] as Case,
  );
  const all = [
    ...warmUp.map((each) => ({ each, counts: false })),
    ...order.map((each) => ({ each, counts: true })),
  ];
  const left = all.values();
  const client = async () => {
    const wire = await Wire.open(serve.url);
    for (const { each, counts } of left) await ask(wire, each, counts);
    wire.close();
  };
  await Promise.all(Array.from({ length: subject.clients }, client));
  return new Map([...durations].map(([name, took]) => [name, sorted(took)]));
}

function tell(subject: Subject, took: Map<string, Sorted>): SubjectResult {
  print(`${subject.name}`);
  for (const [name, all] of took) {
    const at = [0.25, 0.5, 0.75, 0.99].map((share) => us(quantile(all, share)));
    print(`  ${name.padEnd(28)} quartiles ${at.slice(0, 3).join(', ')}; p99 ${at[3]}; ${all.length} samples`);
  }
  const differences = subject.pairs.map(([first, second]) => {
    const difference = compare(took.get(first) as Sorted, took.get(second) as Sorted);
    const { medianMs, lowMs, highMs, longer, deviations, distance } = difference;
    print(
      `  ${first} / ${second}: median ${us(medianMs)} (${us(lowMs)} to ${us(highMs)}), the second longer in ${(longer * 100).toFixed(1)} % (${deviations.toFixed(1)} deviations), curves ${distance.toFixed(3)} apart`,
    );
    return { first, second, ...difference };
  });
  return { subject: subject.name, took, differences };
}

/** Redemptions, and later their replays, at half of the greatest load, until the work is done. */
async function besideLoad<T>(stage: Stage, serve: Serve, stock: Stock, work: () => Promise<T>): Promise<T> {
  const shape = { connections: GREATEST_CONNECTIONS, seconds: 3 };
  const { perSecond } = await measure(stage, serve, stock, 'redeem', shape);
  const file = await prepare(stage, stock, 'redeem', 0);
  print(`beside redemptions at half of ${Math.round(perSecond)} a second`);
  let over = false;
  const load = (async () => {
    while (!over) await play({ url: serve.url, file, seconds: LOAD_SECONDS, ...halfOf(perSecond) });
  })();
  try {
    return await work();
  } finally {
    over = true;
    await load;
  }
}

/** All wanted subjects, one after the other. */
async function measureSubjects(given: Given, stage: Stage, serve: Serve, stock: Stock): Promise<void> {
  const { values } = given;
  // The load has other vouchers, since it would reset the wrong PINs.
  const subjects = await subjectsOf(stage, stock.quiet);
  const wanted = subjects.filter(({ name }) => wants(given, name));
  const count = Math.min(numberOf(given, 'samples'), MOST_SAMPLES);
  const results: SubjectResult[] = [];
  const work = async () => {
    for (const subject of wanted) {
      results.push(tell(subject, await sample(serve, subject, count)));
      await forgetGuesses(stage);
    }
  };
  await (values['load'] ? besideLoad(stage, serve, stock, work) : work());
  if (values['report']) await writeTimingReport(values['load'] ? 'beside a load' : 'alone', results);
}

/**
 * Wrong PINs a second, as balances: of a merchant that gets their status code, and of an opaque one, for
 * which each has to do the work of an unknown code.
 */
async function measureGuessing(stage: Stage, serve: Serve, stock: Stock): Promise<void> {
  const merchants = [
    { name: 'told', connections: GUESSERS, authorization: await guesserOf(stage, false) },
    { name: 'opaque', connections: GUESSERS_WAITING, authorization: await guesserOf(stage, true) },
  ];
  for (let turn = 0; turn <= GUESSING_TURNS; turn++) {
    for (const { name, connections, authorization } of merchants) {
      const file = join(stage.folder, 'guesses.requests');
      await writeFile(file, wrongPins(authorization, stock.vouchers).join(SEPARATOR), { mode: 0o600 });
      await forgetGuesses(stage);
      const { result, ...cost } = await costOf(stage, serve, () =>
        play({ url: serve.url, file, connections, seconds: GUESSING_SECONDS }),
      );
      if (turn === 0) continue;
      const each = (ms: number) => Math.round(microsEach(ms, result.answered));
      print(
        `  ${name}: ${Math.round(result.answered / GUESSING_SECONDS)} wrong PINs a second, p50 ${result.p50Ms.toFixed(2)}, p99 ${result.p99Ms.toFixed(1)} ms; CPU of each: service ${each(cost.serviceCpuMs)} µs, database ${each(cost.databaseCpuMs)} µs`,
      );
    }
  }
}

/**
 * Whether the time of an answer reveals that a code exists, that a PIN was right, or that a key is in use.
 * The cases of a subject are sent in random order, alone or beside other calls, and compared with each other.
 * The comparison of a case with itself shows the effect of chance.
 */
export async function run(given: Given): Promise<void> {
  const stage = await Stage.open();
  const serve = await stage.serve();
  const stock = await stage.stock(0, 0);
  if (given.words.includes('guessing')) await measureGuessing(stage, serve, stock);
  else await measureSubjects(given, stage, serve, stock);
}
