import type { Database } from './pool.ts';

/**
 * One operation of the hot path. Calls that wait at one moment go to the database as one call with arrays.
 */
export type Operation<Request, Row, Answer> = {
  /**
   * What a request must have for itself within a call: its voucher, its reference. Two requests that
   * share one never share a call.
   */
  readonly keysOf: (request: Request) => readonly string[];
  /**
   * The merchant of a request: merchants take turns, so that one that floods does not keep the others
   * waiting. Left out: one for all.
   */
  readonly merchantOf?: (request: Request) => number;
  /**
   * Sends one call for all requests, which lie in one bucket. The rows stand in the order of the
   * requests; AGAIN sends a request once more. Nothing else happens here: what is done with a row is
   * `answer`'s, since it may fail for one request alone.
   */
  readonly run: (
    db: Database,
    requests: readonly Request[],
    bucket: number,
  ) => Promise<readonly (Row | typeof AGAIN)[]>;
  /**
   * Makes the answer of one request from its row, after the call was committed. An error here is that
   * request's alone.
   */
  readonly answer: (request: Request, row: Row) => Answer;
};

/** A request lost a race that only a newer snapshot can settle: it goes into the next call. */
export const AGAIN: unique symbol = Symbol('again');
