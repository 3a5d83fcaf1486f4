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
  for await (const piece of createReadStream(file, 'utf8')) verifier.piece(piece);
  const sentence = verifier.end();
  if (!values.against) return sentence;
  await compare(verifier.closings, await readPublished(values.against), values.key);
  return values.key ? sentence : `${sentence}\nno signature was verified: no key was given`;
}

async function readPublished(folder) {
  const closings = await readFile(join(folder, 'closings'), 'utf8');
  const checkpoint = await readFile(join(folder, 'checkpoint'), 'utf8');
  return { checkpoint, closings: closings.split('\n').filter(Boolean) };
}

verify().then(
  (sentence) => console.log(sentence),
  (error) => {
    console.error(
      error instanceof Refused ? `refused: ${error.message}` : `refused: ${error.message ?? error}`,
    );
    process.exitCode = 1;
  },
);
