/**
 * An open load, in a process of its own: requests begin at a fixed rate, whether those before them are
 * answered or not, each on a free connection, or on a new one up to a limit. Without a rate, each request
 * follows the answer to the one before. Prints the result as JSON. Durations count from the time at which
 * a request was due.
 */
import { pause, type Times } from './figures.ts';
import { RequestReader } from './requests.ts';
import { quantile, sorted, timesOf } from './statistics.ts';
import { Wire, type WireAnswer } from './wire.ts';

export type OpenPlan = {
  readonly url: string;
  /** The requests (requests.ts), repeated from the beginning when all are sent. */
  readonly file: string;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second. Without it, a request follows the answer to the one before it. */
  readonly perSecond?: number;
  /** Also reports windows of this length. */
  readonly windowMs?: number;
};

type Counted = Times & { readonly count: number };

/** The accepted requests of a window of time. */
export type Window = { readonly fromMs: number; readonly accepted: number; readonly p99Ms: number };

export type OpenLoad = {
  readonly seconds: number;
  readonly sent: number;
  /** Requests that were due while every connection waited for an answer. */
  readonly unsent: number;
  readonly accepted: Counted;
  /** The same without the first second, in which a burst is accepted. */
  readonly later: Counted;
  readonly refused: Counted;
  /** Refused without Retry-After. */
  readonly withoutRetryAfter: number;
  /** Neither accepted nor refused for overload, or not answered. */
  readonly broken: number;
  /** The longest that the generator itself was late. */
  readonly lateMs: number;
  readonly cpuShare: number;
  readonly windows: readonly Window[];
};

type Answered = { readonly atMs: number; readonly tookMs: number };

/** The interval at which requests are begun: shorter than a person or a till notices. */
const BEAT_MS = 1;
const FIRST_MS = 1_000;
/** A request without an answer by then counts as broken. */
const PATIENCE_MS = 10_000;

class Generator {
  readonly #plan: OpenPlan;
  readonly #requests: RequestReader;
  readonly #free: Wire[] = [];
  #opened = 0;
  #underWay = 0;
  #sent = 0;
  #unsent = 0;
  #broken = 0;
  #withoutRetryAfter = 0;
  #lateMs = 0;
  readonly #accepted: Answered[] = [];
  readonly #refused: Answered[] = [];

  constructor(plan: OpenPlan) {
    this.#plan = plan;
    this.#requests = new RequestReader(plan.file);
  }

  async run(): Promise<OpenLoad> {
    const { seconds, perSecond, connections } = this.#plan;
    await Promise.all(
      Array.from({ length: Math.min(connections, perSecond ?? connections) }, () => this.#connect()),
    );
    const cpu = process.cpuUsage();
    const startedAt = performance.now();
    if (perSecond === undefined) await this.#closed(startedAt + seconds * 1000);
    else await this.#open(perSecond, startedAt, startedAt + seconds * 1000);
    const tookMs = performance.now() - startedAt;
    const { user, system } = process.cpuUsage(cpu);
    const patientUntil = performance.now() + PATIENCE_MS;
    while (this.#underWay > 0 && performance.now() < patientUntil) await pause(BEAT_MS);
    const { windowMs } = this.#plan;
    return {
      seconds: tookMs / 1000,
      sent: this.#sent,
      unsent: this.#unsent,
      accepted: times(this.#accepted),
      later: times(this.#accepted.filter(({ atMs }) => atMs > startedAt + FIRST_MS)),
      refused: times(this.#refused),
      withoutRetryAfter: this.#withoutRetryAfter,
      broken: this.#broken + this.#underWay,
      lateMs: this.#lateMs,
      cpuShare: (user + system) / 1000 / tookMs,
      windows: windowMs === undefined ? [] : windowsOf(this.#accepted, startedAt, windowMs),
    };
  }

  async #connect(): Promise<void> {
    this.#opened++;
    try {
      this.#free.push(await Wire.open(this.#plan.url));
    } catch {
      this.#opened--;
      this.#broken++;
    }
  }

  async #closed(until: number): Promise<void> {
    const clients = this.#free.splice(0);
    await Promise.all(
      clients.map(async (wire) => {
        while (performance.now() < until) await this.#ask(wire, performance.now());
      }),
    );
  }

  async #open(perSecond: number, startedAt: number, until: number): Promise<void> {
    let begun = 0;
    for (let now = startedAt; now < until; now = performance.now()) {
      const due = Math.floor(((now - startedAt) / 1000) * perSecond);
      if (begun < due) this.#lateMs = Math.max(this.#lateMs, now - startedAt - (begun / perSecond) * 1000);
      for (; begun < due; begun++) this.#begin(startedAt + (begun / perSecond) * 1000);
      await pause(BEAT_MS);
    }
  }

  #begin(dueAt: number): void {
    const wire = this.#free.pop();
    if (wire) {
      void this.#ask(wire, dueAt).then(() => this.#free.push(wire));
      return;
    }
    this.#unsent++;
    if (this.#opened < this.#plan.connections) void this.#connect();
  }

  async #ask(wire: Wire, dueAt: number): Promise<void> {
    const request = this.#requests.next();
    this.#sent++;
    this.#underWay++;
    try {
      this.#count(await wire.ask(request), dueAt);
    } catch {
      this.#broken++;
    }
    this.#underWay--;
  }

  #count({ status, head }: WireAnswer, dueAt: number): void {
    const atMs = performance.now();
    const answered = { atMs, tookMs: atMs - dueAt };
    if (status === 200) this.#accepted.push(answered);
    else if (status === 503) {
      this.#refused.push(answered);
      if (!/\r\nretry-after: *[1-9]/i.test(head)) this.#withoutRetryAfter++;
    } else this.#broken++;
  }
}

const times = (all: readonly Answered[]): Counted => ({
  count: all.length,
  ...timesOf(all.map(({ tookMs }) => tookMs)),
});

/** Groups answers by windows, including windows without any. */
function windowsOf(all: readonly Answered[], startedAt: number, windowMs: number): Window[] {
  const windows: number[][] = [];
  for (const { atMs, tookMs } of all) {
    const at = Math.floor((atMs - startedAt) / windowMs);
    windows[at] = [...(windows[at] ?? []), tookMs];
  }
  return Array.from(windows, (took = [], at) => ({
    fromMs: at * windowMs,
    accepted: took.length,
    p99Ms: quantile(sorted(took), 0.99),
  }));
}

const load = await new Generator(JSON.parse(process.argv[2] ?? '{}') as OpenPlan).run();
process.stdout.write(`${JSON.stringify(load)}\n`, () => process.exit(0));
