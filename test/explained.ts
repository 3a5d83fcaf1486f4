import pg from 'pg';
import type { Database } from '../src/db/pool.ts';
import type { HotStatement, Sql } from '../src/db/sql.ts';
import { types } from '../src/db/types.ts';
import type { TestService } from './harness.ts';

/** A step of a plan, with what it read where the plan was executed. */
export type PlanNode = {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Join Filter'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
};

/** A statement that was executed, in a function or by itself, and its plan. */
export type Executed = {
  readonly statement: string;
  readonly plan: PlanNode;
  /**
   * Its plan is kept, by the function or the connection that it belongs to; others are planned each time
   * for the tables as they are.
   */
  readonly isKept: boolean;
};

/**
 * What makes the server report every plan, those inside functions included, to the session that executes it.
 */
const REPORT = `
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_nested_statements = on;
set auto_explain.log_analyze = on;
set auto_explain.log_timing = off;
set auto_explain.log_format = json;
set auto_explain.log_level = notice`;

/** Stands in for the pools of a service: its statements run on one connection, which reports their plans. */
export class Explained {
  readonly executed: Executed[] = [];
  readonly #client: pg.Client;
  readonly #passing = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  private constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', () => {});
    client.on('notice', ({ message = '' }) => {
      const [, json] = /^duration: [\d.]+ ms {2}plan:\n(.*)$/s.exec(message) ?? [];
      if (!json) return;
      const { 'Query Text': statement, Plan: plan } = JSON.parse(json) as {
        'Query Text': string;
        Plan: PlanNode;
      };
      this.executed.push({ statement, plan, isKept: !this.#passing.has(statement) });
    });
  }

  /** On the database of a service, with the settings of the service's own sessions. */
  static async open({ service, url }: TestService): Promise<Explained> {
    const settings = await service.db.query<{ name: string; setting: string }>({
      text: "select name, setting from pg_settings where source = 'session'",
      values: [],
    });
    const client = new pg.Client({ connectionString: url, types });
    await client.connect();
    await client.query(REPORT);
    for (const { name, setting } of settings)
      await client.query('select set_config($1, $2, false)', [name, setting]);
    return new Explained(client);
  }

  /**
   * From now on the service sends its statements here; transactions, which are not of the hot path, keep
   * their own connections.
   */
  replace(db: Database): void {
    // One after the other: a connection takes one statement at a time.
    const run = async <Row>(query: pg.QueryConfig) => {
      const result = this.#last.then(() => this.#client.query(query));
      this.#last = result.catch(() => {});
      return (await result).rows as Row[];
    };
    Object.assign(db, {
      hot: ({ name, text }: HotStatement, values: readonly unknown[]) =>
        run({ name, text, values: [...values] }),
      query: ({ text, values }: Sql) => {
        this.#passing.add(text);
        return run({ text, values: [...values] });
      },
    });
  }

  /** Runs a statement, and gives the plans of what it executed. */
  async plansOf(text: string, values: readonly unknown[] = []): Promise<PlanNode[]> {
    const before = this.executed.length;
    await this.#client.query(text, [...values]);
    return this.executed.slice(before).map(({ plan }) => plan);
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
