/** How rules report that they are broken, or cannot be checked. */

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
