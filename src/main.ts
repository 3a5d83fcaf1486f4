import { CommanderError } from 'commander';
import { explainFile } from './cli/file.ts';
import { CommandError, interruption, readable, STATUS, toJson, withoutValues } from './cli/output.ts';
import { endOnSignal } from './cli/signals.ts';
import { StartError } from './db/errors.ts';
import { Problem } from './problem.ts';
import { Refusal } from './refusal.ts';

// If the reader closes the pipe (`scrip batch list | head`) or the terminal, that is not an error. A service
// in that terminal still has to shut down in order. A broken pipe of the database has the same code, so what
// broke the output is remembered.
const ofOutput = new WeakSet<Error>();
for (const stream of [process.stdout, process.stderr]) {
  let isLost = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    ofOutput.add(error);
    if (error.code === 'EPIPE' || error.code === 'EIO' || isLost) return;
    isLost = true;
    // The output is lost, perhaps after a change was made. The command first closes what it has opened.
    const message = `the output cannot be written (${error.code})`;
    process.once('exit', () => {
      process.stderr.write(`${textOf('unknown', message)}\n`);
      process.exitCode = STATUS.unknown;
    });
  });
}

/** A damaged page or index of the database. */
const DAMAGED = new Set(['XX001', 'XX002']);

// Without a handler, this signal opens Node's debugger: a port through which every account of the machine
// could run code in this process, with access to its keys. Log rotation often sends the signal.
process.on('SIGUSR1', () => {});
endOnSignal(async () => {
  process.exitCode = await report(interruption());
  process.exit();
});

try {
  const { createProgram } = await import('./cli/program.ts');
  await (await createProgram(process.argv[2])).parseAsync();
} catch (error) {
  process.exitCode = await report(error);
  // Abandoned work must not keep the process alive.
  if (process.exitCode === STATUS.unknown || process.exitCode === STATUS.interrupted) process.exit();
}

/** Prints why a command failed: a line, or a document with `--json`. @returns the exit status */
async function report(error: unknown): Promise<number> {
  if (error instanceof Error && ofOutput.has(error)) return 0;
  // The help and the version also end a command.
  if (error instanceof CommanderError && error.code.startsWith('commander.help'))
    return error.exitCode && STATUS.usage;
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  const { code, message, status } = await describe(error);
  process.stderr.write(`${textOf(code, message)}\n`);
  return status;
}

function textOf(code: string, message: string): string {
  return process.argv.includes('--json') ? toJson({ error: { code, message } }) : `scrip: ${message}`;
}

/**
 * Describes a problem in terms of the command line. Fields of an operation are options of its command, whose
 * names may be shorter: `expiresAt` is refused as `--expires`, and an item of `roles` as `--role`.
 */
function describeProblem({ code, message, errors }: Problem): {
  code: string;
  message: string;
  status: number;
} {
  const [first] = errors ?? [];
  if (code !== 'invalid' || !first) return { code, message: readable(message), status: STATUS.failed };
  const name = `--${first.field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const given = process.argv.map((each) => each.replace(/=.*/s, ''));
  const [option = name] = given
    .filter((each) => each.length > '--'.length && name.startsWith(each))
    .sort((one, other) => other.length - one.length);
  return { code: 'usage', message: readable(`${option} ${first.message}`), status: STATUS.usage };
}

async function describe(error: unknown): Promise<{ code: string; message: string; status: number }> {
  if (error instanceof CommandError) return { ...error, message: readable(error.message) };
  if (error instanceof CommanderError) {
    const message = withoutValues(error.message.replace(/^error: /, '')).replaceAll('\n', ' ');
    return { code: 'usage', message, status: STATUS.usage };
  }
  const status = STATUS.failed;
  if (error instanceof StartError)
    return { code: 'not-started', message: error.message, status: STATUS.notStarted };
  if (error instanceof Problem) return describeProblem(error);
  if (error instanceof Refusal) return { code: error.code, message: readable(error.message), status };
  const { isUnavailable, nodeOf, refusalOf, sqlState } = await import('./db/errors.ts');
  if (isUnavailable(error)) {
    const node = nodeOf(error);
    // With a state, the database did answer: a statement took too long, or it has no connection left.
    const what =
      node !== undefined
        ? `node ${node} cannot be reached`
        : sqlState(error) === undefined
          ? 'cannot be reached'
          : refusalOf(error);
    return {
      code: 'unavailable',
      message: `the database ${what}: ${readable((error as Error).message)}`,
      status: STATUS.unavailable,
    };
  }
  const state = sqlState(error);
  if (state !== undefined && DAMAGED.has(state))
    return {
      code: 'failed',
      message: `the database is damaged (docs/how-to/disaster.md): ${readable((error as Error).message)}`,
      status,
    };
  const ofFile = error instanceof Error ? explainFile(error) : undefined;
  if (ofFile !== undefined) return { code: 'failed', message: readable(ofFile), status };
  // A bug: the stack trace is useful.
  const message = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  return { code: 'internal', message, status: STATUS.internal };
}
