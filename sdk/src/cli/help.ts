import { type Command, HELP, type Options } from './command.ts';

/** The help: made from the very commands that are run. */

export const PROGRAM = 'scrip-client';

function optionLines(options: Options): string[] {
  const rows = Object.entries(options).map(([name, { value, summary, required }]) => {
    const left = `  --${name}${value === undefined ? '' : ` ${value}`}`;
    return [left, `${summary}${required ? ' (required)' : ''}`] as const;
  });
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${left.padEnd(width)}  ${right}`);
}

export function helpOf({ name, args, summary, details = [], options }: Command): string {
  return [
    `usage: ${[PROGRAM, name, ...args].join(' ')} [options]`,
    '',
    summary,
    ...details.flatMap((paragraph) => ['', paragraph]),
    '',
    'options:',
    ...optionLines({ ...options, ...HELP }),
    '',
  ].join('\n');
}

export function helpOfAll(commands: readonly Command[], credentialsPath: string): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    `usage: ${PROGRAM} COMMAND [options]`,
    '',
    "Scrip: a merchant's command line.",
    '',
    'commands:',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    `${PROGRAM} COMMAND --help tells more about each of them.`,
    '',
    'credentials, from the environment or from lines NAME=value of a file:',
    '  SCRIP_BASE_URL  where the service is, such as https://vouchers.example.com',
    '  SCRIP_KEY_ID    the id of your API key',
    '  SCRIP_SECRET    its secret',
    '  SCRIP_VARIANT   a or b; a unless said',
    `The file is ${credentialsPath}, or what --credentials or SCRIP_CREDENTIALS says;`,
    'it must have mode 600. What is in the environment comes first.',
    '',
    'exit status:',
    '  0    done',
    '  1    refused, or failed without effect',
    '  2    wrong usage',
    '  3    unknown outcome: what was asked for has happened once or not at all; stderr says how to find out',
    '  130  interrupted before it could have had an effect',
    '',
  ].join('\n');
}
