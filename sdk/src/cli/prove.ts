import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, fail, wrongUsage } from './command.ts';
import { clean, printJson, say, write } from './terminal.ts';

/** The proof that a settlement has exactly the redemptions of the tills. */

export const PROVE: Command = {
  name: 'prove',
  args: ['TILL', 'SETTLEMENT...'],
  summary: 'prove that settlements have exactly the redemptions in the file of your tills',
  details: `TILL is CSV with a header. It needs the columns reference and amount, and currency if there are
several; the column time explains a line that is in no settlement. A SETTLEMENT is the file that the portal
has under "Proof". Each difference is a line on stdout. The exit status is 0 if there is none, otherwise 1.`,
  options: {
    key: { value: 'NAME+ID+KEY', summary: 'the public key of the installation: the signature is verified' },
    against: { value: 'DIR', summary: 'the folder of published checkpoints: the days are compared with it' },
    json: { summary: 'print one JSON document on stdout, and nothing else' },
  },
  async run(line) {
    // Loaded here, since all other commands work without it.
    const { prove } = await import('@scrip/verifier/settlement');
    const [till = '', ...settlements] = await Promise.all(line.args.map(read));
    const folder = line.text('against');
    const published = folder === undefined ? undefined : await readPublished(folder);
    const key = line.text('key');
    if (key !== undefined && !/^[^+\s]+\+[0-9a-f]{8}\+\S+$/.test(key))
      wrongUsage('--key must be name+id+key');
    const { findings, notes, sentence } = await prove(till, settlements, { key, published });
    if (line.has('json')) await printJson({ proved: sentence !== undefined, findings, notes });
    else {
      for (const finding of findings) await write(`${clean(finding)}\n`);
      for (const note of notes) say(clean(note));
      if (sentence !== undefined) await write(`${clean(sentence)}\n`);
    }
    if (sentence === undefined) fail(`not proved: ${findings.length} found`);
  },
};

/** Why a file cannot be read. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EISDIR: 'is a folder: name a file',
  EACCES: 'may not be read by this account',
};

/** Reads a text in UTF-8, or in UTF-16, in which spreadsheets on Windows write "Unicode text". */
async function read(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) =>
    fail(`${path} ${REASONS[error.code ?? ''] ?? `cannot be read (${error.code})`}`),
  );
  if (bytes.subarray(0, 2).toString() === 'PK') fail(`${path} is a workbook: save it as CSV`);
  const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8';
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return fail(`${path} is no text in UTF-8: save it as CSV UTF-8`);
  }
}

async function readPublished(folder: string) {
  const [checkpoint, closings] = await Promise.all([
    read(join(folder, 'checkpoint')),
    read(join(folder, 'closings')),
  ]);
  return { checkpoint, closings: closings.split('\n').filter((text) => text !== '') };
}
