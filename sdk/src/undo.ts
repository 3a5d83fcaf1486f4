import { type About, clientError, Failure, mismatch } from './failure.ts';
import { type Answer, type AnswerHead, type Connection, foreign, refused } from './http.ts';
import { readUndone } from './read.ts';
import type { Undone } from './types.ts';

/** How a redemption is undone: by the portal API, whose answers have their own form. */

export const GIVE_UP = '/redemptions/give-up';

/** Where the portal API is, and with which token. */
export function portalConnection(
  { fetch }: Connection,
  baseUrl: string,
  token: string | undefined,
): Connection | undefined {
  if (token === undefined) return undefined;
  return { url: `${baseUrl}/portal/v1`, authorization: `Bearer ${token}`, fetch, judge };
}

/** The status codes for problems of the portal that are no refusal. */
const BY_PROBLEM: Readonly<Record<string, string>> = {
  unauthorized: '01',
  forbidden: '03',
  'step-up-required': '03',
  'not-found': '03',
  invalid: '30',
  'too-many-requests': '97',
};

/**
 * Judges a response of the portal: the result itself, or a problem (RFC 9457).
 * @throws Failure unless it is a success
 */
function judge(about: About, head: AnswerHead, body: unknown): Answer {
  const { status, replayed, requestId = null } = head;
  const fields = (typeof body === 'object' && body !== null ? body : {}) as Readonly<Record<string, unknown>>;
  if (status === 200 && 'outcome' in fields) return { data: body, replayed, requestId };
  const { code: problem, detail: message, errors } = fields;
  const known = typeof problem === 'string' && Object.hasOwn(BY_PROBLEM, problem);
  const code = known ? BY_PROBLEM[problem] : problem;
  if (status < 400 || typeof code !== 'string' || !/^\d\d$/.test(code)) throw foreign(about, head);
  throw refused(about, head, code, { message, errors });
}

/** @throws Malformed, Failure for the result of another reference */
export function takeUndone(about: About, { data, requestId }: Answer): Undone {
  const undone = readUndone(data);
  if (undone.reference !== about.reference) throw mismatch(about, 'it is about another reference', requestId);
  return { ...undone, requestId };
}

/** The most undone references that a client remembers. */
const REMEMBERED_MAX = 1_000;

/**
 * References that a client has undone. A copy of the request that was booked before is still answered with
 * its transaction, which must not pass for a payment.
 */
export class UndoneReferences {
  readonly #references = new Set<string>();

  add(reference: string): void {
    this.#references.add(reference);
    const [oldest] = this.#references;
    if (this.#references.size > REMEMBERED_MAX && oldest !== undefined) this.#references.delete(oldest);
  }

  /** @throws Failure for a result under one of them */
  refuse(about: About, reference: string): void {
    if (!this.#references.has(reference)) return;
    throw new Failure(clientError(about, 'undone', undefined, { isRetryable: false }), {
      mayHaveHappened: false,
      again: false,
    });
  }
}
