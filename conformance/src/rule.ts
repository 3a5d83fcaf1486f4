import type { TestMerchant } from './merchant.ts';
import type { Seen } from './probe.ts';

/** Rules, and how they report that they are broken. */

export type Rule = {
  /** Short and stable, so that reports can be compared. */
  readonly id: string;
  /** The rule, in a sentence. */
  readonly title: string;
  /** The variants in which it holds, or `between` the two. */
  readonly variants: 'a' | 'b' | 'ab' | 'between';
  /** A permission that the rule needs beside those that every merchant has. */
  readonly needs?: 'update-redemption';
  run(merchant: TestMerchant): Promise<void>;
};

/** The rule is broken. */
export class Broken extends Error {
  override readonly name = 'Broken';
  readonly expected: string;
  readonly seen: string;

  constructor(expected: string, seen: string) {
    super(`expected ${expected}, saw ${seen}`);
    this.expected = expected;
    this.seen = seen;
  }
}

/** The rule cannot be checked here. */
export class Untried extends Error {
  override readonly name = 'Untried';
}

/** A response in a line. */
export function describe({ what, status, statusCode, message }: Seen): string {
  const code = statusCode === undefined ? 'no statusCode' : `statusCode ${statusCode}`;
  return `HTTP ${status}, ${code}${message === undefined ? '' : ` (${message})`} to ${what}`;
}

export function expectThat(isSo: boolean, expected: string, seen: string | (() => string)): asserts isSo {
  if (!isSo) throw new Broken(expected, typeof seen === 'string' ? seen : seen());
}

/** @param about the request, if the response alone does not show it */
export function expectCode(seen: Seen, code: string, about?: string): void {
  const where = about === undefined ? '' : ` for ${about}`;
  expectThat(seen.statusCode === code, `statusCode ${code}${where}`, () => describe(seen));
}

export function expectEqual(found: unknown, expected: unknown, what: string): void {
  expectThat(
    JSON.stringify(found) === JSON.stringify(expected),
    `${what} to be ${JSON.stringify(expected)}`,
    () => `${JSON.stringify(found) ?? 'nothing'}`,
  );
}

export function expectMatch(found: unknown, pattern: RegExp, what: string): void {
  const isSo = typeof found === 'string' && pattern.test(found);
  expectThat(isSo, `${what} like ${pattern.source}`, () => `${JSON.stringify(found) ?? 'nothing'}`);
}
