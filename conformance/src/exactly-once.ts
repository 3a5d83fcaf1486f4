import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Batch, Refused, type Shared } from './exactly-once.batch.ts';
import {
  CERTIFICATE_FILE,
  type Certificate,
  certify,
  HISTORY_FILE,
  textOf,
} from './exactly-once.certificate.ts';
import { CuttingClient } from './exactly-once.client.ts';
import { HistoryWriter } from './exactly-once.history.ts';
import { randomBy } from './misbehave.faults.ts';
import type { Access, Variant } from './probe.ts';

/** Runs calls against a server, and certifies that each had its effect exactly once. */

export type ExactlyOncePlan = Access & {
  readonly variants: readonly Variant[];
  /** The product that variant A orders. */
  readonly product: string;
  readonly kit: string;
  readonly minutes: number;
  /** How many batches are used at the same time. */
  readonly callers: number;
  readonly seed: number;
  /** Whether the rest of the float is spent at the end. */
  readonly drain: boolean;
  /** The float at the beginning, if it is known. */
  readonly float?: number | undefined;
  /** The folder of the two files. */
  readonly out: string;
  /** Restarts the server, and returns when that is on its way. */
  readonly restart?: (() => Promise<void>) | undefined;
  readonly signal?: AbortSignal;
};

/** The run was ended early. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

const MINUTE_MS = 60_000;
/** However short a run is, it has this many batches: with fewer it would see too little. */
const BATCHES_MIN = 40;
/** The restarts of a run, evenly spread. */
const RESTARTS = 6;
/** A part of a unit that no computer rounds, for currencies with two decimals. */
const FRACTION = 0.25;
/** The share of batches after which an earlier one is looked at again, and how many earlier ones are kept. */
const REVISIT_SHARE = 0.3;
const KEPT_MAX = 500;
/** Wrong PINs that no service takes for guessing: a few, or a small share of the calls. */
const GUESSES_FREE = 40;
const GUESS_SHARE_MAX = 0.006;
/**
 * Orders and activations at the end: each step asks for half of the last one, more often than there is float
 * for.
 */
const DRAIN_FROM = 65_536;
/** The share of them that order. The others activate, which is paid from the float in another way. */
const DRAIN_ORDERS = 0.5;
const DRAIN_RIVALS = 3;
const DRAIN_ROUNDS_MAX = 50;

/**
 * Writes history.ndjson and certificate.json.
 * @throws Interrupted, Refused, Unreachable
 */
export async function runExactlyOnce(plan: ExactlyOncePlan): Promise<Certificate> {
  await mkdir(plan.out, { recursive: true });
  const certificate = join(plan.out, CERTIFICATE_FILE);
  await rm(certificate, { force: true });
  const run = new Run(plan);
  await run.toEnd();
  const found = await certify(run.path);
  await writeFile(certificate, textOf(found));
  return found;
}

class Run {
  readonly path: string;
  readonly #plan: ExactlyOncePlan;
  readonly #history: HistoryWriter;
  readonly #shared: Shared;
  readonly #random: () => number;
  readonly #finished: Batch[] = [];
  readonly #startedAt = performance.now();
  #calls = 0;
  #callsWithPin = 0;
  #wrongPins = 0;
  #batches = 0;
  #restarts = 0;
  /** Aborted when there are no more calls during which the server can be restarted. */
  readonly #called = new AbortController();
  #isOver = false;

