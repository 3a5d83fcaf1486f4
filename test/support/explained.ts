import pg from 'pg';
import type { Database } from '../../src/db/pool.ts';
import { type HotStatement, type Sql, types } from '../../src/db/sql.ts';
import type { TestService } from './harness.ts';

/** A node of a plan, with the rows that it read where the plan was executed. */
export type PlanNode = {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Join Filter'?: string;
  Filter?: string;
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
   * Whether the function or the connection keeps the plan. Other statements are planned at each execution.
   */
  readonly isKept: boolean;
};

/** Settings that make the server report every plan, also those inside functions, to the session. */
const REPORT = `
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_nested_statements = on;
set auto_explain.log_analyze = on;
set auto_explain.log_timing = off;
set auto_explain.log_format = json;
set auto_explain.log_level = notice`;

/** Replaces the pools of a service: its statements run on one connection, which reports their plans. */
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

  /** Connects to the database of a service, with the settings of the service's sessions. */
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
   * Sends the statements of the service here from now on. Transactions, which are not on the hot path, keep
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

  /** Runs a statement, and returns the plans of what it executed. */
  async plansOf(text: string, values: readonly unknown[] = []): Promise<PlanNode[]> {
    const before = this.executed.length;
    await this.#client.query(text, [...values]);
    return this.executed.slice(before).map(({ plan }) => plan);
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
