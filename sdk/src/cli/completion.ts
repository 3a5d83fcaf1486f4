import { type Command, HELP, wrongUsage } from './command.ts';
import { PROGRAM } from './help.ts';
import { write } from './output.ts';

/** Completion for shells, made from the very commands that are run. */

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function completionCommand(commands: () => readonly Command[]): Command {
  return {
    name: 'completion',
    args: [SHELLS.join('|')],
    summary: 'print the completion for a shell',
    details: [
      `bash: source <(${PROGRAM} completion bash), in ~/.bashrc`,
      `zsh:  source <(${PROGRAM} completion zsh), in ~/.zshrc after compinit`,
      `fish: ${PROGRAM} completion fish > ~/.config/fish/completions/${PROGRAM}.fish`,
    ],
    options: {},
    async run({ args: [shell] }) {
      if (shell === 'bash') return write(bash(commands()));
      if (shell === 'zsh') return write(zsh(commands()));
      if (shell === 'fish') return write(fish(commands()));
      return wrongUsage(`the shell must be one of ${SHELLS.join(', ')}`);
    },
  };
}

const optionsOf = ({ options }: Command) => Object.entries({ ...options, ...HELP });
const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

function bash(commands: readonly Command[]): string {
  const all = commands.flatMap(optionsOf);
  const files = [...new Set(all.filter(([, { isFile }]) => isFile).map(([name]) => `--${name}`))];
  const choices = new Map(
    commands.flatMap((command) =>
      optionsOf(command).flatMap(([name, option]) =>
        option.choices ? [[`${command.name}:--${name}`, option.choices.join(' ')] as const] : [],
      ),
    ),
  );
  return `_scrip_client() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')} --help --version" -- "$current"))
    return
  fi
  case "$previous" in
    ${files.join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "\${COMP_WORDS[1]}:$previous" in
${[...choices].map(([where, words]) => `    ${where}) words="${words}" ;;`).join('\n')}
    completion:completion) words="${SHELLS.join(' ')}" ;;
  esac
  if [ -z "$words" ]; then
    case "\${COMP_WORDS[1]}" in
${commands
  .map(
    (each) =>
      `      ${each.name}) words="${optionsOf(each)
        .map(([name]) => `--${name}`)
        .join(' ')}" ;;`,
  )
  .join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _scrip_client ${PROGRAM}
`;
}

function zsh(commands: readonly Command[]): string {
  const described = (name: string, summary: string) => quote(`${name}:${summary.replaceAll(':', '\\:')}`);
  const argument = ([name, { value, summary, isFile, choices }]: ReturnType<typeof optionsOf>[number]) => {
    const told = summary.replaceAll(/[[\]:]/g, ' ');
    const values = choices ? `(${choices.join(' ')})` : isFile ? '_files' : ' ';
    return quote(`--${name}[${told}]${value === undefined ? '' : `:${name}:${values}`}`);
  };
  const placesOf = ({ name, args }: Command) =>
    args.map((arg, at) =>
      quote(`${at + 1}:${arg.replaceAll(/[[\]]/g, '')}:${name === 'completion' ? `(${SHELLS.join(' ')})` : ' '}`),
    );
  return `#compdef ${PROGRAM}
_scrip_client() {
  if (( CURRENT == 2 )); then
    local -a names=(
${commands.map(({ name, summary }) => `      ${described(name, summary)}`).join('\n')}
    )
    _describe command names
    return
  fi
  # The command is no argument of itself: with a word that it has no place for, _arguments offers nothing at all.
  shift words
  (( CURRENT-- ))
  case "$words[1]" in
${commands.map((each) => `    ${each.name}) _arguments ${[...optionsOf(each).map(argument), ...placesOf(each)].join(' ')} ;;`).join('\n')}
  esac
}
compdef _scrip_client ${PROGRAM}
`;
}

function fish(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => {
    const seen = `-n ${quote(`__fish_seen_subcommand_from ${command.name}`)}`;
    return [
      `complete -c ${PROGRAM} -n __fish_use_subcommand -a ${command.name} -d ${quote(command.summary)}`,
      ...optionsOf(command).map(([name, { value, summary, isFile, choices }]) => {
        const values =
          value === undefined ? '' : choices ? ` -x -a ${quote(choices.join(' '))}` : isFile ? ' -r -F' : ' -x';
        return `complete -c ${PROGRAM} ${seen} -l ${name} -d ${quote(summary)}${values}`;
      }),
    ];
  });
  const shells = `complete -c ${PROGRAM} -n '__fish_seen_subcommand_from completion' -a ${quote(SHELLS.join(' '))}`;
  return `${[`complete -c ${PROGRAM} -f`, ...lines, shells].join('\n')}\n`;
}
