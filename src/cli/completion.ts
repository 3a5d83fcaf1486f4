import type { Command } from 'commander';
import { oneOf } from './parse.ts';

/** Scripts that complete the words of a command line. They hold all commands: nothing runs at a key press. */

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

/** What can follow some words: `merchant` is followed by `create`, `list` and so on. */
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

/** As a string of fish. */
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
