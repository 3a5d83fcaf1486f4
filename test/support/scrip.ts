import { type ChildProcess, execFile, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Order } from './scrip.child.ts';

/** The program. */
export const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const CHILD = fileURLToPath(new URL('./scrip.child.ts', import.meta.url));

/** The environment that each process gets. Apart from the drain, all settings have their defaults. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  SCRIP_DRAIN_SECONDS: '0',
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
};

/** Enough for a batch of thousands, printed as JSON. */
const OUTPUT_MAX_BYTES = 64 * 1024 * 1024;

/** A part of a word, or a list of words. */
type Value = string | number | bigint | readonly string[];
/** A command line: its words, or as it is typed. */
export type CommandLine = readonly string[] | [TemplateStringsArray, ...Value[]];

/** The words of a command line as it is typed. A value stays whole, whatever it holds. */
export function typed(text: TemplateStringsArray, ...values: Value[]): string[] {
  const line = text.reduce((all, part, at) => `${all}\0${at - 1}\0${part}`);
  return line.split(/\s+/).flatMap((word): string | readonly string[] => {
    const [, whole] = /^\0(\d+)\0$/.exec(word) ?? [];
    const value = values[Number(whole)];
    if (typeof value === 'object') return value;
    return word === '' ? [] : word.replaceAll(/\0(\d+)\0/g, (_, at) => String(values[Number(at)]));
  });
}

/** The words of a command line, however it is given. */
export function wordsOf(line: CommandLine): readonly string[] {
  const [first, ...rest] = line;
  return typeof first === 'object' ? typed(first, ...rest) : (line as readonly string[]);
}

export type Ran = { readonly status: number; readonly out: string; readonly err: string };

/** A command in a process of its own, and what it has printed so far. */
export type Started = {
  readonly child: ChildProcess;
  readonly printed: { readonly out: string; readonly err: string };
  readonly ended: Promise<Ran>;
};

/**
 * Starts a command in a process of its own.
 * @param settings in addition to those that every process gets
 * @param by a program that runs the command, with its arguments
 */
export function startScrip(
  settings: Readonly<Record<string, string>>,
  args: readonly string[],
  by: readonly string[] = [],
): Started {
  const { promise: ended, resolve } = Promise.withResolvers<Ran>();
  const [program = '', ...rest] = [...by, process.execPath, MAIN, ...args];
  const options = { env: { ...ENVIRONMENT, ...settings }, maxBuffer: OUTPUT_MAX_BYTES };
  const child = execFile(program, rest, options, (error, out, err) => {
    resolve({ status: error ? Number(error.code) : 0, out, err });
  });
  const printed = { out: '', err: '' };
  for (const [stream, name] of [
    [child.stdout, 'out'],
    [child.stderr, 'err'],
  ] as const)
    stream?.on('data', (text: string) => {
      printed[name] += text;
    });
  return { child, printed, ended };
}

/** Processes that have run a command, and wait for the next one. */
const idle: ChildProcess[] = [];

/** Runs a command to its end, in a process that may have run others. */
export async function runScrip(
  settings: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<Ran> {
  const child = idle.pop() ?? startChild();
  keepWaiting(child, true);
  const order: Order = { env: { ...ENVIRONMENT, ...settings }, args, end: randomUUID() };
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  // A command may end its process.
  child.once('message', resolve).once('close', resolve);
  const printed = Promise.all([child.stdout, child.stderr].map((stream) => readTo(stream, order.end)));
  child.send(order);
  const [out = '', err = ''] = await printed;
  const status = await ended;
  child.off('message', resolve).off('close', resolve);
  if (child.connected) {
    keepWaiting(child, false);
    idle.push(child);
  }
  return { status, out, err };
}

function startChild(): ChildProcess {
  const options = { env: ENVIRONMENT, execArgv: [], silent: true };
  const child = fork(CHILD, [], options);
  child.stdout?.setEncoding('utf8');
  child.stderr?.setEncoding('utf8');
  return child;
}

/** An idle process does not keep a test from ending, and ends with it. */
function keepWaiting(child: ChildProcess, wait: boolean): void {
  for (const each of [child, child.channel, child.stdout as Socket, child.stderr as Socket])
    if (wait) each?.ref();
    else each?.unref();
}

/** Reads a stream up to an end mark, or until it closes. */
async function readTo(stream: ChildProcess['stdout'], end: string): Promise<string> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let text = '';
  const add = (more: string) => {
    text += more;
    if (text.endsWith(end)) resolve();
  };
  stream?.on('data', add).once('close', resolve);
  await ended;
  stream?.off('data', add).off('close', resolve);
  return text.endsWith(end) ? text.slice(0, -end.length) : text;
}
