import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMutated, type Mutant } from './mutants.ts';
import type { Sandbox } from './sandbox.ts';
import { subjectsOf } from './subjects.ts';

/**
 * Which test files reach which lines, by the coverage of V8 in the process of a test and in its children.
 * Node replaces types by blanks, so that positions in the running code are those in the source.
 */

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number };
type Coverage = { result: { url: string; functions: { ranges: Range[]; functionName: string }[] }[] };
/** The duration of a test file, and the ranges of each source that it runs. */
type Reached = { readonly ms: number; readonly sources: Record<string, Range[][]> };
/**
 * With the hashes of the test file and of the sources that it ran. While these do not change, the result is
 * valid.
 */
type Kept = Reached & { readonly hashes: Record<string, string> };

/** A test file that reaches a mutant, with its duration. */
export type Reaching = { readonly name: string; readonly ms: number };

export type Selection = {
  /** The chosen test files that reach a mutant. */
  testsOf(mutant: Mutant): Reaching[];
};

/** The functions of each source that a run called, each with its ranges, the outer ones first. */
async function readCoverage(folder: string, root: string): Promise<Record<string, Range[][]>> {
  const base = pathToFileURL(join(root, 'src/')).href;
  const sources: Record<string, Range[][]> = {};
  for (const name of await readdir(folder)) {
    const { result } = JSON.parse(await readFile(join(folder, name), 'utf8')) as Coverage;
    for (const { url, functions } of result) {
      if (!url.startsWith(base)) continue;
      const path = `src/${url.slice(base.length)}`;
      sources[path] ??= [];
      // The first is the module itself, which every import runs.
      const called = functions.slice(1).map(({ ranges }) => ranges);
      sources[path].push(...called.filter(([whole]) => (whole?.count ?? 0) > 0));
    }
  }
  return sources;
}

const includes = ({ startOffset, endOffset }: Range, at: number) => startOffset <= at && at < endOffset;

/** Whether a called function contains a position and ran it. */
function isReached(functions: readonly Range[][], at: number): boolean {
  return functions.some((ranges) => {
    const innermost = ranges.filter((range) => includes(range, at)).at(-1);
    return innermost !== undefined && innermost.count > 0;
  });
}

/**
 * The name of the constant of a module that contains a position, if no function does.
 */
function constantAt(text: string, at: number): string | undefined {
  const declarations = [
    ...text.slice(0, at + 1).matchAll(/^(?:export )?(?:(?:async )?function\*? |class |(const|let) )(\w+)/gm),
  ];
  const last = declarations.at(-1);
  return last?.[1] ? last[2] : undefined;
}

/** The uses of a name in all sources, where a mutant of a constant has its effect. */
function usesOf(name: string, sources: ReadonlyMap<string, string>): { path: string; at: number }[] {
  return [...sources].flatMap(([path, text]) =>
    [...text.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].map(({ index }) => ({ path, at: index })),
  );
}

/** The test files that use a constant, such as a statement, or import a module of the tests that does. */
function testsThatName(name: string, texts: ReadonlyMap<string, string>): Set<string> {
  const names = (text: string) => new RegExp(`\\b${name}\\b`).test(text);
  const modules = [...texts]
    .filter(([path, text]) => !path.endsWith('.test.ts') && names(text))
    .map(([path]) => path);
  const uses = (text: string) => names(text) || modules.some((path) => text.includes(`/${basename(path)}'`));
  return new Set(
    [...texts].filter(([path, text]) => path.endsWith('.test.ts') && uses(text)).map(([path]) => path),
  );
}

async function readFolder(folder: string): Promise<Map<string, string>> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)),
  );
}

/** Runs a test file. Returns undefined if it fails without any mutant: then it cannot kill one. */
async function reach(sandbox: Sandbox, name: string): Promise<Reached | undefined> {
  const folder = await mkdtemp(join(sandbox.folder, 'coverage-'));
  const covered = await sandbox.runAlone(name, folder);
  const started = Date.now();
  const outcome = covered === 'passed' ? await sandbox.runTest(name, 60_000) : covered;
  const ms = Date.now() - started;
  if (outcome !== 'passed') {
    process.stdout.write(`${name} ${outcome} without any mutant, and is left out\n`);
    return undefined;
  }
  const sources = await readCoverage(folder, sandbox.folder);
  await rm(folder, { recursive: true });
  return { ms, sources };
}

