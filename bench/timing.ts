import { print } from './figures.ts';
import { measure, prepare } from './measure.ts';
import { GENERATOR, play } from './play.ts';
import type { Stock } from './requests.ts';
import { type Given, numberOf, wants } from './scenario.ts';
import { type Serve, Stage, shuffle } from './stage.ts';
import { compare, quantile, type Sorted, sorted } from './statistics.ts';
import { type Case, forgetGuesses, MOST_SAMPLES, type Subject, subjectsOf } from './timing.cases.ts';
import { measureGuessing } from './timing.guessing.ts';
import { type SubjectResult, writeTimingReport } from './timing.report.ts';
import { Wire } from './wire.ts';

/** The warm-up before samples count: code is compiled, caches are filled, connections are open. */
const WARM_UP = 300;
const GREATEST_CONNECTIONS = 128;
const HALF_CONNECTIONS = 64;
const LOAD_SECONDS = 5;

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
  const half =
    GENERATOR === 'wrk'
      ? { connections: HALF_CONNECTIONS, pauseMs: (HALF_CONNECTIONS / (perSecond / 2)) * 1000 }
      : { connections: 2 };
  print(`beside redemptions at half of ${Math.round(perSecond)} a second`);
  let over = false;
  const load = (async () => {
    while (!over) await play({ url: serve.url, file, seconds: LOAD_SECONDS, ...half });
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
