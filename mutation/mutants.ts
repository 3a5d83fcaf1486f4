import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Edit, mutateSql, statementsIn } from './sql.ts';

/** The mutated parts of src/: those that decide about money and its protection. */
const PLACES = [
  ...['money.ts', 'keyring/', 'refusal.ts', 'ledger/', 'redemptions/', 'vouchers/', 'rotation/'],
  ...['books/', 'settlement/', 'batches/', 'webhooks/', 'principal.ts', 'http/answer.ts'],
  ...['admit', 'approvals', 'approve', 'checkers', 'effect', 'perform', 'propose'].map(
    (name) => `operations/${name}.ts`,
  ),
];

/** Whether a file of the project, by its path from the root, is mutated. */
export function isMutated(path: string): boolean {
  return PLACES.some((place) => path.startsWith(`src/${place}`));
}

/** A change of one file, for which a test should fail. */
export type Mutant = Edit & {
  /** Does not change while its line does not change. */
  readonly id: string;
  /** Relative to the root of the project. */
  readonly path: string;
  readonly line: number;
  readonly original: string;
  /** Whether it changes a statement. */
  readonly isSql: boolean;
};

/** The used part of Stryker's instrumenter, which finds mutants of TypeScript. Positions count from 0. */
type Position = { readonly line: number; readonly column: number };
type StrykerMutant = {
  readonly location: { readonly start: Position; readonly end: Position };
  readonly mutatorName: string;
  readonly replacement: string;
};
type Stryker = {
  readonly Instrumenter: new (
    logger: object,
  ) => {
    instrument(
      files: readonly { name: string; mutate: boolean; content: string }[],
      options: object,
    ): Promise<{ mutants: readonly StrykerMutant[] }>;
  };
};

/**
 * The paths of mutated files that contain one of the words; all of them without words.
 */
export async function findSources(root: string, words: readonly string[]): Promise<string[]> {
  const paths = (await readdir(join(root, 'src'), { recursive: true }))
    .map((path) => `src/${path}`)
    .filter((path) => path.endsWith('.ts') && isMutated(path));
  return paths.filter((path) => words.length === 0 || words.some((word) => path.includes(word))).sort();
}

async function loadStryker(root: string): Promise<InstanceType<Stryker['Instrumenter']>> {
  // Stryker is not a dependency of the project, and has no types here.
  const path = createRequire(join(root, 'mutation/')).resolve('@stryker-mutator/instrumenter');
  const { Instrumenter } = (await import(pathToFileURL(path).href)) as Stryker;
  const quiet = () => {};
  return new Instrumenter({ debug: quiet, info: quiet, warn: quiet, isDebugEnabled: () => false });
}

/**
 * Whether a mutant only changes the wording of an error, or a sentence of the documentation. Tests do not
 * check wordings; other mutants show whether they check that there is an error, and which.
 */
function isWording(edit: Edit, text: string): boolean {
  if (edit.mutator !== 'StringLiteral') return false;
  if (/^['"`][A-Z].*\.['"`]$/s.test(text.slice(edit.start, edit.end))) return true;
  const line = text.slice(text.lastIndexOf('\n', edit.start) + 1, text.indexOf('\n', edit.start));
  const before = text.slice(0, edit.start).trimEnd().split('\n').at(-1) ?? '';
  return /throw new \w+\(|message: |new (RangeError|KeyMissing|StartError)\(/.test(line + before);
}

async function mutateTypeScript(stryker: InstanceType<Stryker['Instrumenter']>, name: string, text: string) {
  const starts = [0];
  for (const { index } of text.matchAll(/\n/g)) starts.push(index + 1);
  const offset = ({ line, column }: Position) => (starts[line] as number) + column;
  const options = { plugins: null, excludedMutations: [], ignorers: [], noHeader: true };
  const { mutants } = await stryker.instrument([{ name, mutate: true, content: text }], options);
  return mutants
    .map(({ location: { start, end }, mutatorName, replacement }) => ({
      start: offset(start),
      end: offset(end),
      replacement,
      mutator: mutatorName,
    }))
    .filter((edit) => !isWording(edit, text));
}

/** All mutants of some files, in order: of SQL in their statements, and of TypeScript around them. */
export async function findMutants(root: string, paths: readonly string[]): Promise<Mutant[]> {
  const stryker = await loadStryker(root);
  const found: Mutant[] = [];
  for (const path of paths) {
    const text = await readFile(join(root, path), 'utf8');
    const statements = statementsIn(text);
    const isInside = (at: number) => statements.some(({ start, end }) => start <= at && at < end);
    const around = (await mutateTypeScript(stryker, path, text)).filter(({ start }) => !isInside(start));
    const edits = [...mutateSql(text), ...around].sort((one, other) => one.start - other.start);
    const seen = new Map<string, number>();
    for (const edit of edits) {
      const original = text.slice(edit.start, edit.end);
      const lineStart = text.lastIndexOf('\n', edit.start - 1) + 1;
      const lineText = text.slice(lineStart, text.indexOf('\n', edit.start));
      const place = JSON.stringify([path, lineText, edit.start - lineStart, original, edit.replacement]);
      const nth = seen.get(place) ?? 0;
      seen.set(place, nth + 1);
      const id = createHash('sha256').update(`${nth} ${place}`).digest('hex').slice(0, 16);
      const line = text.slice(0, edit.start).split('\n').length;
      found.push({ ...edit, id, path, line, original, isSql: isInside(edit.start) });
    }
  }
  return found;
}

/**
 * A list in random order, which is the same for the same seed. Its beginning is a fair sample.
 */
export function shuffle<T extends { readonly id: string }>(all: readonly T[], seed: string): T[] {
  const rank = ({ id }: T) => createHash('sha256').update(`${seed} ${id}`).digest('hex');
  return all
    .map((each) => ({ each, at: rank(each) }))
    .sort((one, other) => (one.at < other.at ? -1 : 1))
    .map(({ each }) => each);
}
