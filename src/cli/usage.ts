import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { type Command, CommanderError, type Option } from 'commander';
import { misspelledSettings, SETTINGS } from '../config.ts';
import type { Actor } from '../context.ts';
import { wrongUsage } from './output.ts';
import { oneOf, parseText, repeat } from './parse.ts';
import { isOneOfSeveral } from './processes.ts';

/** The shared parts of all commands: their help, and the refusal of a wrong command line. */

const HELP_COLUMNS = 100;

/** Prepares every registered command and its subcommands. */
export function prepare(command: Command): void {
  command
    .configureHelp({ showGlobalOptions: true, helpWidth: HELP_COLUMNS })
    // The program prints errors itself (main.ts).
    .configureOutput({ outputError: () => {} })
    .exitOverride((error) => {
      throw new CommanderError(error.exitCode, error.code, `${error.message}${hintFor(command, error)}`);
    });
  refuseRepetition(command);
  for (const each of command.commands) prepare(each);
}

function hintFor(command: Command, { code, exitCode }: CommanderError): string {
  return exitCode === 0 || code.startsWith('commander.help') ? '' : ` (see \`${pathOf(command)} --help\`)`;
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

/** Refuses an option that is given twice and is not a list: it is not clear which one was meant. */
function refuseRepetition(command: Command): void {
  const given = new Set<string>();
  for (const option of command.options.filter((each) => !isList(each))) {
    command.on(`option:${option.name()}`, () => {
      if (given.has(option.attributeName())) wrongUsage(`${option.long} is given twice`);
      given.add(option.attributeName());
    });
  }
}

const isList = ({ parseArg }: Option) => parseArg === repeat;

/** Returns the settings for `scrip --help`. */
export function settingsHelp({ command }: { command: Command }): string {
  const helper = command.createHelp();
  const settings = Object.values(SETTINGS);
  const width = Math.max(...settings.map(({ name }) => name.length));
  const rows = settings.map(({ name, description, fallback }) =>
    helper.formatItem(
      name,
      width,
      `${description}${fallback === undefined ? '' : ` Default: ${fallback}`}`,
      helper,
    ),
  );
  return `\nSettings (environment variables):\n${rows.join('\n')}`;
}

/**
 * Lets every command name the variables that it ignores, although they are nearly named like a setting. With
 * `--json` it does so after a success only, since stderr then holds one document after a failure.
 */
export function nameIgnored(program: Command): void {
  const tell = (isAfter: boolean) => () => {
    if (isOneOfSeveral() || process.argv.includes('--json') !== isAfter) return;
    for (const [ignored, meant] of misspelledSettings())
      process.stderr.write(`scrip: there is no setting ${ignored}, so it is ignored: ${meant} is meant?\n`);
  };
  program.hook('preAction', tell(false)).hook('postAction', tell(true));
}

/** The actor named on the command line. */
let given: { by?: string; reason?: string; breakGlass?: boolean } = {};

const NAME_MAX = 100;
const REASON_MAX = 500;

/** Lets every command accept the name of its actor and a reason, for the audit. */
export function takeActor(program: Command): void {
  given = {};
  program
    .option('--by <name>', 'your name, for the audit (default: the name of the system account)')
    .option('--reason <text>', 'the reason for the change, for the audit')
    .option(
      '--break-glass',
      'perform an operation that another person would have to approve; needs --reason, and is marked in the audit',
    )
    .hook('preAction', (command) => {
      const { by, reason, breakGlass } = command.opts<typeof given>();
      if (by !== undefined) given.by = parseText(by, '--by', NAME_MAX);
      if (reason !== undefined) given.reason = parseText(reason, '--reason', REASON_MAX);
      if (breakGlass && reason === undefined) wrongUsage('--break-glass needs --reason');
      if (breakGlass) given.breakGlass = true;
    });
}

/** Returns the actor of this process's changes. */
export function actor(): Actor {
  const account = accountName();
  const origin = `command line of ${account} at ${hostname()}`;
  return {
    kind: given.breakGlass ? 'break-glass' : 'command-line',
    id: null,
    name: given.by ?? account,
    origin,
    requestId: null,
    reason: given.reason ?? null,
  };
}

/** Returns the name of the account. An account that the system knows only by number has none. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `account ${process.getuid?.() ?? 'unknown'}`;
  }
}

/**
 * Generates scripts that complete command lines. They contain all commands, so no program runs at a key
 * press.
 */

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function registerCompletion(program: Command): void {
  program
    .command('completion <shell>')
    .description(`print what makes ${SHELLS.join(', ')} complete commands and options`)
    .action((shell: string) => {
      const script = SCRIPTS[oneOf(shell, 'completion', SHELLS)](placesOf(program));
      process.stdout.write(`${script}\n`);
    });
}

type Word = { readonly text: string; readonly description: string; readonly takesValue: boolean };

/** The words that can follow other words: `merchant` is followed by `create`, `list` and so on. */
type Place = { readonly path: string; readonly words: readonly Word[] };

function placesOf(command: Command, path: readonly string[] = []): Place[] {
  const words = [
    ...command.commands.map((each) => ({
      text: each.name(),
      description: each.description(),
      takesValue: false,
    })),
    ...command.options.map(({ long, description, required, optional }) => ({
      text: long ?? '',
      description,
      takesValue: required || optional,
    })),
  ].filter(({ text }) => text !== '');
  return [
    { path: path.join(' '), words },
    ...command.commands.flatMap((each) => placesOf(each, [...path, each.name()])),
  ];
}

function bash(places: readonly Place[]): string {
  const known = places.flatMap(({ path }) => (path === '' ? [] : [`"${path}"`]));
  const cases = places.map(
    ({ path, words }) => `    "${path}") words="${words.map(({ text }) => text).join(' ')}" ;;`,
  );
  return `_scrip() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
      ${known.join('|')}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _scrip scrip`;
}

const zsh = (places: readonly Place[]) => `autoload -U +X bashcompinit && bashcompinit\n${bash(places)}`;

const quote = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

function fish(places: readonly Place[]): string {
  const known = places.flatMap(({ path }) => (path === '' ? [] : [quote(path)]));
  const lines = places.flatMap(({ path, words }) =>
    words.map(({ text, description, takesValue }) => {
      const what = text.startsWith('--') ? `-l ${text.slice(2)}${takesValue ? ' -r' : ''}` : `-a ${text}`;
      const condition = quote(`test "$(__scrip_path)" = "${path}"`);
      return `complete -c scrip -f -n ${condition} ${what} -d ${quote(description)}`;
    }),
  );
  return `function __scrip_path
  set -l path
  for word in (commandline -opc)[2..]
    if contains -- (string join ' ' $path $word) ${known.join(' ')}
      set path $path $word
    end
  end
  string join ' ' $path
end
${lines.join('\n')}`;
}

const SCRIPTS = { bash, zsh, fish };

export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
