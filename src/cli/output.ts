import Table from 'cli-table3';

/** Why a command fails, in one line for who typed it: printed as `scrip: …`, exit status 1. */
export class CommandError extends Error {}

/** Ends the command with a message. */
export function fail(message: string): never {
  throw new CommandError(message);
}

/** A word without a digit: no code, PIN or secret looks like it. */
const PLAIN_WORD = /^-{0,2}[A-Za-z][A-Za-z._-]{0,29}$/;

/**
 * What was typed, to be repeated in the message that refuses it: a word, and nothing that could be a code, a PIN or a secret. What
 * commands print ends up in the logs of who runs them.
 */
export function quoted(text: string): string {
  return PLAIN_WORD.test(text) ? `"${text}"` : 'this';
}

/** A message of the parser of command lines, which repeats whatever it does not know. */
export function withoutTyped(message: string): string {
  return message.replace(/(unknown (?:command|option)) '(.*)'/s, (_all, what: string, typed: string) => {
    const [name = ''] = typed.split('=');
    return PLAIN_WORD.test(name) ? `${what} '${name}'` : what;
  });
}

/** One JSON document on stdout, and nothing else. */
export function printJson(value: unknown): void {
  const text = JSON.stringify(value, (_key, each) => (typeof each === 'bigint' ? Number(each) : each), 2);
  process.stdout.write(`${text}\n`);
}

/** A table for people. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = new Table({ head: [...head], style: { head: [], border: [], compact: true } });
  for (const row of rows) table.push([...row]);
  process.stdout.write(`${table.toString()}\n`);
}

/** Name and value, a line each. */
export function printFields(fields: Readonly<Record<string, unknown>>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) {
    const text =
      value instanceof Date ? value.toISOString() : value === null || value === undefined ? '-' : String(value);
    process.stdout.write(`${name.padEnd(width)}  ${text}\n`);
  }
}
