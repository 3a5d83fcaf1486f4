import type { Database } from './pool.ts';
import type { HotStatement } from './sql.ts';

/**
 * An operation of the hot path. Requests that wait at the same moment are sent to the database as one call
 * with arrays.
 */
export type Operation<Request, Row, Answer> = {
  /**
   * Returns the resources that a request needs exclusively within a call: its voucher and its reference.
   * Requests with a common key never share a call.
   */
  readonly keysOf: (request: Request) => readonly string[];
  /**
   * Returns the merchant of a request. Merchants take turns, so that a flood from one does not delay the
   * others. Without this function, all requests count as one merchant's.
   */
  readonly merchantOf?: (request: Request) => number;
  /**
   * Sends one call for all requests, which belong to one bucket. Returns a row for each request, in their
   * order. AGAIN as a row repeats the request. All work on single rows belongs in `answer`, which can fail
   * for one request alone.
   */
  readonly run: (
    db: Database,
    requests: readonly Request[],
    bucket: number,
  ) => Promise<readonly (Row | typeof AGAIN)[]>;
  /**
   * Returns the answer of one request from its row, after the call was committed. An error here fails that
   * request alone.
   */
  readonly answer: (request: Request, row: Row) => Answer;
};

/**
 * Returns the `run` of an operation that calls a function of sql/. Its first parameter is the bucket. Its
 * rows name the position of their request, counted from 1, as `ord`.
 * @param valuesOf returns the other parameters: mostly columns of the requests
 * @param missing the row of a request if the function returns none for it
 */
export function calling<Request, Row>(
  statement: HotStatement,
  valuesOf: (requests: readonly Request[]) => readonly unknown[],
  missing: Row | typeof AGAIN,
): Operation<Request, Row, unknown>['run'] {
  return async (db, requests, bucket) => {
    const ordered: (Row | typeof AGAIN)[] = new Array(requests.length).fill(missing);
    const values = [bucket, ...valuesOf(requests)];
    for (const row of await db.hot<Row & { readonly ord: number }>(statement, values, bucket))
      ordered[row.ord - 1] = row;
    return ordered;
  };
}

/** The request lost a race that only a newer snapshot can decide. It is repeated in the next call. */
export const AGAIN: unique symbol = Symbol('again');
