/**
 * A process that runs test files for its parent, one after the other. The modules of the project are loaded
 * again for each test file, packages only once. This saves the start of a process and the loading of
 * packages, which were most of the time of a mutant.
 */
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runFile } from './plain-test.ts';

export type TestRequest = { readonly name: string };
/** `stray` if the failure may come from an earlier test. */
export type TestResult = { readonly passed: boolean; readonly stray?: boolean; readonly error?: string };

const ROOT = new URL('../', import.meta.url).href;
/** The folders that are loaded again, by SCRIP_MUTATION_RELOADS. */
const OWN = (process.env['SCRIP_MUTATION_RELOADS'] ?? 'src/ test/').split(' ').map((folder) => ROOT + folder);
/** The time for the hooks of a failed test. After it, the process exits. */
const CLEARING_MS = 2_000;

const stripped = new Map<string, { readonly text: string; readonly code: string }>();

/** The code of a file, without its types. */
function codeOf(path: string): string {
  const text = readFileSync(path, 'utf8');
  const known = stripped.get(path);
  if (known?.text === text) return known.code;
  const code = stripTypeScriptTypes(text);
  stripped.set(path, { text, code });
  return code;
}

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === 'node:test') return next(new URL('plain-test.ts', import.meta.url).href, context);
    const resolved = next(specifier, context);
    const turn = context.parentURL?.match(/\?turn=\d+$/)?.[0];
    const isOwn = OWN.some((folder) => resolved.url.startsWith(folder)) && !resolved.url.includes('?');
    return turn && isOwn ? { ...resolved, url: resolved.url + turn } : resolved;
  },
  load(url, context, next) {
    if (!/\.ts\?turn=\d+$/.test(url)) return next(url, context);
    return { format: 'module', source: codeOf(fileURLToPath(url)), shortCircuit: true };
  },
});

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/**
 * Reports an unhandled error. It may come from an earlier test, and later results would be unreliable, so the
 * process exits.
 */
function fail(error: unknown): void {
  process.send?.({ passed: false, stray: true, error: textOf(error) } satisfies TestResult, () =>
    process.exit(1),
  );
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

let turn = 0;

process.on('message', async ({ name }: TestRequest) => {
  const url = `${pathToFileURL(join(fileURLToPath(ROOT), 'test', name)).href}?turn=${++turn}`;
  let giveUp: NodeJS.Timeout | undefined;
  const onFailure = () => {
    giveUp ??= setTimeout(() => process.exit(1), CLEARING_MS);
  };
  let result: TestResult;
  try {
    const count = await runFile(() => import(url), onFailure);
    result = count > 0 ? { passed: true } : { passed: false, error: 'no test' };
  } catch (error) {
    result = { passed: false, error: textOf(error) };
  }
  clearTimeout(giveUp);
  process.send?.(result);
});
