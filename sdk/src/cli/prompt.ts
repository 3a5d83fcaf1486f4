import { wrongUsage } from './command.ts';

/** Codes and PINs as they are typed or piped in: never as arguments, which every account of the machine can see. */

/** Ctrl-C at a question. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/** Two lines of digits, with room for spaces. */
const MOST_INPUT = 1024;

const ENTER = /[\r\n]/;
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const BACKSPACE = /[\b\u007f]/;

let lines: Promise<string[]> | undefined;

/**
 * Asks for something that must not be seen: without echo at a terminal, else the next line of standard input.
 * @param what such as `PIN`
 */
export async function askHidden(what: string): Promise<string> {
  if (process.stdin.isTTY) return askTerminal(what);
  lines ??= readAll();
  const line = (await lines).shift();
  if (line === undefined) wrongUsage(`the ${what} is expected on standard input, as a line of its own`);
  return line;
}

async function readAll(): Promise<string[]> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const piece of process.stdin) {
    text += piece;
    if (text.length > MOST_INPUT) wrongUsage('standard input holds more than a code and a PIN');
  }
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** @throws Interrupted */
async function askTerminal(what: string): Promise<string> {
  const { stdin, stderr } = process;
  // Before it asks: what is typed in answer must find the echo off.
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
          if (ENTER.test(key) || key === CTRL_D) return end(() => resolve(typed.trim()));
          if (BACKSPACE.test(key)) typed = typed.slice(0, -1);
          else if (typed.length < MOST_INPUT) typed += key;
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
