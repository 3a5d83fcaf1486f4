/**
 * The part of `node:test` that the tests use, for a process that runs many test files: the original runs a
 * file once, and then its process ends. As there, a test fails when it throws. The first failure ends the
 * run, since it is enough to kill a mutant.
 */
/** Of the original, which the import of the tests does not lead to. */
const { mock } = process.getBuiltinModule('node:test');

type Context = {
  readonly signal: AbortSignal;
  readonly name: string;
  readonly mock: typeof mock;
  after(hook: Hook): void;
  test(name: string, run: Run): Promise<void>;
  diagnostic(message: string): void;
};
type Run = (context: Context) => unknown;
type Hook = () => unknown;
type Options = { readonly skip?: boolean | string | undefined };
type Suite = {
  readonly before: Hook[];
  readonly beforeEach: Run[];
  readonly after: Hook[];
  readonly parts: (Suite | { readonly name: string; readonly run: Run })[];
};

const newSuite = (): Suite => ({ before: [], beforeEach: [], after: [], parts: [] });
let current = newSuite();

type Declared = [name: string, run: Run] | [name: string, options: Options, run: Run];

export function test(...declared: Declared): void {
  const [name, options, run] = declared.length === 3 ? declared : [declared[0], {}, declared[1]];
  if (!options.skip) current.parts.push({ name, run });
}

export function describe(_name: string, body: () => void): void {
  const outer = current;
  current = newSuite();
  outer.parts.push(current);
  try {
    body();
  } finally {
    current = outer;
  }
}

export const it: typeof test = (...declared) => test(...declared);
export const before = (hook: Hook): unknown => current.before.push(hook);
export const beforeEach = (hook: Run): unknown => current.beforeEach.push(hook);
export const after = (hook: Hook): unknown => current.after.push(hook);

/** Runs all hooks in order, also after one has failed. Throws the first error at the end. */
async function runAll(hooks: readonly Hook[]): Promise<void> {
  const errors: unknown[] = [];
  for (const hook of hooks)
    await Promise.resolve()
      .then(hook)
      .catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

async function runTest(
  name: string,
  run: Run,
  onFailure: () => void,
  beforeEach: readonly Run[] = [],
): Promise<void> {
  const afterwards: Hook[] = [];
  const abort = new AbortController();
  const after = (hook: Hook) => void afterwards.push(hook);
  const context: Context = {
    name,
    mock,
    signal: abort.signal,
    after,
    test: (part, runPart) => runTest(part, runPart, onFailure),
    diagnostic: () => {},
  };
  try {
    for (const hook of beforeEach) await hook(context);
    await run(context);
  } catch (error) {
    onFailure();
    throw error;
  } finally {
    abort.abort();
    await runAll(afterwards);
    mock.reset();
  }
}

async function runSuite(suite: Suite, outer: readonly Run[], onFailure: () => void): Promise<void> {
  const beforeEach = [...outer, ...suite.beforeEach];
  try {
    for (const hook of suite.before) await hook();
    for (const part of suite.parts) {
      if ('parts' in part) await runSuite(part, beforeEach, onFailure);
      else await runTest(part.name, part.run, onFailure, beforeEach);
    }
  } catch (error) {
    onFailure();
    throw error;
  } finally {
    await runAll(suite.after);
  }
}

/**
 * Runs the tests of a file up to the first failure, which is thrown after the hooks have run.
 * @param load imports the file
 * @param onFailure is called at the failure, before the hooks
 * @returns the number of tests
 */
export async function runFile(load: () => Promise<unknown>, onFailure: () => void): Promise<number> {
  current = newSuite();
  const all = current;
  const count = ({ parts }: Suite): number =>
    parts.reduce((sum, part) => sum + ('parts' in part ? count(part) : 1), 0);
  try {
    await load();
  } catch (error) {
    onFailure();
    throw error;
  }
  await runSuite(all, [], onFailure);
  return count(all);
}
