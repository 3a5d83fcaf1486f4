#!/usr/bin/env node
const { createReadStream } = require('node:fs');
const { readFile } = require('node:fs/promises');
const { join } = require('node:path');
const { parseArgs } = require('node:util');
const { Refused, Verifier, compare } = require('../index.js');

const USAGE = 'usage: scrip-verifier FILE [--against DIR] [--key NAME+ID+KEY]';

async function verify() {
  const options = { against: { type: 'string' }, key: { type: 'string' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [file, ...others] = positionals;
  if (!file || others.length > 0 || (values.key && !values.against)) throw new Refused(USAGE);
  const verifier = new Verifier();
  const decoder = decoderOf();
  for await (const piece of createReadStream(file)) verifier.piece(decoder.decode(piece, { stream: true }));
  verifier.piece(decoder.decode());
  const sentence = verifier.end();
  if (!values.against) return sentence;
  await compare(verifier.closings, await readPublished(values.against), values.key);
  return values.key ? sentence : `${sentence}\nno signature was verified: no key was given`;
}

async function readPublished(folder) {
  // It is published last: closings that are read after it are at least as new.
  const read = async (name) => decoderOf().decode(await readFile(join(folder, name)));
  const checkpoint = await read('checkpoint');
  const closings = await read('closings');
  return { checkpoint, closings: closings.split('\n').filter(Boolean) };
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
