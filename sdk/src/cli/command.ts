import { parseArgs } from 'node:util';

/** What commands are made of, and how a command line is read. */

type Option = {
  /** What stands for the value in the help; absent for an option that is there or not. */
  readonly value?: string;
  readonly summary: string;
  readonly required?: boolean;
  readonly choices?: readonly string[];
  /** Whether the value names a file, for the completion. */
  readonly isFile?: boolean;
};

export type Options = Readonly<Record<string, Option>>;

/** A command line as it was read. */
export type Line = {
  readonly args: readonly string[];
  text(name: string): string | undefined;
  has(name: string): boolean;
};

export type Command = {
  readonly name: string;
  /** What stands behind its name, such as `[CODE]`; in brackets where it may be left out. */
  readonly args: readonly string[];
  readonly summary: string;
  /** More for its own help, a paragraph each. */
  readonly details?: readonly string[];
  readonly options: Options;
  run(line: Line): Promise<void>;
};

/** A command line that cannot be meant: exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Why a command fails, in one line for who typed it: exit status 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

export function wrongUsage(message: string): never {
  throw new UsageError(message);
}

export function fail(message: string): never {
  throw new CommandError(message);
}

/** Options of every command that calls the service. */
export const CONNECTION: Options = {
  'base-url': { value: 'URL', summary: 'where the service is (SCRIP_BASE_URL)' },
  variant: {
    value: 'a|b',
    summary: 'the variant of the interface (SCRIP_VARIANT; a unless said)',
    choices: ['a', 'b'],
  },
  credentials: {
    value: 'FILE',
    summary: 'the file of the credentials (SCRIP_CREDENTIALS; ~/.config/scrip/credentials unless said)',
    isFile: true,
  },
  timeout: { value: 'SECONDS', summary: 'give up after this time, all attempts together' },
  json: { summary: 'print one JSON document on stdout, and nothing else' },
};

export const HELP: Options = { help: { summary: 'show this help' } };

/**
 * Reads what stands behind the name of a command.
 * @throws UsageError, whose text holds no value: what was mistyped may be a PIN
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
  const config = Object.fromEntries(
    Object.entries(options).map(([name, { value }]) => [
      name,
      value === undefined ? { type: 'boolean' as const } : { type: 'string' as const },
    ]),
  );
  try {
    return parseArgs({
      args: [...argv],
      options: { ...config, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    }) as { values: Record<string, string | boolean | undefined>; positionals: string[] };
  } catch (error) {
    throw new UsageError(explain(error, options));
  }
}

/** The words of the parser quote what was typed; only the name of an option is told. */
function explain(error: unknown, options: Options): string {
  const { code, message } = error as { readonly code?: unknown; readonly message: string };
  const [option] = /--?[a-z][a-z-]*/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return `there is no option ${option ?? 'of this name'}`;
  if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') {
    const { value } = options[option?.slice(2) ?? ''] ?? {};
    return value === undefined
      ? `${option ?? 'an option'} takes no value`
      : `${option} needs a value, ${value}, that does not begin with -`;
  }
  return 'this cannot be read';
}

function check(command: Command, line: Line): void {
  const needed = command.args.filter((arg) => !arg.startsWith('[')).length;
  if (line.args.length < needed) wrongUsage(`${command.args[line.args.length]} is missing`);
  if (line.args.length > command.args.length) wrongUsage('there is one argument too many');
  for (const [name, { required, choices }] of Object.entries(command.options)) {
    const text = line.text(name);
    if (required && text === undefined) wrongUsage(`--${name} is missing`);
    if (text !== undefined && choices && !choices.includes(text)) {
      wrongUsage(`--${name} must be one of ${choices.join(', ')}`);
    }
  }
}
