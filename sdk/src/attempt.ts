import { type Answer, type AnswerHead, judge, parseBody, readHead } from './answer.ts';
import { type About, Failure, failureOf, ownError } from './failure.ts';
import { Watch, WatchEnded } from './watch.ts';

/** Where requests go, and as whom. */
export type Connection = {
  /** With the prefix of the variant. */
  readonly url: string;
  readonly authorization: string;
  readonly fetch: typeof globalThis.fetch;
};

export type Request = {
  readonly method: 'GET' | 'POST';
  /** Below the prefix. */
  readonly path: string;
  readonly body?: object | undefined;
  /** Whether a second copy is answered otherwise than the first, so that none may be made behind the client's back. */
  readonly isAnsweredOnce?: boolean;
};

type Patience = { readonly signal: AbortSignal | undefined; readonly timeoutMs: number };

/** The failure behind what a watched step threw. */
export function watchedFailure(about: About, thrown: unknown, wasSent: boolean): Failure {
  if (!(thrown instanceof WatchEnded)) return failureOf(about, thrown);
  const happened = wasSent ? 'perhaps' : 'no';
  if (thrown.why === 'timedOut') {
    return new Failure(ownError(about, 'timedOut', undefined, { isRetryable: true }), happened, true);
  }
  const error = ownError(about, 'aborted', undefined, { isRetryable: true, cause: thrown.reason });
  return new Failure(error, happened, false);
}

/**
 * The body of a request, as fetch takes it. Some runtimes (Deno) send a request whose connection broke a second time by
 * themselves, as long as its body is a text: what the client is then told of it is the answer to the second copy.
 */
function bodyOf({ body, isAnsweredOnce }: Request): string | Blob {
  const text = JSON.stringify(body);
  return isAnsweredOnce ? new Blob([text]) : text;
}

/**
 * Sends a request, and takes its answer in.
 * @param take reads the answer; counts into the time of the attempt
 * @throws Failure
 */
export async function ask<T>(
  { url, authorization, fetch }: Connection,
  about: About,
  request: Request,
  watch: Watch,
  timeoutMs: number,
  take: (response: Response, head: AnswerHead) => Promise<T>,
): Promise<T> {
  const { method, path, body } = request;
  let wasSent = false;
  try {
    return await watch.over(timeoutMs, async () => {
      wasSent = true;
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization,
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: bodyOf(request) }),
        // Codes and PINs go to the address that was given, and to no other.
        redirect: 'manual',
        signal: watch.signal,
      });
      return await take(response, readHead(response, about));
    });
  } catch (error) {
    throw watchedFailure(about, error, wasSent);
  }
}

/**
 * One attempt at a call whose answer fits into memory.
 * @throws Failure
 */
export async function attempt(
  connection: Connection,
  about: About,
  request: Request,
  { signal, timeoutMs }: Patience,
): Promise<Answer> {
  const watch = new Watch(signal);
  try {
    return await ask(connection, about, request, watch, timeoutMs, async (response, head) =>
      judge(about, head, parseBody(await response.text())),
    );
  } finally {
    watch.close();
  }
}
