import { once } from 'node:events';
import { wrongUsage } from './command.ts';

/** The terminal: results on stdout, everything else on stderr, and PINs that are not shown. */

let wrote = false;

/** Whether part of a result is on stdout already: a second document after it would make both unreadable. */
export function hasWritten(): boolean {
  return wrote;
}

/** Text from elsewhere, without characters that could drive a terminal or reorder its lines. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}

/** Waits for a slow reader, so that a result of any size takes little memory. */
export async function write(text: string): Promise<void> {
  wrote = true;
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

export async function printJson(value: unknown): Promise<void> {
  await write(`${JSON.stringify(value, null, 2)}\n`);
}

/** A line for people, on stderr. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

type Cell = string | number | null | undefined;

const cellText = (cell: Cell) =>
  cell === null || cell === undefined || cell === '' ? '-' : clean(String(cell));

/** A column that is wider is cut; `--json` has all of it. */
const CELL_MAX = 40;

export async function printTable(head: readonly string[], rows: readonly (readonly Cell[])[]): Promise<void> {
  const cut = (text: string) => (text.length > CELL_MAX ? `${text.slice(0, CELL_MAX - 1)}…` : text);
  const texts = [head, ...rows.map((row) => row.map((cell) => cut(cellText(cell))))];
  const widths = head.map((_, column) => Math.max(...texts.map((row) => (row[column] ?? '').length)));
  const lines = texts.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  await write(`${lines.join('\n')}\n`);
}

/** Names and values, a line each. */
export async function printFields(fields: Readonly<Record<string, Cell>>): Promise<void> {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  const lines = Object.entries(fields).map(([name, value]) => `${name.padEnd(width)}  ${cellText(value)}`);
  await write(`${lines.join('\n')}\n`);
}

const REDRAW_MS = 200;

/** A line on stderr that shows the progress; nothing where stderr is not a terminal. */
export function showProgress(label: string, total?: number): { update(done: number): void; stop(): void } {
  if (!process.stderr.isTTY) return { update() {}, stop() {} };
  const startedAt = performance.now();
  let done = 0;
  const timer = setInterval(() => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000);
    const count = done === 0 ? '' : `, ${done}${total === undefined ? '' : ` of ${total}`}`;
    process.stderr.write(`\r\x1b[2K${label}${count}, ${seconds} s`);
  }, REDRAW_MS);
  return {
    update(now) {
      done = now;
    },
    stop() {
      clearInterval(timer);
      process.stderr.write('\r\x1b[2K');
    },
  };
}

/** Ctrl-C at a question. */
export class Interrupted extends Error {}

/** Two lines of digits, with room for spaces. */
const INPUT_MAX = 1024;
const ENTER = ['\r', '\n', '\u0004'];
const CTRL_C = '\u0003';
const BACKSPACE = /[\b\u007f]/;

let lines: Promise<string[]> | undefined;

/**
 * Asks for a code or a PIN, which must not be arguments, since every account of the machine can see
 * those: without echo at a terminal, else the next line of standard input.
 */
export async function askHidden(what: string): Promise<string> {
  if (process.stdin.isTTY) return askTerminal(what);
  lines ??= readAll();
  return (
    (await lines).shift() ?? wrongUsage(`the ${what} is expected on standard input, as a line of its own`)
  );
}

async function readAll(): Promise<string[]> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const piece of process.stdin) {
    text += piece;
    if (text.length > INPUT_MAX) wrongUsage('standard input holds more than a code and a PIN');
  }
  const all = text.split(/\r?\n/).map((line) => line.trim());
  return all.filter((line) => line !== '');
}

/** @throws Interrupted */
async function askTerminal(what: string): Promise<string> {
  const { stdin, stderr } = process;
  // Before the question: the echo must be off when the answer is typed.
  stdin.setRawMode(true);
  stderr.write(`${what} (not shown): `);
  stdin.setEncoding('utf8');
  stdin.resume();
  try {
    return await new Promise((resolve, reject) => {
      let typed = '';
      const take = (piece: string) => {
        for (const key of piece) {
          if (key === CTRL_C) return end(() => reject(new Interrupted('interrupted')));
          if (ENTER.includes(key)) return end(() => resolve(typed.trim()));
          if (BACKSPACE.test(key)) typed = typed.slice(0, -1);
          else if (typed.length < INPUT_MAX) typed += key;
        }
      };
      const end = (how: () => void) => {
        stdin.off('data', take);
        how();
      };
      stdin.on('data', take);
    });
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write('\n');
  }
}
