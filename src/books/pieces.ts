import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { SLICE_MS } from './days.ts';

/** Returns the number of the next transaction that writes. */
function countTransactions(): Sql {
  return sql`select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as count`;
}

/**
 * The fewest slices in a piece: an hour. A piece also reads the ids of the hour before it and of the hour
 * after it, so shorter pieces would mostly read rows of others.
 */
const SLICES_MIN = 4;
/** The most slices in a piece: a day. */
const SLICES_MAX = 96;
/** After a piece with fewer rows, the next ones are longer. */
const ROWS_MIN = 10_000;
/** After a piece with more rows, the next ones are shorter. */
const ROWS_MAX = 40_000;
const GROWTH = 4;

/** A close rests once it has read this many rows since its last rest. That of a small day never rests. */
const REST_ROWS = 10_000;
/**
 * A rest is this many times as long as the work before it, so a close beside tills takes a quarter of one
 * core of the database (docs/explanation/performance.md).
 */
const RESTS = 3;
/** The longest rest, so that a close always makes progress. */
const REST_MAX_MS = 60_000;
const REST_STEP_MS = 100;

/**
 * Divides long work on the journal into pieces, and rests after them while tills are busy. Tills are busy if
 * this process serves them, or if any process writes to the database.
 */
export class Pieces {
  readonly #db: Pick<Database, 'isBusy' | 'query'>;
  readonly #stopping: () => boolean;
  #slices = SLICES_MIN;
  #workedMs = 0;
  #rows = 0;

  constructor(db: Pick<Database, 'isBusy' | 'query'>, stopping: () => boolean = () => false) {
    this.#db = db;
    this.#stopping = stopping;
  }

  get isStopping(): boolean {
    return this.#stopping();
  }

  /**
   * Divides an interval into pieces; one with few rows is a single piece. The number of rows in a piece
   * decides on the length of the next one.
   * @param work returns the number of rows that it has read
   */
  async over(from: Date, until: Date, work: (from: Date, to: Date) => Promise<number>): Promise<void> {
    if (from >= until) return;
    // Counts the rows of the journal in an interval, at most up to a limit.
    const [found] = await this.#db.query<{ count: bigint }>(sql`
select count(*) as count from (
  select 1 from journal where id >= id_floor(${from}::timestamptz) and id < id_floor(${until}::timestamptz)
  limit ${ROWS_MIN}
) r`);
    if (Number(found?.count) < ROWS_MIN) {
      await this.run(() => work(from, until));
      return;
    }
    for (let at = from; at < until && !this.isStopping; ) {
      const [start, end] = [at, new Date(Math.min(at.getTime() + this.#slices * SLICE_MS, until.getTime()))];
      const rows = await this.run(() => work(start, end));
      if (rows > ROWS_MAX) this.#slices = Math.max(this.#slices / GROWTH, SLICES_MIN);
      if (rows < ROWS_MIN) this.#slices = Math.min(this.#slices * GROWTH, SLICES_MAX);
      at = end;
    }
  }

  /** Runs a piece of work, which returns the number of rows that it has read, and rests after it. */
  async run(work: () => Promise<number>): Promise<number> {
    const startedAt = performance.now();
    const rows = await work();
    this.#workedMs += performance.now() - startedAt;
    this.#rows += rows;
    if (this.#rows >= REST_ROWS) await this.#rest();
    return rows;
  }

  async #rest(): Promise<void> {
    const restMs = Math.min(Math.max(this.#workedMs * RESTS, REST_STEP_MS), REST_MAX_MS);
    const until = performance.now() + restMs;
    this.#workedMs = 0;
    this.#rows = 0;
    while (performance.now() < until && !this.isStopping && (await this.#tillsAreBusy()));
  }

  /** Waits for a moment, and returns whether tills were busy meanwhile. */
  async #tillsAreBusy(): Promise<boolean> {
    const [before] = await this.#db.query<{ count: bigint }>(countTransactions());
    await sleep(REST_STEP_MS);
    const [after] = await this.#db.query<{ count: bigint }>(countTransactions());
    return this.#db.isBusy() || before?.count !== after?.count;
  }
}
