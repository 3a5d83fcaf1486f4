import type { Database } from './pool.ts';

/**
 * One operation of the hot path. Requests that wait at one moment go to the database as one call with
 * arrays.
 */
export type Operation<Request, Row, Answer> = {
  /**
   * What a request needs exclusively within a call: its voucher and its reference. Requests with a key
   * in common never share a call.
   */
  readonly keysOf: (request: Request) => readonly string[];
  /**
   * The merchant of a request. Merchants take turns, so that a flood from one does not delay the
   * others. Without it, all requests are one merchant's.
   */
  readonly merchantOf?: (request: Request) => number;
  /**
   * Sends one call for all requests, which belong to one bucket. The rows are in the order of the
   * requests. AGAIN sends a request once more. It does nothing else: `answer` works on each row, since
   * that can fail for one request alone.
   */
  readonly run: (
    db: Database,
    requests: readonly Request[],
    bucket: number,
  ) => Promise<readonly (Row | typeof AGAIN)[]>;
  /**
   * Makes the answer of one request from its row, after the call was committed. An error here fails
   * that request alone.
   */
  readonly answer: (request: Request, row: Row) => Answer;
};

/** The request lost a race that only a newer snapshot can decide. It goes into the next call. */
export const AGAIN: unique symbol = Symbol('again');
