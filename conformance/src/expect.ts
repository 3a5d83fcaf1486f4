import { Broken } from './broken.ts';
import type { Seen } from './probe.ts';

/** What rules expect. */

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
