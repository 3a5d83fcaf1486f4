import Table from 'cli-table3';
import { isOutcomeUnknown } from '../db/errors.ts';
import { decimalsOf } from '../money.ts';

/** Prints the output of commands: results to stdout, everything else to stderr. */

/**
 * The exit statuses other than 0 (docs/reference/commands.md), one for each reaction that a script may
 * need. With `--json`, the `code` contains the reason why a request failed.
 */
export const STATUS = {
  failed: 1,
  usage: 2,
  unknown: 3,
  unavailable: 4,
  notStarted: 5,
  internal: 6,
  interrupted: 130,
} as const;

/**
 * The reason why a command fails, in one line: printed as `scrip: …`, or as a JSON document with `--json`.
 */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly code: string;
  readonly status: number;

  constructor(message: string, code = 'failed', status: number = STATUS.failed) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/** Ends the command: the request cannot be fulfilled. */
export function fail(message: string, code?: string): never {
  throw new CommandError(message, code);
}

/** Ends the command: its subject does not exist. */
export function notFound(what: string): never {
  throw new CommandError(`there is no ${what}`, 'not-found');
}

/** Ends the command: the command line is wrong. */
export function wrongUsage(message: string): never {
  throw new CommandError(message, 'usage', STATUS.usage);
}

/** The error of a command that a signal stopped before it changed anything. */
export const interruption = (message = 'interrupted: nothing was changed') =>
  new CommandError(message, 'interrupted', STATUS.interrupted);

/** Ends the command: a signal stopped it before it changed anything. */
export function interrupted(message?: string): never {
  throw interruption(message);
}

/** The error of a command that the database, or something else that it needs, cannot serve now. */
export const unavailable = (message: string) => new CommandError(message, 'unavailable', STATUS.unavailable);

/** Matches a word without digits, which cannot be a code, a PIN or a secret. */
const PLAIN_WORD = /^-{0,2}[A-Za-z][A-Za-z._-]{0,29}$/;

/** Returns a message of the command line parser without the values that it repeats. */
export function withoutValues(message: string): string {
  return message.replace(/(unknown (?:command|option)) '(.*)'/s, (_all, what: string, typed: string) => {
    const [name = ''] = typed.split('=');
    return PLAIN_WORD.test(name) ? `${what} '${name}'` : what;
  });
}

/**
 * Joiners and variation selectors, and the characters that may precede them: emoji, and the letters of some
 * scripts.
 */
const JOINER = String.raw`(?:[\u200c\u200d]|[\ufe0e\ufe0f])`;
const JOINED = String.raw`[\p{Extended_Pictographic}\p{Emoji_Modifier}\p{sc=Arab}\p{sc=Deva}\p{sc=Beng}\p{M}]`;
/**
 * Control characters (terminals obey those above 7F too), direction marks, zero-width characters, fillers,
 * line separators.
 */
const UNSEEN = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]`;

/** Matches characters that a reader cannot see, or that change how others are read. */
export const INVISIBLE = new RegExp(`(?<!${JOINED})${JOINER}|(?!${JOINER})${UNSEEN}`, 'gu');

const escapeOf = (character: string) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/** Escapes the invisible characters of external text, so that one text cannot look like another. */
export function readable(text: string): string {
  return text.replace(INVISIBLE, escapeOf);
}

/** Prints one JSON document to stdout. Internal numeric ids are strings of digits. */
export function printJson(value: unknown): void {
  process.stdout.write(`${toJson(value, 2)}\n`);
}

/** Formats JSON with escapes for invisible characters. */
export function toJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(
    value,
    (_key, each) => (typeof each === 'bigint' ? String(each) : each),
    indent,
  );
  const escaped = (character: string) =>
    Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join('');
  return text.replace(INVISIBLE, (character) => (character === '\n' ? character : escaped(character)));
}

/** Prints a line for people to stdout. */
export function say(text: string): void {
  process.stdout.write(`${readable(text)}\n`);
}

/** Formats a number with its noun: `1 voucher`, `2 vouchers`, `2 entries`, `2 days`. */
export function numberOf(number: number, noun: string): string {
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${number} ${number === 1 ? noun : plural}`;
}

/** A cell of a table, with one line or several. */
type Cell = string | readonly string[];

