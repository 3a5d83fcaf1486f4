import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mutant } from './mutants.ts';

/**
 * The outcome of a mutant: a line of a file that only grows, so that a run can be interrupted and resumed.
 */
export type Outcome = {
  readonly id: string;
  readonly path: string;
  readonly status: 'killed' | 'timeout' | 'survived' | 'not reached';
  /** The test file that failed. */
  readonly by?: string;
};

const fileOf = (folder: string) => join(folder, 'outcomes.jsonl');

/** Stores an outcome, which replaces earlier ones of the same mutant. */
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

/** A line for each mutant, with its place and its change. */
export function formatSurvivors(mutants: readonly Mutant[]): string {
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

/** A table of the tried and killed mutants by file, with a last row for all. */
export function formatScore(mutants: readonly Mutant[], outcomes: ReadonlyMap<string, Outcome>): string {
  const rows = [...new Set(mutants.map(({ path }) => path)), 'all'].map((path) => {
    const own = mutants.filter((mutant) => path === 'all' || mutant.path === path);
    const tried = own.map(({ id }) => outcomes.get(id)?.status).filter((status) => status !== undefined);
    const killed = tried.filter((status) => status === 'killed' || status === 'timeout').length;
    const score = tried.length === 0 ? '' : `${((killed / tried.length) * 100).toFixed(1)} %`;
    return `| ${[path, own.length, tried.length, killed, tried.length - killed, score].join(' | ')} |\n`;
  });
  return `| file | mutants | tried | killed | survived | score |\n| - | -: | -: | -: | -: | -: |\n${rows.join('')}`;
}
