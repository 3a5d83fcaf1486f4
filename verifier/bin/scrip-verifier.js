#!/usr/bin/env node
const { createReadStream } = require('node:fs');
const { join } = require('node:path');
const { parseArgs } = require('node:util');
const { Refused, Verifier, compare } = require('../index.js');

const USAGE = 'usage: scrip-verifier FILE [--against DIR] [--key NAME+ID+KEY]';

async function verify() {
  const { values, positionals } = read(process.argv.slice(2));
  const [file, ...others] = positionals;
  if (!file || others.length > 0 || (values.key && !values.against)) throw new Refused(USAGE);
  const verifier = new Verifier();
  for await (const piece of piecesOf(file)) verifier.piece(piece);
  const sentence = verifier.end();
  if (!values.against) return sentence;
  await compare(verifier.closings, await readPublished(values.against), values.key);
  return values.key ? sentence : `${sentence}\nno signature was verified: no key was given`;
}

function read(args) {
  const options = { against: { type: 'string' }, key: { type: 'string' } };
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch {
    throw new Refused(USAGE);
  }
}

async function readPublished(folder) {
  // It is published last: closings that are read after it are at least as new.
  const checkpoint = await textOf(join(folder, 'checkpoint'));
  const closings = await textOf(join(folder, 'closings'));
  return { checkpoint, closings: closings.split('\n').filter(Boolean) };
}

async function textOf(path) {
  let text = '';
  for await (const piece of piecesOf(path)) text += piece;
  return text;
}

/** Why a file cannot be read. */
const REASONS = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EISDIR: 'is a folder: name a file',
  EACCES: 'may not be read by this account',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'is no text in UTF-8',
};

/** Reads a text in pieces. @throws Refused */
async function* piecesOf(path) {
  const decoder = decoderOf();
  let isFirst = true;
  try {
    for await (const bytes of createReadStream(path)) {
      if (isFirst && bytes[0] === 0x1f && bytes[1] === 0x8b)
        throw new Refused(`${path} is compressed: unpack it first`);
      isFirst = false;
      yield decoder.decode(bytes, { stream: true });
    }
    yield decoder.decode();
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(`${path} ${REASONS[error.code] ?? `cannot be read (${error.code})`}`);
  }
}

/** Refuses bytes that are no UTF-8, and keeps a byte order mark, which belongs to no proof. */
const decoderOf = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

verify().then(
  (sentence) => console.log(sentence),
  (error) => {
    console.error(
      error instanceof Refused ? `refused: ${error.message}` : `refused: ${error.message ?? error}`,
    );
    process.exitCode = 1;
  },
);
