import { type Command, CommanderError, type Option } from 'commander';
import { SETTINGS } from '../config.ts';
import { wrongUsage } from './output.ts';
import { repeat } from './parse.ts';

/** What all commands share: their help, and how they refuse a wrong command line. */

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

/** Refuses an option that is given twice and is not a list: nobody knows which one was meant. */
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

/** The settings, as `scrip --help` shows them. */
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
