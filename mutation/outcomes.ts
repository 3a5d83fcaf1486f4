import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mutant } from './mutants.ts';

/**
 * What became of a mutant: a line each in a file that only grows, so that a run can be broken off and
 * gone on with.
 */
export type Outcome = {
  readonly id: string;
  readonly path: string;
  readonly status: 'killed' | 'timeout' | 'survived' | 'not reached';
  /** The test file that noticed. */
  readonly by?: string;
};

const fileOf = (folder: string) => join(folder, 'outcomes.jsonl');

/** Keeps an outcome; a later one of the same mutant takes its place. */
export async function writeOutcome(folder: string, outcome: Outcome): Promise<void> {
  await appendFile(fileOf(folder), `${JSON.stringify(outcome)}\n`);
}

/** The last outcome of each mutant that was tried. */
export async function readOutcomes(folder: string): Promise<Map<string, Outcome>> {
  const text = await readFile(fileOf(folder), 'utf8').catch(() => '');
  const outcomes = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Outcome);
  return new Map(outcomes.map((outcome) => [outcome.id, outcome]));
}

/** A line for each mutant: where it is, and what it changes. */
export function tellSurvivors(mutants: readonly Mutant[]): string {
  const short = (text: string) => {
    const line = text.replace(/\s+/g, ' ');
    return line.length > 90 ? `${line.slice(0, 60)} … ${line.slice(-25)}` : line;
  };
  return mutants
    .map(
      ({ path, line, mutator, original, replacement }) =>
        `${path}:${line} ${mutator}: ${short(original)} => ${short(replacement)}\n`,
    )
    .join('');
}

/** A table of what was tried and found out, by file, with a last row for all. */
export function tellScore(mutants: readonly Mutant[], outcomes: ReadonlyMap<string, Outcome>): string {
  const rows = [...new Set(mutants.map(({ path }) => path)), 'all'].map((path) => {
    const own = mutants.filter((mutant) => path === 'all' || mutant.path === path);
    const tried = own.map(({ id }) => outcomes.get(id)?.status).filter((status) => status !== undefined);
    const killed = tried.filter((status) => status === 'killed' || status === 'timeout').length;
    const score = tried.length === 0 ? '' : `${((killed / tried.length) * 100).toFixed(1)} %`;
    return `| ${[path, own.length, tried.length, killed, tried.length - killed, score].join(' | ')} |\n`;
  });
  return `| file | mutants | tried | found out | survived | score |\n| - | -: | -: | -: | -: | -: |\n${rows.join('')}`;
}