/** The maximum width of a table, on any terminal. */
const COLUMNS_MAX = 120;
const COLUMNS_MIN = 40;
/** The minimum width of a shortened column. */
const SHORTENED_MIN = 12;

function columns(): number {
  const own = process.stdout.isTTY ? process.stdout.columns : COLUMNS_MAX;
  return Math.max(COLUMNS_MIN, Math.min(COLUMNS_MAX, own || COLUMNS_MAX));
}

/**
 * Prints a table for people, no wider than the terminal. If it is too wide, the given columns are shortened.
 * If that is not enough, each row becomes a list of names and values.
 * @param shorten names of columns whose text may be cut; JSON contains the full text
 */
export function printTable(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  shorten: readonly string[] = [],
): void {
  const texts = rows.map((row) => row.map(cellText));
  const most = columns();
  const widths = widthsOf(render(head, texts));
  const total = () => widths.reduce((sum, width) => sum + width + 1, 1);
  for (;;) {
    const [widest] = head
      .map((name, at) => ({ at, width: shorten.includes(name) ? (widths[at] ?? 0) : 0 }))
      .sort((one, other) => other.width - one.width);
    if (!widest || total() <= most || widest.width <= SHORTENED_MIN) break;
    widths[widest.at] = Math.max(SHORTENED_MIN, widest.width - (total() - most));
  }
  if (total() <= most) process.stdout.write(`${render(head, texts, widths)}\n`);
  else if (texts.length === 0) process.stdout.write('no rows\n');
  else for (const row of texts) printRecord(head, row, most);
}

const cellText = (cell: Cell) => (typeof cell === 'string' ? readable(cell) : cell.map(readable).join('\n'));

function render(head: readonly string[], rows: readonly (readonly string[])[], colWidths?: number[]): string {
  const style = { head: [], border: [], compact: true };
  const table = new Table({ head: [...head], style, ...(colWidths && { colWidths }) });
  for (const row of rows) table.push([...row]);
  return table.toString();
}

/** Returns the widths of the columns from the upper border. */
function widthsOf(table: string): number[] {
  const [border = ''] = table.split('\n');
  return border
    .slice(1, -1)
    .split('┬')
    .map(({ length }) => length);
}

function printRecord(head: readonly string[], row: readonly string[], most: number): void {
  const width = Math.max(...head.map(({ length }) => length));
  const lines = head.flatMap((name, at) =>
    (row[at] ?? '')
      .split('\n')
      .flatMap((line) => wrap(line, most - width - 2))
      .map((line, index) => `${(index === 0 ? name : '').padEnd(width)}  ${line}`.trimEnd()),
  );
  process.stdout.write(`${'─'.repeat(Math.min(most, 40))}\n${lines.join('\n')}\n`);
}

/** Cuts a line that is too long, at a space if there is one. */
export function wrap(line: string, width: number): string[] {
  const characters = [...line];
  if (characters.length <= width) return [line];
  const space = characters.slice(0, width + 1).lastIndexOf(' ');
  const end = space > width / 2 ? space : width;
  const rest = characters.slice(end).join('').trimStart();
  return [characters.slice(0, end).join(''), ...wrap(rest, width)];
}

/** Prints names and values, one per line. */
export function printFields(fields: Readonly<Record<string, unknown>>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) say(`${name.padEnd(width)}  ${fieldText(value)}`);
}

function fieldText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (value === null || value === undefined) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value);
}

/** Prints a secret that cannot be shown again. */
export function printSecret(made: object, isJson: boolean | undefined): void {
  if (isJson) {
    printJson(made);
    return;
  }
  printFields({ ...made });
  say('The secret is not shown again.');
}

/** Explains the outcome. @throws CommandError if a lost connection leaves it unknown; otherwise the error */
export function explainOutcome(error: unknown, check?: string): never {
  if (isOutcomeUnknown(error)) unknownOutcome('the connection to the database was lost', check);
  throw error;
}

/** Ends the command: it is unknown whether its change was made. */
export function unknownOutcome(
  reason: string,
  check = '`scrip audit list` shows the changes that were made',
): never {
  throw new CommandError(
    `unknown whether the change was made, since ${reason}: ${check}`,
    'unknown',
    STATUS.unknown,
  );
}

/** Formats an amount in major units, with the decimals of its currency. */
export function amountText(amount: number, currency: string): string {
  return amount.toFixed(decimalsOf(currency) ?? 2);
}
