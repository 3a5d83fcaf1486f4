import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { compare, Verifier } from '@scrip/verifier';
import fc from 'fast-check';
import { checkpointOf, KINDS, signCheckpoint, verifierKey } from '../../src/books/checkpoint.ts';
import { compareWith, publishBooks, readPublished } from '../../src/books/publish.ts';
import type { Service } from '../../src/context.ts';
import { openLedger, sell } from '../support/books.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { PROGRAMS, run } from '../support/proof-programs.ts';
import { exportedText } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';

/**
 * Published files that somebody has changed. Both verifiers say the same of them, and what they refuse, the
 * service does not find right. FORGERIES is the number of changes.
 */

const RUNS = Number(process.env['FORGERIES'] ?? 40);
const FILES = ['closings', 'checkpoint', 'keys'] as const;

const t = ofFile();
let service: Service;
let proof: string;
let folder: string;
let key: string;
const whole: Record<string, string> = {};

before(async () => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  ({ service } = ledger.started);
  await sell(await ledger.merchant(), 1, 25);
  await ledger.at('2026-03-05T00:30:00Z');
  await ledger.close();
  proof = await exportedText(service, { format: 'proof', from: '2026-03-02', to: '2026-03-05' });
  folder = join(await temporaryFolder('scrip-published-'), 'web');
  await publishBooks(service, folder);
  for (const name of FILES) whole[name] = await readFile(join(folder, name), 'utf8');
  key = (await readPublished(folder))?.keys[0] ?? assert.fail();
});

/** What both verifiers say of the proof and of what was published: the same. */
async function saidOf(checkpoint: string, closings: string, by = key): Promise<string> {
  const lines = closings.split('\n');
  const verifier = new Verifier();
  verifier.piece(proof);
  const sentence = verifier.end();
  const said = await compare(verifier.closings, { checkpoint, closings: lines.filter(Boolean) }, by).then(
    () => sentence,
    (error: Error) => `refused: ${error.message}`,
  );
  const expected = [said === sentence ? 0 : 1, said];
  assert.deepEqual(await run(PROGRAMS.Python, proof, { checkpoint, closings: lines, key: by }), expected);
  return said;
}

/** Texts that one program might take for another, or for nothing. */
const PIECES = ['\n', '\r', ' ', '\t', '\u0085', '\u00a0', '\u2028', '\ufeff', '\u001c', '\0', '\\', '"'];
const MORE = ['=', '+', '0', '\u0661', '\u2014', '-', ',', '[', '{', 'null', 'NaN', 'A'];

type Change = (text: string, at: number, piece: string) => string;
const CHANGES: Record<string, Change> = {
  insert: (text, at, piece) => text.slice(0, at) + piece + text.slice(at),
  remove: (text, at) => text.slice(0, at) + text.slice(at + 1),
  replace: (text, at, piece) => text.slice(0, at) + piece + text.slice(at + 1),
  cut: (text, at) => text.slice(0, at),
  append: (text, _at, piece) => `${text}${piece}`,
  everywhere: (text, at, piece) => text.replaceAll(text[at] ?? '\n', piece),
  'drop a line': (text, at) => onLines(text, (lines) => lines.toSpliced(at % lines.length, 1)),
  'double a line': (text, at) => onLines(text, (lines) => lines.toSpliced(at, 0, lines[at % 3] ?? '')),
  'end a line': (text, at, piece) =>
    onLines(text, (lines) => lines.map((line, index) => (index === at % lines.length ? line + piece : line))),
  'other order': (text) => onLines(text, (lines) => lines.toReversed()),
};
const onLines = (text: string, change: (lines: string[]) => string[]) => change(text.split('\n')).join('\n');

test('what a verifier refuses of a published folder, no verifier and no service finds right', async () => {
  const changes = fc.record({
    file: fc.constantFrom(...FILES),
    change: fc.constantFrom(...Object.keys(CHANGES)),
    at: fc.nat(),
    piece: fc.constantFrom(...PIECES, ...MORE),
  });
  await fc.assert(
    fc.asyncProperty(changes, async ({ file, change, at, piece }) => {
      const text = whole[file] ?? '';
      const files = { ...whole, [file]: CHANGES[change]?.(text, at % text.length, piece) ?? '' };
      for (const name of FILES) await writeFile(join(folder, name), files[name] ?? '');
      const found = await compareWith(service, folder);
      const said = await saidOf(files['checkpoint'] ?? '', files['closings'] ?? '');
      if (found.length === 0) assert.match(said, /^verified: /);
    }),
    { numRuns: RUNS },
  );
});

test('a line that is no closing is refused in one line, even if the installation signed it', async () => {
  const [first = '', ...others] = (whole['closings'] ?? '').trimEnd().split('\n');
  for (const line of ['null', '[]', '{}', 'NaN', 'x', first.replace('"2026-03-02"', '7')]) {
    const closings = [first, ...others, line];
    const checkpoint = signCheckpoint(checkpointOf(closings), service.keys.signers());
    assert.match(
      await saidOf(checkpoint, closings.join('\n')),
      /^refused: line 4 of what \S+ published is no/,
    );
  }
});

test('a first day that follows another one is refused, even if the installation signed it', async () => {
  const closings = [(whole['closings'] ?? '').split('\n', 1)[0]?.replace('"0000', '"0001') ?? ''];
  const [signer = assert.fail()] = service.keys.signers();
  const checkpoint = checkpointOf(closings);
  const by = verifierKey(checkpoint.origin, KINDS.log, signer.publicKey);
  assert.match(
    await saidOf(signCheckpoint(checkpoint, [signer]), closings.join('\n'), by),
    /^refused: 2026-03-02 does not follow the day before it in what/,
  );
});
