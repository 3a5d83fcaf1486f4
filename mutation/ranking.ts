import type { Reaching } from './selection.ts';

/** Ranks the test files of each source by the mutants that they kill in their time. The best run first. */
export class Ranking {
  readonly #tally = new Map<string, { runs: number; found: number }>();

  inOrder(path: string, tests: readonly Reaching[]): Reaching[] {
    const cost = ({ name, ms }: Reaching) => {
      const { runs, found } = this.#of(path, name);
      // At first, each is assumed to kill every second mutant.
      return (ms * (runs + 2)) / (found + 1);
    };
    return [...tests].sort((one, other) => cost(one) - cost(other));
  }

  note(path: string, name: string, found: boolean): void {
    const tally = this.#of(path, name);
    tally.runs++;
    if (found) tally.found++;
    this.#tally.set(`${path} ${name}`, tally);
  }

  #of(path: string, name: string) {
    return this.#tally.get(`${path} ${name}`) ?? { runs: 0, found: 0 };
  }
}
