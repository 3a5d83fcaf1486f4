import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Verifier } from '@scrip/verifier';
import { temporaryFolder } from './leave-nothing.ts';

/** The two programs that verify a proof. */
export const PROGRAMS = {
  JavaScript: [process.execPath, '../../verifier/bin/scrip-verifier.js'],
  Python: ['python3', '../../verifier/python/verify.py'],
} as const;

/**
 * Runs a program on a file.
 * @param published with what the program compares it
 * @returns its exit status and all that it prints
 */
export async function run(
  program: readonly [string, string],
  text: string | Buffer,
  published?: { checkpoint: string; closings: readonly string[]; key?: string },
): Promise<[number | null, string]> {
  const folder = await temporaryFolder('scrip-proof-');
  const file = join(folder, 'proof.txt');
  await writeFile(file, text);
  const options = [];
  if (published) {
    await writeFile(join(folder, 'checkpoint'), published.checkpoint);
    await writeFile(join(folder, 'closings'), published.closings.map((each) => `${each}\n`).join(''));
    options.push('--against', folder, ...(published.key ? ['--key', published.key] : []));
  }
  return call(program, [file, ...options]);
}

/** Runs a program. @returns its exit status and all that it prints */
export async function call(
  [name, path]: readonly [string, string],
  args: readonly string[],
): Promise<[number | null, string]> {
  const child = spawn(name, [fileURLToPath(new URL(path, import.meta.url)), ...args]);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (printed += piece));
  const [status] = await new Promise<[number | null]>((done) => child.on('close', (code) => done([code])));
  return [status, printed.trim()];
}

/** Returns what the verifier in JavaScript says, in this process. */
export function verified(text: string): string {
  const verifier = new Verifier();
  try {
    verifier.piece(text);
    return verifier.end();
  } catch (error) {
    return `refused: ${(error as Error).message}`;
  }
}
