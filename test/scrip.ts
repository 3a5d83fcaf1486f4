import { type ChildProcess, execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The program, in a process of its own. */
export const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** What each process gets of the environment, which is no setting of the service. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
};

/** A batch of thousands, printed as JSON. */
const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

export type Ran = { readonly status: number; readonly out: string; readonly err: string };

/**
 * Starts a command.
 * @param settings beside those that every process gets
 * @param by a program that runs it, with its arguments
 */
export function startScrip(
  settings: Readonly<Record<string, string>>,
  args: readonly string[],
  by: readonly string[] = [],
): { child: ChildProcess; ended: Promise<Ran> } {
  const { promise: ended, resolve } = Promise.withResolvers<Ran>();
  const [program = '', ...rest] = [...by, process.execPath, MAIN, ...args];
  const options = { env: { ...ENVIRONMENT, ...settings }, maxBuffer: OUTPUT_MAX_BYTES };
  const child = execFile(program, rest, options, (error, out, err) => {
    resolve({ status: error ? Number(error.code) : 0, out, err });
  });
  return { child, ended };
}

/** Runs a command to its end. */
export const runScrip = (settings: Readonly<Record<string, string>>, ...args: readonly string[]) =>
  startScrip(settings, args).ended;
