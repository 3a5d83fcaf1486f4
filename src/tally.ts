import { HOUR_MS } from './time.ts';

/**
 * Counts frequent events, and decides which are written down: the first time for each key at once, and
 * the number of times when a period has ended. Strangers decide how often things happen, so the number of
 * keys of a period is bounded, and all others are counted together.
 */

/** What is to be written down. */
export type Tallied<Event> = {
  readonly event: Event;
  /** How often it happened, this time included. */
  readonly count: number;
  /** Further sources of the period, such as addresses, some of them. */
  readonly sources: readonly string[];
};

/** How long events wait to be written, so that those of a moment are written together. */
const WRITE_MS = 1_000;

type Counted<Event> = {
  readonly event: Event;
  count: number;
  written: number;
  readonly sources: Set<string>;
};

export class Tally<Event> {
  readonly #periodMs: number;
  readonly #keysMax: number;
  readonly #sourcesMax: number;
  #counted = new Map<string, Counted<Event>>();
  #ended: Counted<Event>[] = [];
  #endsAt = 0;
  readonly #timers = new Map<'soon' | 'at the end', NodeJS.Timeout>();

  constructor({ periodMs = HOUR_MS, keysMax = 50, sourcesMax = 10 } = {}) {
    this.#periodMs = periodMs;
    this.#keysMax = keysMax;
    this.#sourcesMax = sourcesMax;
  }

  /**
   * Counts an event.
   * @param key events of one key are counted together
   * @param other is counted in place of `event`, under the key `''`, if there are too many keys
   */
  count(key: string, event: Event, source: string, other: Event, now: Date): void {
    this.#end(now);
    if (this.#counted.size === 0) this.#endsAt = now.getTime() + this.#periodMs;
    const isKnown = this.#counted.has(key);
    const own = isKnown || this.#counted.size < this.#keysMax ? key : '';
    const counted = this.#counted.get(own) ?? {
      event: own === '' ? other : event,
      count: 0,
      written: 0,
      sources: new Set(),
    };
    this.#counted.set(own, counted);
    counted.count++;
    if (counted.sources.size < this.#sourcesMax) counted.sources.add(source);
  }

  /**
   * Runs `write` after a moment if something is to be written, and when the period has ended. The timers do
   * not keep the process alive.
   */
  schedule(write: () => void): void {
    const isDue = this.#ended.length > 0 || [...this.#counted.values()].some(({ written }) => written === 0);
    if (isDue) this.#startTimer('soon', WRITE_MS, write);
    this.#startTimer('at the end', this.#periodMs, write);
  }

  #startTimer(name: 'soon' | 'at the end', ms: number, write: () => void): void {
    if (this.#timers.has(name)) return;
    const run = () => {
      this.#timers.delete(name);
      write();
    };
    this.#timers.set(name, setTimeout(run, ms).unref());
  }

  /**
   * Takes what is to be written: keys that are new, and those of periods that have ended.
   * @param all also what has been counted since, before the process ends
   */
  take(now: Date, all = false): Tallied<Event>[] {
    this.#end(now, all);
    const due = [...this.#ended, ...[...this.#counted.values()].filter(({ written }) => written === 0)];
    this.#ended = [];
    return due.map((counted) => {
      counted.written = counted.count;
      return { event: counted.event, count: counted.count, sources: [...counted.sources] };
    });
  }

  /** Ends the period, if it is over. What has grown since it was written is written again. */
  #end(now: Date, all = false): void {
    if (!all && now.getTime() < this.#endsAt) return;
    this.#ended.push(...[...this.#counted.values()].filter(({ count, written }) => count > written));
    this.#counted = new Map();
  }
}
