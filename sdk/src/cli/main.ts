import { readFileSync } from 'node:fs';
import { ScripError, UnknownOutcomeError } from '../errors.ts';
import { DOWNLOAD, GENERATE } from './batches.ts';
import { listenForStop } from './client.ts';
import { type Command, CommandError, readLine, UsageError } from './command.ts';
import { completionCommand } from './completion.ts';
import { CONFORMANCE } from './conformance.ts';
import { usualPath } from './credentials.ts';
import { helpOf, helpOfAll, PROGRAM } from './help.ts';
import { clean, hasWritten, printJson, say } from './output.ts';
import { Interrupted } from './prompt.ts';
import { REVERSE, TRANSACTION, TRANSACTIONS, UPDATE, UPDATED } from './redemptions.ts';
import { ACTIVATE, BALANCE, REDEEM } from './vouchers.ts';

const FAILED = 1;
const WRONG_USAGE = 2;
const UNKNOWN_OUTCOME = 3;
const INTERRUPTED = 130;

const COMMANDS: readonly Command[] = [
  GENERATE,
  DOWNLOAD,
  BALANCE,
  REDEEM,
  ACTIVATE,
  UPDATE,
  REVERSE,
  UPDATED,
  TRANSACTION,
  TRANSACTIONS,
  CONFORMANCE,
  completionCommand(() => COMMANDS),
];

// A reader that has seen enough (`… | head`) is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function main(argv: readonly string[]): Promise<number> {
  const [name, ...rest] = argv;
  if (name === '--version') {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  if (name === '--help' || name === '-h' || name === 'help' || name === undefined) {
    const text = helpOfAll(COMMANDS, usualPath());
    (name === undefined ? process.stderr : process.stdout).write(text);
    return name === undefined ? WRONG_USAGE : 0;
  }
  const command = COMMANDS.find((each) => each.name === name);
  if (!command) {
    // What was typed is not repeated: it may be a code that belongs elsewhere.
    say(`${PROGRAM}: there is no such command (try --help)`);
    return WRONG_USAGE;
  }
  try {
    const line = readLine(command, rest);
    if (line.has('help')) process.stdout.write(helpOf(command));
    else {
      listenForStop();
      await command.run(line);
    }
    return typeof process.exitCode === 'number' ? process.exitCode : 0;
  } catch (error) {
    return tell(error, rest.includes('--json'), command);
  }
}

async function tell(error: unknown, isJson: boolean, command: Command): Promise<number> {
  if (error instanceof UsageError) {
    say(`${PROGRAM} ${command.name}: ${error.message} (try --help)`);
    return WRONG_USAGE;
  }
  if (error instanceof Interrupted) return INTERRUPTED;
  if (!(error instanceof ScripError)) {
    const isKnown = error instanceof CommandError;
    say(`${PROGRAM}: ${isKnown || !(error instanceof Error) ? clean(String((error as Error).message)) : error.stack}`);
    return FAILED;
  }
  if (isJson && !hasWritten()) await printJson({ error: error.toJSON() });
  say(`${PROGRAM}: ${clean(error.message)}`);
  for (const { field, message } of error.fieldErrors) {
    if (!error.message.includes(message)) say(`  ${clean(field)} ${clean(message)}`);
  }
  if (error instanceof UnknownOutcomeError) {
    sayUnknown(error, command);
    return UNKNOWN_OUTCOME;
  }
  if (error.code === 'aborted') return INTERRUPTED;
  if (error.update) {
    const { originalAmount, newAmount } = error.update.summary;
    say(`  it was changed before: from ${originalAmount} to ${newAmount}, and nothing was changed now`);
  }
  if (error.requestId !== null) say(`  request id ${clean(error.requestId)}`);
  if (command === REDEEM || command === BALANCE || command === ACTIVATE) {
    say(`  for the customer: ${error.userMessage(languageOfUser())}`);
  }
  return FAILED;
}

/** What to do, so that nobody pays twice. */
function sayUnknown({ reference }: UnknownOutcomeError, command: Command): void {
  const isUpdate = command === UPDATE || command === REVERSE;
  const look = command === GENERATE ? 'download' : isUpdate ? 'updated' : 'transaction';
  say(
    [
      `  reference ${clean(reference)}`,
      '  it has happened once, or not at all. To find out, and to have it done if it was not:',
      `    the same command again${isUpdate ? '' : `, with --reference ${clean(reference)}`}: it cannot happen twice`,
      '  or to look only:',
      `    ${PROGRAM} ${look} ${clean(reference)}`,
    ].join('\n'),
  );
}

function languageOfUser(): string {
  const { LC_ALL, LC_MESSAGES, LANG } = process.env;
  const [tag = ''] = (LC_ALL || LC_MESSAGES || LANG || '').split('.');
  return /^[a-z]{2}/.test(tag) ? tag : 'en';
}

process.exitCode = await main(process.argv.slice(2));
