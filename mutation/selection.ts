import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMutated, type Mutant } from './mutants.ts';
import type { Sandbox } from './sandbox.ts';

/**
 * Which test files reach which lines: told by V8's coverage, of the test's process and of all that it
 * starts. Node strips types by blanks, so a position in what runs is the same one in the source.
 */

/** The test files whose subject money is. Others reach the same lines by the way, and much slower. */
const TESTS =
  /^(money|secrets|keyed-hash|refusal|redeem|update|activate|balance|operate|look-up|lookup|list|transactions|ledger|reconcile|pin|vouchers|keys\.rotate|rotate|reseal|status|guessing|generate|merchants\.floats|equal-work|webhooks\.events|cli\.(vouchers|keyring)|http\.dialects|db\.plans|batcher|auth\.)/;

/**
 * The test files whose subject a source is, beside those named after it: asked first, and always. Those
 * of a statement ask most.
 */
const SUBJECTS: readonly (readonly [source: RegExp, tests: RegExp])[] = [
  // That a look-up is one, and does not read or lock everything.
  [/queries/, /^db\.plans/],
  [/redeem/, /^(redeem|batcher\.op|pin\.guard|webhooks\.events|status)/],
  [/redemptions\/update/, /^(update|batcher\.op|redeem\.race|webhooks\.events|status)/],
  [/activate/, /^(activate|batcher\.op|pin\.guard|redeem\.race|webhooks\.events|status)/],
  [/balance/, /^(balance|batcher\.op|equal-work|pin\.guard|status)/],
  [/operate/, /^(vouchers\.operate|cli\.vouchers)/],
  [/look-up/, /^(look-up|equal-work|keys\.rotate|guessing|pin\.guard|redeem\.test)/],
  [/reseal|rotate/, /^(keys\.rotate|cli\.keyring)/],
  [/transactions|transaction-data/, /^(transactions|batcher\.op|look-up|lookup|list|transactions|update)/],
  [/reconcile/, /^(reconcile|ledger\.property)/],
  [/accounts/, /^(merchants\.floats|activate)/],
];
/** What the tests of one mutant may take together, beside those that it is always given. */
const LONGEST_MS = 5_000;

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number };
type Coverage = { result: { url: string; functions: { ranges: Range[]; functionName: string }[] }[] };
/** Of one test file: how long it takes, and for each source what it runs of it. */
type Reached = { readonly ms: number; readonly sources: Record<string, Range[][]> };
/**
 * With what it was as it ran, and each source that it ran something of: while they stay, so does what it
 * reached.
 */
type Kept = Reached & { readonly hashes: Record<string, string> };

/**
 * A test file that reaches a mutant: whether money's part that the mutant is in is its subject, and how
 * long it takes.
 */
export type Reaching = { readonly name: string; readonly ms: number; readonly isOwn: boolean };

export type Selection = {
  /**
   * The test files that a mutant has to pass: those named after its file, or else of its subject, and the
   * quickest others that reach it.
   */
  testsOf(mutant: Mutant): Reaching[];
};

/** The functions of each source that a run entered; each with its ranges, the outer ones first. */
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

/** Whether one of the functions that were called holds a position, and ran through it. */
function isReached(functions: readonly Range[][], at: number): boolean {
  return functions.some((ranges) => {
    const innermost = ranges.filter((range) => includes(range, at)).at(-1);
    return innermost !== undefined && innermost.count > 0;
  });
}

/**
 * The name of the constant at the top of a module that holds a position, if it stands in none of its
 * functions.
 */
function constantAt(text: string, at: number): string | undefined {
  const declarations = [
    ...text.slice(0, at + 1).matchAll(/^(?:export )?(?:(?:async )?function\*? |class |(const|let) )(\w+)/gm),
  ];
  const last = declarations.at(-1);
  return last?.[1] ? last[2] : undefined;
}

/** Where a name is used, in all sources: what a mutant of a constant changes is seen there. */
function usesOf(name: string, sources: ReadonlyMap<string, string>): { path: string; at: number }[] {
  return [...sources].flatMap(([path, text]) =>
    [...text.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].map(({ index }) => ({ path, at: index })),
  );
}

/** The test files that ask a constant themselves, such as a statement; or a module of the tests that does. */
function testsThatName(name: string, texts: ReadonlyMap<string, string>): Set<string> {
  const names = (text: string) => new RegExp(`\\b${name}\\b`).test(text);
  const modules = [...texts]
    .filter(([path, text]) => !path.endsWith('.test.ts') && names(text))
    .map(([path]) => path);
  const asks = (text: string) => names(text) || modules.some((path) => text.includes(`'./${path}'`));
  return new Set(
    [...texts].filter(([path, text]) => path.endsWith('.test.ts') && asks(text)).map(([path]) => path),
  );
}

async function readFolder(folder: string): Promise<Map<string, string>> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)),
  );
}

async function reach(sandbox: Sandbox, name: string): Promise<Reached> {
  const folder = await mkdtemp(join(sandbox.folder, 'coverage-'));
  const covered = await sandbox.runAlone(name, folder);
  const started = Date.now();
  const outcome = covered === 'passed' ? await sandbox.runTest(name, 60_000) : covered;
  const ms = Date.now() - started;
  if (outcome !== 'passed') throw new Error(`${name} ${outcome} without any mutant`);
  const sources = await readCoverage(folder, sandbox.folder);
  await rm(folder, { recursive: true });
  return { ms, sources };
}