/**
 * Runs each test file whose stored result is not valid any more, and stores the new result.
 */
async function reachAll(
  sandbox: Sandbox,
  cache: string,
  texts: ReadonlyMap<string, string>,
  chosen: readonly string[],
) {
  const fileOf = (name: string) => join(cache, `${name}.json`);
  const read = async (name: string) =>
    JSON.parse(await readFile(fileOf(name), 'utf8').catch(() => '{"hashes":{}}')) as Kept;
  const hashOf = (path: string) =>
    createHash('sha256')
      .update(texts.get(path) ?? '')
      .digest('hex');
  await mkdir(cache, { recursive: true });
  // In random order, so that two concurrent runs seldom run the same file.
  for (const name of [...chosen].sort(() => Math.random() - 0.5)) {
    const hashes = Object.entries((await read(name)).hashes);
    if (hashes.length > 0 && hashes.every(([path, hash]) => hash === hashOf(path))) continue;
    // What it once reached does not count any more.
    await rm(fileOf(name), { force: true });
    const reached = await reach(sandbox, name);
    if (reached === undefined) continue;
    process.stdout.write(`${name}: ${(reached.ms / 1000).toFixed(1)} s\n`);
    const ran = Object.keys(reached.sources).filter(
      (path) => isMutated(path) && reached.sources[path]?.length,
    );
    const kept = {
      ...reached,
      hashes: Object.fromEntries([`test/${name}`, ...ran].map((path) => [path, hashOf(path)])),
    };
    // Renamed into place, since another run may read it at the same time.
    await mkdir(dirname(fileOf(name)), { recursive: true });
    await writeFile(`${fileOf(name)}.${process.pid}`, JSON.stringify(kept));
    await rename(`${fileOf(name)}.${process.pid}`, fileOf(name));
  }
  const kept = await Promise.all(chosen.map(async (name) => [name, await read(name)] as const));
  return Object.fromEntries(kept.filter(([, { sources }]) => sources !== undefined));
}

/**
 * Finds which tests reach which lines of some sources.
 * @param cache the folder in which this is kept
 * @param words parts of the names of test files to run instead of those of each source
 */
export async function selectTests(
  sandbox: Sandbox,
  cache: string,
  paths: ReadonlySet<string>,
  words: readonly string[],
): Promise<Selection> {
  const [sources, tests] = [
    await readFolder(join(sandbox.folder, 'src')),
    await readFolder(join(sandbox.folder, 'test')),
  ];
  const texts = new Map([...sources].map(([name, text]) => [`src/${name}`, text]));
  const subjects = await subjectsOf(sandbox.folder);
  const given = [...tests.keys()].filter(
    (name) => name.endsWith('.test.ts') && words.some((word) => name.includes(word)),
  );
  const chosenFor = (path: string) => (words.length > 0 ? given : subjects(path));
  const all = await reachAll(
    sandbox,
    cache,
    new Map([...texts, ...[...tests].map(([name, text]) => [`test/${name}`, text] as const)]),
    [...new Set([...paths].flatMap(chosenFor))],
  );
  return {
    testsOf({ path, start }) {
      const constant = constantAt(texts.get(path) ?? '', start);
      const places = [{ path, at: start }, ...(constant === undefined ? [] : usesOf(constant, texts))];
      const naming = constant === undefined ? new Set() : testsThatName(constant, tests);
      const known = chosenFor(path).flatMap((name) => (all[name] ? [{ name, ...all[name] }] : []));
      const reaching = known.filter(
        ({ name, sources }) =>
          naming.has(name) || places.some((place) => isReached(sources[place.path] ?? [], place.at)),
      );
      // Code that runs when a module is loaded runs in every test that loads it.
      const found =
        reaching.length > 0 || constant === undefined
          ? reaching
          : known.filter(({ sources }) => sources[path]);
      return found.map(({ name, ms }) => ({ name, ms }));
    },
  };
}
