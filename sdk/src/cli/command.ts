import { parseArgs } from 'node:util';

/** Commands, their help, and how a command line is read. */

export const PROGRAM = 'scrip-client';

type Option = {
  /** The placeholder of the value in the help; absent for a flag. */
  readonly value?: string;
  readonly summary: string;
  readonly required?: boolean;
  readonly choices?: readonly string[];
};

type Options = Readonly<Record<string, Option>>;

/** A command line that was read. */
export type Line = {
  readonly args: readonly string[];
  text(name: string): string | undefined;
  has(name: string): boolean;
};

export type Command = {
  readonly name: string;
  /** The arguments: `[CODE]` may be left out, and of `FILE...` there may be several. */
  readonly args: readonly string[];
  readonly summary: string;
  /** More for the help of the command. */
  readonly details?: string;
  readonly options: Options;
  run(line: Line): Promise<void>;
};

/** A wrong command line: exit status 2. */
export class UsageError extends Error {}

/** Why a command fails, in one line: exit status 1. */
export class CommandError extends Error {}

export function wrongUsage(message: string): never {
  throw new UsageError(message);
}

export function fail(message: string): never {
  throw new CommandError(message);
}

/** Options of every command that calls the service. */
export const CONNECTION = {
  'base-url': { value: 'URL', summary: 'the address of the service (SCRIP_BASE_URL)' },
  variant: {
    value: 'a|b',
    summary: 'the variant of the interface (SCRIP_VARIANT; default: a)',
    choices: ['a', 'b'],
  },
  credentials: { value: 'FILE', summary: 'the file of credentials (SCRIP_CREDENTIALS)' },
  timeout: { value: 'SECONDS', summary: 'give up after this time, with all attempts' },
  json: { summary: 'print one JSON document on stdout, and nothing else' },
} satisfies Options;

const HELP: Options = { help: { summary: 'print this help' } };

/**
 * Reads the arguments of a command.
 * @throws UsageError, whose text contains no value: a mistyped argument may be a PIN
 */
export function readLine(command: Command, argv: readonly string[]): Line {
  const options = { ...command.options, ...HELP };
  const { values, positionals } = parse(options, argv);
  const line: Line = {
    args: positionals,
    text: (name) => {
      const value = values[name];
      return typeof value === 'string' ? value : undefined;
    },
    has: (name) => values[name] === true,
  };
  if (!line.has('help')) check(command, line);
  return line;
}

function parse(options: Options, argv: readonly string[]) {
  const types = Object.entries(options).map(
    ([name, { value }]) =>
      [name, { type: value === undefined ? ('boolean' as const) : ('string' as const) }] as const,
  );
  const known = { ...Object.fromEntries(types), help: { type: 'boolean' as const, short: 'h' } };
  try {
    return parseArgs({ args: [...argv], options: known, allowPositionals: true }) as {
      values: Record<string, string | boolean | undefined>;
      positionals: string[];
    };
  } catch (error) {
    throw new UsageError(explain(error, options));
  }
}

/** The parser's message repeats the arguments; only the name of an option is safe to repeat. */
function explain(error: unknown, options: Options): string {
  const { code, message } = error as { readonly code?: unknown; readonly message: string };
  const [option] = /--?[a-z][a-z-]*/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return `there is no option ${option ?? 'of this name'}`;
  if (code !== 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') return 'the arguments cannot be read';
  const { value } = options[option?.slice(2) ?? ''] ?? {};
  if (value === undefined) return `${option ?? 'an option'} takes no value`;
  return `${option} needs a value, ${value}, that does not begin with -`;
}

function check(command: Command, line: Line): void {
  const needed = command.args.filter((arg) => !arg.startsWith('[')).length;
  if (line.args.length < needed) wrongUsage(`${command.args[line.args.length]} is missing`);
  const isOpen = command.args.at(-1)?.endsWith('...') ?? false;
  if (line.args.length > command.args.length && !isOpen) wrongUsage('there is one argument too many');
  for (const [name, { required, choices }] of Object.entries(command.options)) {
    const text = line.text(name);
    if (required && text === undefined) wrongUsage(`--${name} is missing`);
    if (text !== undefined && choices && !choices.includes(text))
      wrongUsage(`--${name} must be one of ${choices.join(', ')}`);
  }
}

/** An amount, exact: more digits than a number holds are refused, not rounded. */
export function amountOf(line: Line, name: string): number | undefined {
  const text = line.text(name);
  if (text === undefined) return undefined;
  if (!/^\d{1,16}(\.\d{1,16})?$/.test(text)) wrongUsage(`--${name} must be an amount such as 20 or 12.50`);
  const plain = text
    .replace(/^0+(?=\d)/, '')
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');
  if (String(Number(text)) !== plain) wrongUsage(`--${name} has more digits than can be sent exactly`);
  return Number(text);
}

/** A whole number above zero. */
export function wholeOf(line: Line, name: string): number | undefined {
  const text = line.text(name);
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,14}$/.test(text)) wrongUsage(`--${name} must be a whole number above zero`);
  return Number(text);
}

/** A point in time; a day means its last moment in UTC. */
export function timeOf(line: Line, name: string): string | undefined {
  const text = line.text(name);
  if (text === undefined) return undefined;
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const full = isDay ? `${text}T23:59:59.999Z` : text;
  const time = new Date(/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(full) ? full : Number.NaN);
  // Date reads the 31st of April as the 1st of May.
  if (Number.isNaN(time.getTime()) || (isDay && time.toISOString() !== full))
    wrongUsage(`--${name} must be a day (2030-12-31) or a time with its zone (2030-12-31T12:00:00Z)`);
  return time.toISOString();
}

/** Rows of two columns, aligned. */
function aligned(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}

export function helpOf({ name, args, summary, details, options }: Command): string {
  const rows = Object.entries({ ...options, ...HELP }).map(
    ([option, { value, summary: text, required }]) =>
      [
        `--${option}${value === undefined ? '' : ` ${value}`}`,
        `${text}${required ? ' (required)' : ''}`,
      ] as const,
  );
  const head = `Usage: ${[PROGRAM, name, ...args].join(' ')} [options]`;
  const paragraphs = [head, summary, ...(details === undefined ? [] : [details])];
  return `${paragraphs.join('\n\n')}\n\nOptions:\n${aligned(rows).join('\n')}\n`;
}

export function helpOfAll(commands: readonly Command[], credentialsPath: string): string {
  return `Usage: ${PROGRAM} COMMAND [options]

The merchant's command line of Scrip.

Commands:
${aligned(commands.map(({ name, summary }) => [name, summary] as const)).join('\n')}

\`${PROGRAM} COMMAND --help\` prints the options of a command.

Credentials, from the environment or from lines NAME=value of a file:
  SCRIP_BASE_URL  the address of the service, such as https://vouchers.example.com
  SCRIP_KEY_ID    the id of your API key
  SCRIP_SECRET    its secret
  SCRIP_VARIANT   a or b (default: a)
  SCRIP_PORTAL_TOKEN  a token of the portal, for \`undo\`
The file is ${credentialsPath},
or the one that --credentials or SCRIP_CREDENTIALS names. It must have mode 600. The environment comes first.

Exit status:
  0    done
  1    refused, or failed without effect
  2    wrong usage
  3    unknown outcome: the request had its effect once or not at all; stderr says how to find out
  130  interrupted before it could have had an effect
`;
}
