import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  cosign,
  isSigned,
  KINDS,
  readCheckpoint,
  signCheckpoint,
  verifierKey,
} from '../../src/books/checkpoint.ts';
import { signerOf } from '../../src/keyring/ring.ts';

/** The form of a checkpoint, which the programs of others read. */

const root = Buffer.alloc(32, 7);
const [signer, other] = [signerOf(Buffer.alloc(32, 1)), signerOf(Buffer.alloc(32, 2))];
const noteOf = (size: number, by = [signer]) => signCheckpoint({ origin: 'scrip/1', size, root }, by);

test('the text of a public key is that of other logs', () => {
  const known = 'sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8';
  const key = Buffer.from('Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8', 'base64').subarray(1);
  assert.equal(verifierKey('sum.golang.org', KINDS.log, key), known);
});

test('a checkpoint is read as it was signed, of any size, and nothing else is read', () => {
  for (const size of [1, 12, 999_999_999]) {
    const text = `scrip/1\n${size}\n${root.toString('base64')}\n`;
    assert.deepEqual(readCheckpoint(noteOf(size)), { origin: 'scrip/1', size, root, text });
  }
  for (const note of [noteOf(0), noteOf(1.5), `scrip/2\n${noteOf(1)}`, noteOf(1).replace('\n\n', '\n'), ''])
    assert.equal(readCheckpoint(note), undefined, note);
});

test('a checkpoint is signed only if one of the known keys has signed it', () => {
  const keyOf = (origin: string, { publicKey } = signer) => verifierKey(origin, KINDS.log, publicKey);
  const known = keyOf('scrip/1');
  for (const keys of [[known], [keyOf('scrip/1', other), known]])
    assert.equal(isSigned(noteOf(3), 'scrip/1', keys), true);
  const short = verifierKey('scrip/1', KINDS.log, signer.publicKey.subarray(1));
  for (const key of [keyOf('scrip/1', other), keyOf('scrip/2'), short, known.replace(/\+\w+/, '+0'), 'x', ''])
    assert.equal(isSigned(noteOf(3), 'scrip/1', [key]), false, key);
  assert.equal(isSigned(noteOf(3, []), 'scrip/1', [known]), false);
  assert.equal(isSigned(noteOf(3).replace('\n3\n', '\n2\n'), 'scrip/1', [known]), false);
});

test('a signature counts only in its form, as for every verifier', () => {
  const key = verifierKey('scrip/1', KINDS.log, signer.publicKey);
  const whole = noteOf(3);
  const line = whole.split('\n').at(-2) ?? assert.fail();
  const bytes = Buffer.from(line.split(' ')[2] ?? '', 'base64');
  const lineOf = (changed: Buffer) => `\u2014 scrip/1 ${changed.toString('base64')}`;
  const otherId = lineOf(Buffer.concat([Buffer.alloc(4), bytes.subarray(4)]));
  const wrong = lineOf(Buffer.concat([bytes.subarray(0, 67), Buffer.from([bytes[67] ? 0 : 1])]));
  for (const forged of [line.replace('\u2014', '-'), `${line}=`, `${line} x`, `${line}\r`, otherId, wrong])
    assert.equal(isSigned(whole.replace(line, forged), 'scrip/1', [key]), false, forged);
  assert.equal(
    isSigned(whole.replace(line, `${wrong}\n${line}`), 'scrip/1', [key]),
    false,
    'the first counts',
  );
  assert.equal(isSigned(whole.replace(line, `${otherId}\n${line}`), 'scrip/1', [key]), true);
});

test('a witness confirms with the time in seconds', () => {
  const { text } = readCheckpoint(noteOf(3)) ?? assert.fail();
  const line = cosign(text, 'witness', signer, new Date('2026-01-01T00:00:00.999Z'));
  const bytes = Buffer.from(line.split(' ')[2] ?? '', 'base64');
  assert.equal(bytes.readBigUInt64BE(4), 1_767_225_600n);
  assert.deepEqual(bytes.subarray(12), signer.sign(`cosignature/v1\ntime 1767225600\n${text}`));
});
