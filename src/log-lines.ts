import { styleText } from 'node:util';

/** Formats log lines for a person at a terminal. Programs get them as JSON. */

const LEVELS: Readonly<
  Record<number, { readonly name: string; readonly style: Parameters<typeof styleText>[0] }>
> = {
  10: { name: 'TRACE', style: 'gray' },
  20: { name: 'DEBUG', style: 'gray' },
  30: { name: 'INFO ', style: 'cyan' },
  40: { name: 'WARN ', style: 'yellow' },
  50: { name: 'ERROR', style: 'red' },
  60: { name: 'FATAL', style: 'red' },
};
/** The time of day in `2027-03-01T14:03:07.123Z`. */
const TIME = /T([\d:.]+)Z$/;
/** Control characters, and characters that change how others are displayed. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

type Line = {
  readonly level: number;
  readonly time: string;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly stack?: string } & Record<string, unknown>;
} & Record<string, unknown>;

/** Formats JSON lines of the log as text for a person. Text that is not JSON is not changed. */
export function readableLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `${readableLine(line)}\n`)
    .join('');
}

function readableLine(text: string): string {
  let line: Line;
  try {
    line = JSON.parse(text) as Line;
  } catch {
    return text;
  }
  const { level, time, msg = '', err, ...fields } = line;
  const { name, style } = LEVELS[level] ?? { name: String(level), style: 'white' };
  const head = `${TIME.exec(time)?.[1] ?? time} ${paint(style, name)} ${clean(msg)}`;
  const rest = Object.entries(fields).map(([key, value]) => ` ${paint('gray', `${key}=`)}${asText(value)}`);
  return `${head}${rest.join('')}${err === undefined ? '' : errorOf(err)}`;
}

const clean = (text: string): string =>
  text.replace(CONTROLS, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);

function asText(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return clean(value);
  return clean(JSON.stringify(value));
}

/** Formats the stack of an error below its line, indented. */
function errorOf({ stack, message = '', ...fields }: NonNullable<Line['err']>): string {
  const known = Object.entries(fields).filter(([key, value]) => key !== 'type' && value !== undefined);
  const more = known.map(([key, value]) => ` ${key}=${asText(value)}`).join('');
  const lines = (stack ?? message).split('\n').map((each) => `    ${clean(each.trim())}`);
  return `${more}\n${lines.join('\n')}`;
}

/** Respects NO_COLOR. */
const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
  styleText(style, text, { stream: process.stderr });
