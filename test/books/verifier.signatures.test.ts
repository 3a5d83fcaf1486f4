import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, hash, sign } from 'node:crypto';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';

/** Signatures of Ed25519, as both verifiers accept or refuse them (RFC 8032). */

type Case = { readonly key: Buffer; readonly signature: Buffer; readonly text: Buffer };

const require = createRequire(import.meta.url);
const { isSigned } = require('../../verifier/signature.js') as {
  isSigned: (key: Uint8Array, signature: Uint8Array, text: Uint8Array) => Promise<boolean>;
};

const PYTHON = `
import json, sys
from signatures import is_signed
for line in sys.stdin:
    print(is_signed(*(bytes.fromhex(each) for each in json.loads(line))))`;

function acceptedByPython(cases: readonly Case[]): boolean[] {
  const input = cases
    .map(({ key, signature, text }) =>
      JSON.stringify([key, signature, text].map((each) => each.toString('hex'))),
    )
    .join('\n');
  const cwd = fileURLToPath(new URL('../../verifier/python', import.meta.url));
  const { stdout, stderr } = spawnSync('python3', ['-B', '-c', PYTHON], { cwd, input, encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line === 'True');
}

/** Returns what both verifiers say, which is the same. */
async function accepted(cases: readonly Case[]): Promise<boolean[]> {
  const said = await Promise.all(cases.map(({ key, signature, text }) => isSigned(key, signature, text)));
  assert.deepEqual(acceptedByPython(cases), said);
  return said;
}

const all = (cases: readonly Case[], value: boolean) => cases.map(() => value);

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const numberOf = (bytes: Buffer) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
const bytesOf = (number: bigint) => Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse();

const seed = Buffer.alloc(32, 7);
const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(-32);
/** The number of which the public key is the multiple of the base point (section 5.1.5). */
const SECRET =
  ((numberOf(Buffer.from(hash('sha512', seed), 'hex').subarray(0, 32)) % 2n ** 254n) & ~7n) + 2n ** 254n;
const signed = (text: Buffer): Case => ({ key: publicKey, signature: sign(null, text, privateKey), text });

const VECTORS = [
  [
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155' +
      '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
      '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac' +
      '18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
].map(([key = '', text = '', signature = '']) => ({
  key: Buffer.from(key, 'hex'),
  text: Buffer.from(text, 'hex'),
  signature: Buffer.from(signature, 'hex'),
}));

test('the first vectors of RFC 8032, section 7.1, are accepted', async () => {
  assert.deepEqual(await accepted(VECTORS), all(VECTORS, true));
});

test('a signature in which one bit was changed is refused', async () => {
  const changed = fc.sample(
    fc.record({ at: fc.constantFrom('key', 'signature', 'text'), bit: fc.nat(8 * 32 - 1), text: fc.nat() }),
    200,
  );
  const cases = changed.map(({ at, bit, text }): Case => {
    const good = signed(Buffer.from(hash('sha256', String(text)), 'hex'));
    const bytes = Buffer.from(good[at as keyof Case]);
    const place = bit >> 3;
    bytes[place] = (bytes[place] ?? 0) ^ (1 << (bit & 7));
    return { ...good, [at]: bytes };
  });
  assert.deepEqual(await accepted(cases), all(cases, false));
});

test('S + L instead of S is refused', async () => {
  const cases = [1, 2, 3].map((number): Case => {
    const good = signed(Buffer.from([number]));
    const s = bytesOf(numberOf(good.signature.subarray(32)) + L);
    return { ...good, signature: Buffer.concat([good.signature.subarray(0, 32), s]) };
  });
  assert.deepEqual(await accepted(cases), all(cases, false));
});

test('an R whose order divides 8 is refused, in every form', async () => {
  // The neutral point, as R of a signature by the owner of the key.
  const cases = [1n, P + 1n, 1n + 2n ** 255n].map((encoded): Case => {
    const [first, text] = [bytesOf(encoded), Buffer.from('text')];
    const k = numberOf(Buffer.from(hash('sha512', Buffer.concat([first, publicKey, text])), 'hex'));
    const signature = Buffer.concat([first, bytesOf((k * SECRET) % L)]);
    return { key: publicKey, signature, text };
  });
  assert.deepEqual(await accepted(cases), all(cases, false));
});

test('keys by which anybody can sign are refused, in every form', async () => {
  const ofOrder8 = numberOf(
    Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex'),
  );
  const signs = [0n, 2n ** 255n];
  const keys = [0n, 1n, P - 1n, ofOrder8, P - ofOrder8, P, P + 1n].flatMap((y) =>
    signs.map((sign) => y + sign),
  );
  // R is [S]B, so this is valid for each text whose k is a multiple of the order of the key.
  const signature = Buffer.concat([publicKey, bytesOf(SECRET % L)]);
  const cases = keys.flatMap((key) =>
    Array.from({ length: 64 }, (_, number) => ({
      key: bytesOf(key),
      signature,
      text: Buffer.from([number]),
    })),
  );
  assert.deepEqual(await accepted(cases), all(cases, false));
});

test('a key that is no point of the curve is refused', async () => {
  const cases = [2n, 7n, P + 2n, P + 18n].map((y) => ({ ...signed(Buffer.from('text')), key: bytesOf(y) }));
  assert.deepEqual(await accepted(cases), all(cases, false));
});

test('a key to which a point of order 8 was added is accepted for the same texts', async () => {
  // The public key, and a point of order 8 more: S fits if k is a multiple of 8.
  const key = Buffer.from('fbb3211d177bccefd763d01a88f6473e43e5cf0a0740e44ab5c64460eefd4675', 'hex');
  const cases = Array.from({ length: 64 }, (_, number): Case => {
    const text = Buffer.from([number]);
    const k = numberOf(Buffer.from(hash('sha512', Buffer.concat([publicKey, key, text])), 'hex')) % L;
    return { key, signature: Buffer.concat([publicKey, bytesOf((SECRET + k * SECRET) % L)]), text };
  });
  const said = await accepted(cases);
  assert.ok(said.includes(true) && said.includes(false));
});