  constructor(plan: ExactlyOncePlan) {
    const { out, kit, variants, seed, minutes, callers, drain, float } = plan;
    this.#plan = plan;
    this.#random = randomBy(seed);
    this.path = join(out, HISTORY_FILE);
    const { origin, pathname } = new URL(plan.baseUrl);
    this.#history = new HistoryWriter(this.path, {
      history: 'exactly-once',
      format: 2,
      kit,
      // Without a user and password that the address may hold.
      url: `${origin}${pathname}`.replace(/\/+$/, ''),
      startedAt: new Date().toISOString(),
      variants,
      seed,
      minutes,
      callers,
      drained: drain,
      float: float ?? null,
    });
    this.#shared = this.#share(plan);
  }

  #share(plan: ExactlyOncePlan): Shared {
    return {
      client: new CuttingClient(plan, randomBy(plan.seed + 1)),
      variants: plan.variants,
      product: plan.product,
      run: `once-${randomUUID().slice(0, 8)}`,
      fraction: 0,
      secret: randomUUID(),
      now: () => Math.floor((performance.now() - this.#startedAt) * 1_000),
      next: () => ++this.#calls,
      record: (call) => {
        if (call.pin !== null) this.#callsWithPin++;
        if (!this.#isOver) this.#history.add(call);
      },
      mayGuess: (wrongPins) => {
        const most = Math.max(GUESSES_FREE, this.#callsWithPin * GUESS_SHARE_MAX);
        if (this.#wrongPins + wrongPins > most) return false;
        this.#wrongPins += wrongPins;
        return true;
      },
    };
  }

  async toEnd(): Promise<void> {
    const { minutes, callers, drain } = this.#plan;
    try {
      if (await this.#newBatch(1).takes(1 + FRACTION, 1 / FRACTION)) this.#shared.fraction = FRACTION;
      const endsAt = Date.now() + minutes * MINUTE_MS;
      const restarting = this.#restartUntil(endsAt);
      const working = Array.from({ length: callers }, () => this.#callUntil(endsAt));
      await Promise.all(working).finally(() => this.#called.abort());
      await restarting;
      // What the last calls have done outlives a restart, too.
      await this.#restart();
      await this.#each(this.#finished, (batch) => batch.revisit());
      if (drain) await this.#drain();
      const end = { endedAt: new Date().toISOString(), calls: this.#calls, restarts: this.#restarts };
      await this.#history.close(end);
    } catch (error) {
      this.#isOver = true;
      await this.#history.close();
      throw error;
    } finally {
      this.#shared.client.close();
    }
  }

  #checkInterrupted(): void {
    if (this.#plan.signal?.aborted) throw new Interrupted('the run was interrupted: there is no certificate');
  }

  async #callUntil(endsAt: number): Promise<void> {
    while ((Date.now() < endsAt || this.#batches < BATCHES_MIN) && !this.#isOver) {
      this.#checkInterrupted();
      const batch = this.#newBatch();
      await batch.play();
      const earlier = this.#finished[Math.floor((this.#random() * this.#finished.length) / REVISIT_SHARE)];
      await earlier?.revisit();
      this.#keep(batch);
      await this.#history.drained();
    }
  }

  #newBatch(activeShare?: number): Batch {
    const number = ++this.#batches;
    return new Batch(number, this.#shared, randomBy(this.#plan.seed * 1_000_003 + number), activeShare);
  }

  /** Keeps a batch to look at it later; of many a sample from the whole run. */
  #keep(batch: Batch): void {
    if (this.#finished.length < KEPT_MAX) this.#finished.push(batch);
    else if (this.#random() < 0.1) this.#finished[Math.floor(this.#random() * KEPT_MAX)] = batch;
  }

  async #restartUntil(endsAt: number): Promise<void> {
    const pauseMs = (endsAt - Date.now()) / RESTARTS;
    while (this.#plan.restart && this.#restarts < RESTARTS - 1) {
      const isTime = await sleep(pauseMs, true, { signal: this.#called.signal }).catch(() => false);
      if (!isTime) return;
      await this.#restart();
    }
  }

  async #restart(): Promise<void> {
    const { restart } = this.#plan;
    if (!restart) return;
    await restart();
    this.#restarts++;
  }

  /** Spends what is left of the float. At each step no more than one of the rivals can be paid. */
  async #drain(): Promise<void> {
    let rounds = 0;
    for (let amount = DRAIN_FROM; amount >= 1; ) {
      this.#checkInterrupted();
      const rivals = Array.from({ length: DRAIN_RIVALS }, () => this.#newBatch(DRAIN_ORDERS));
      await Promise.all(rivals.map((rival) => rival.prepare()));
      const codes = await Promise.all(rivals.map((rival) => rival.spend(amount)));
      if (codes.some((code) => code !== '00' && code !== '50' && code !== '61'))
        throw new Refused(`a voucher of ${amount} is refused (${codes.join(', ')})`);
      if (codes.includes('00') && !codes.includes('50')) rounds++;
      else amount /= 2;
      if (rounds > DRAIN_ROUNDS_MAX) return;
    }
  }

  /** As many at the same time as there are callers. */
  async #each(batches: readonly Batch[], work: (batch: Batch) => Promise<void>): Promise<void> {
    const left = [...batches];
    const worker = async () => {
      for (let batch = left.pop(); batch; batch = left.pop()) {
        this.#checkInterrupted();
        await work(batch);
      }
    };
    await Promise.all(Array.from({ length: this.#plan.callers }, worker));
  }
}
