/**
 * A process that runs test files in itself, one after the other, as its parent asks. All that belongs to
 * the project is loaded anew for each, as its file is at that moment; only packages stay. So a mutant
 * costs no start of a process: that, and loading the packages, was most of its time.
 */
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runFile } from './plain-test.ts';

export type Asked = { readonly name: string };
/** `stray` where the failure may be what a test before this one left behind. */
export type Told = { readonly passed: boolean; readonly stray?: boolean; readonly error?: string };

const ROOT = new URL('../', import.meta.url).href;
const OWN = ['src/', 'test/'].map((folder) => ROOT + folder);
/** What a test that failed gets to clear away; a process of its own would end there. */
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
 * What nobody waited for failed: a failure as well, of whichever test, and nothing that follows would be
 * sound.
 */
function fail(error: unknown): void {
  process.send?.({ passed: false, stray: true, error: textOf(error) } satisfies Told, () => process.exit(1));
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

let turn = 0;

process.on('message', async ({ name }: Asked) => {
  const url = `${pathToFileURL(join(fileURLToPath(ROOT), 'test', name)).href}?turn=${++turn}`;
  let giveUp: NodeJS.Timeout | undefined;
  const onFailure = () => {
    giveUp ??= setTimeout(() => process.exit(1), CLEARING_MS);
  };
  let told: Told;
  try {
    const count = await runFile(() => import(url), onFailure);
    told = count > 0 ? { passed: true } : { passed: false, error: 'no test' };
  } catch (error) {
    told = { passed: false, error: textOf(error) };
  }
  clearTimeout(giveUp);
  process.send?.(told);
});