/**
 * Runs each test file once that was not run yet as it and what it runs are now, and keeps what it reached.
 */
async function reachAll(
  sandbox: Sandbox,
  cache: string,
  texts: ReadonlyMap<string, string>,
  words: readonly string[],
) {
  const fileOf = (name: string) => join(cache, `${name}.json`);
  const read = async (name: string) =>
    JSON.parse(await readFile(fileOf(name), 'utf8').catch(() => '{"hashes":{}}')) as Kept;
  const hashOf = (path: string) =>
    createHash('sha256')
      .update(texts.get(path) ?? '')
      .digest('hex');
  await mkdir(cache, { recursive: true });
  const names = [...texts.keys()].flatMap((path) => path.match(/^test\/([^/]*\.test\.ts)$/)?.[1] ?? []);
  const chosen = names.filter((name) => TESTS.test(name) || words.some((word) => name.includes(word)));
  // In any order, so that two runs at the same time seldom run the same one.
  for (const name of [...chosen].sort(() => Math.random() - 0.5)) {
    const hashes = Object.entries((await read(name)).hashes);
    if (hashes.length > 0 && hashes.every(([path, hash]) => hash === hashOf(path))) continue;
    const reached = await reach(sandbox, name);
    process.stdout.write(`${name}: ${(reached.ms / 1000).toFixed(1)} s\n`);
    const ran = Object.keys(reached.sources).filter(
      (path) => isMutated(path) && reached.sources[path]?.length,
    );
    const kept = {
      ...reached,
      hashes: Object.fromEntries([`test/${name}`, ...ran].map((path) => [path, hashOf(path)])),
    };
    // Another run may read it meanwhile: it is there whole or not at all.
    await writeFile(`${fileOf(name)}.${process.pid}`, JSON.stringify(kept));
    await rename(`${fileOf(name)}.${process.pid}`, fileOf(name));
  }
  return Object.fromEntries(
    await Promise.all(chosen.map(async (name): Promise<[string, Reached]> => [name, await read(name)])),
  );
}

/**
 * Money is met by nearly all tests, and each survivor meets all that it is given: so no more than the
 * quickest, beside its own.
 */
function choose(path: string, tests: readonly { name: string; ms: number }[], longestMs: number): Reaching[] {
  const stem = path.replace(/^.*\/|(\.queries)?\.ts$/g, '');
  const named = tests.filter(({ name }) => name.startsWith(`${stem}.`));
  // Of SQL the tests of the statement, where it has some.
  const ofStatement = path.endsWith('queries.ts')
    ? named.filter(({ name }) => name.includes('.statement.'))
    : [];
  const own = tests.filter(({ name }) =>
    SUBJECTS.some(([source, subjects]) => source.test(path) && subjects.test(name)),
  );
  // The subject of tests that are named otherwise is theirs all the same.
  const first = [ofStatement, named, own].find(({ length }) => length > 0) ?? [];
  const rankOf = (test: (typeof tests)[number]) => (first.includes(test) ? 0 : own.includes(test) ? 1 : 2);
  let total = 0;
  return tests
    .map((test) => ({ ...test, rank: rankOf(test) }))
    .sort((one, other) => one.rank - other.rank || one.ms - other.ms)
    .filter(({ ms, rank }) => {
      const isGiven = rank === 0 || total + ms <= longestMs;
      if (isGiven && rank > 0) total += ms;
      return isGiven;
    })
    .map(({ name, ms, rank }) => ({ name, ms, isOwn: rank < 2 }));
}

/**
 * Finds out which tests reach what.
 * @param words of names of further test files to run
 * @param isThorough whether a mutant has to pass all that reach it, however long they take
 */
export async function selectTests(
  sandbox: Sandbox,
  cache: string,
  words: readonly string[],
  isThorough: boolean,
): Promise<Selection> {
  const [sources, tests] = [
    await readFolder(join(sandbox.folder, 'src')),
    await readFolder(join(sandbox.folder, 'test')),
  ];
  const texts = new Map([...sources].map(([name, text]) => [`src/${name}`, text]));
  const all = await reachAll(
    sandbox,
    cache,
    new Map([...texts, ...[...tests].map(([name, text]) => [`test/${name}`, text] as const)]),
    words,
  );
  return {
    testsOf({ path, start }) {
      const constant = constantAt(texts.get(path) ?? '', start);
      const places = [{ path, at: start }, ...(constant === undefined ? [] : usesOf(constant, texts))];
      const naming = constant === undefined ? new Set() : testsThatName(constant, tests);
      const known = Object.entries(all).map(([name, { ms, sources }]) => ({ name, ms, sources }));
      const reaching = known.filter(
        ({ name, sources }) =>
          naming.has(name) || places.some((place) => isReached(sources[place.path] ?? [], place.at)),
      );
      // What runs as a module is loaded runs in every test that loads it.
      const found =
        reaching.length > 0 || constant === undefined
          ? reaching
          : known.filter(({ sources }) => sources[path]);
      return choose(
        path,
        found.map(({ name, ms }) => ({ name, ms })),
        isThorough ? Number.POSITIVE_INFINITY : LONGEST_MS,
      );
    },
  };
}
