import { readFileSync } from 'node:fs';
import { ScripError, UnknownOutcomeError } from '../errors.ts';
import { DOWNLOAD, GENERATE } from './batches.ts';
import { type Command, CommandError, helpOf, helpOfAll, PROGRAM, readLine, UsageError } from './command.ts';
import { PROVE } from './prove.ts';
import { REVERSE, TRANSACTION, TRANSACTIONS, UNDO, UPDATE, UPDATED } from './redemptions.ts';
import { credentialsPath, listenForStop } from './session.ts';
import { clean, hasWritten, Interrupted, printJson, say } from './terminal.ts';
import { ACTIVATE, BALANCE, REDEEM } from './vouchers.ts';
import { LISTEN, TRIGGER } from './webhooks.ts';

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
  UNDO,
  UPDATED,
  TRANSACTION,
  TRANSACTIONS,
  LISTEN,
  TRIGGER,
  PROVE,
];

// A reader that closes the pipe early (`… | head`) is not an error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
}

async function main([name, ...rest]: readonly string[]): Promise<number> {
  if (name === '--version') {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    process.stdout.write(`${(JSON.parse(text) as { version: string }).version}\n`);
    return 0;
  }
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    (name === undefined ? process.stderr : process.stdout).write(helpOfAll(COMMANDS, credentialsPath()));
    return name === undefined ? WRONG_USAGE : 0;
  }
  const command = COMMANDS.find((each) => each.name === name);
  if (!command) {
    // The argument is not repeated: it may be a code.
    say(`${PROGRAM}: there is no such command (see ${PROGRAM} --help)`);
    return WRONG_USAGE;
  }
  try {
    const line = readLine(command, rest);
    if (line.has('help')) process.stdout.write(helpOf(command));
    else {
      listenForStop();
      await command.run(line);
    }
    return 0;
  } catch (error) {
    return report(error, rest.includes('--json'), command);
  }
}

async function report(error: unknown, isJson: boolean, command: Command): Promise<number> {
  if (error instanceof UsageError) {
    say(`${PROGRAM} ${command.name}: ${error.message} (see ${PROGRAM} ${command.name} --help)`);
    return WRONG_USAGE;
  }
  if (error instanceof Interrupted) return INTERRUPTED;
  if (!(error instanceof ScripError)) {
    const isBug = error instanceof Error && !(error instanceof CommandError);
    say(`${PROGRAM}: ${isBug ? error.stack : clean(String((error as Error).message))}`);
    return FAILED;
  }
  if (isJson && !hasWritten()) await printJson({ error: error.toJSON() });
  say(`${PROGRAM}: ${clean(error.message)}`);
  for (const { field, message } of error.fieldErrors)
    if (!error.message.includes(message)) say(`  ${clean(field)} ${clean(message)}`);
  if (error instanceof UnknownOutcomeError) {
    sayUnknown(error, command);
    return UNKNOWN_OUTCOME;
  }
  if (error.code === 'aborted') return INTERRUPTED;
  if (error.update) {
    const { originalAmount, newAmount } = error.update.summary;
    say(`  it was changed before, from ${originalAmount} to ${newAmount}; nothing was changed now`);
  }
  if (error.requestId !== null) say(`  request id ${clean(error.requestId)}`);
  if ([REDEEM, BALANCE, ACTIVATE].includes(command))
    say(`  for the customer: ${error.userMessage(userLanguage())}`);
  return FAILED;
}

/** Prints how to find the outcome out, so that no customer pays twice. */
function sayUnknown({ reference }: UnknownOutcomeError, command: Command): void {
  const isUpdate = command === UPDATE || command === REVERSE;
  const lookup = command === GENERATE ? 'download' : isUpdate ? 'updated' : 'transaction';
  const how = isUpdate ? '' : ` with --reference ${clean(reference)}`;
  say(`  reference ${clean(reference)}
  The request had its effect once, or not at all. To find out, and to have it done if it was not,
  run the same command again${how}: it cannot happen twice.
  To look only: ${PROGRAM} ${lookup} ${clean(reference)}`);
  if (command === REDEEM) say(`  To give it up: ${PROGRAM} undo ${clean(reference)}`);
}

function userLanguage(): string {
  const { LC_ALL, LC_MESSAGES, LANG } = process.env;
  const [tag = ''] = (LC_ALL || LC_MESSAGES || LANG || '').split('.');
  return /^[a-z]{2}/.test(tag) ? tag : 'en';
}

process.exitCode = await main(process.argv.slice(2));
