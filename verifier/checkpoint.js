/**
 * Compares closings with a published checkpoint (docs/reference/proof.md). Like `verify.js`, it shares no code
 * with the service.
 */

const { isSigned } = require('./signature.js');
const { Tree, bytesOf, encoder, hexOf, leafOf, refuse } = require('./verify.js');
const { sha256 } = require('./sha256.js');

/** The text of a checkpoint, which is signed: origin, size and root. */
const NOTE = /^([!-*,-~]+)\n([1-9]\d{0,8})\n([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)\n$/;
const CLOSING = /^\["scrip closing","([0-9a-f]{64})","(\d{4}-\d\d-\d\d)",/;
/** What the first closing has as the hash of the day before. */
const FIRST = '0'.repeat(64);
/** The kinds of keys, which are their first bytes. */
const [LOG, WITNESS] = [1, 4];
const KEY = /^([!-*,-~]+)\+([0-9a-f]{8})\+((?:A[Q-Za-f]|B[A-P])[A-Za-z0-9+/]{42})$/;
const SIGNATURE = {
  [LOG]: /^[A-Za-z0-9+/]{90}[AEIMQUYcgkosw048]=$/,
  [WITNESS]: /^[A-Za-z0-9+/]{101}[AQgw]==$/,
};

/** Reads a checkpoint. @throws Refused if it is cut off, or `key` is given and did not sign it */
async function openCheckpoint(note, key) {
  const body = note.slice(0, note.indexOf('\n\n') + 1);
  const [, origin, size, root] = NOTE.exec(body) ?? refuse('the checkpoint is cut off, or is none');
  if (key !== undefined) await verifySignature(note, { body, origin, key });
  return { origin, size: Number(size), root: hexOf(bytesOf(root)) };
}

/**
 * Compares the closings of a proof with the published ones, and these with the checkpoint.
 * @param proved the texts of closings
 * @param published the text of the checkpoint, and those of all closings
 * @param key the public key of the installation, `name+id+key`; undefined: no signature is verified
 */
async function compare(proved, { checkpoint, closings }, key) {
  const { origin, size, root } = await openCheckpoint(checkpoint, key);
  if (closings.length < size) refuse(`${origin}: the checkpoint has ${size} days, and fewer are published`);
  const tree = new Tree();
  const leaves = closings.slice(0, size).map(leafOf);
  for (const leaf of leaves) tree.add(leaf);
  if (tree.root() !== root) refuse(`${origin}: the published closings are not those of the checkpoint`);
  if (origin !== `scrip/${hexOf(leaves[0]).slice(0, 16)}`)
    refuse(`${origin} is not the origin of the published closings: they belong to another installation`);
  const byDay = new Map();
  let [last, hash] = ['', FIRST];
  for (const [at, text] of closings.slice(0, size).entries()) {
    const [, previous, day] =
      CLOSING.exec(text) ?? refuse(`line ${at + 1} of what ${origin} published is no closing`);
    if (day <= last || previous !== hash)
      refuse(`${day} does not follow the day before it in what ${origin} published`);
    byDay.set(day, text);
    [last, hash] = [day, hexOf(leaves[at])];
  }
  for (const text of proved) {
    const day = JSON.parse(text)[2];
    if (!byDay.has(day)) refuse(`${day} is not in the checkpoint of ${origin}`);
    if (byDay.get(day) !== text)
      refuse(`${day} is not the day that ${origin} published: there are two histories`);
  }
}

async function verifySignature(note, { body, origin, key }) {
  const [, name, id, data] = KEY.exec(key) ?? refuse('the key is not name+id+key');
  const [kind] = bytesOf(data);
  const ofKey = sha256(Uint8Array.from([...encoder.encode(`${name}\n`), ...bytesOf(data)]));
  if (hexOf(ofKey.subarray(0, 4)) !== id) refuse(`the key ${name}+${id} does not have its own id`);
  const lines = note
    .slice(body.length + 1)
    .split('\n')
    .map((line) => line.split(' '));
  for (const [dash, signer, base64, ...others] of lines) {
    if (dash !== '\u2014' || signer !== name || others.length > 0 || !SIGNATURE[kind].test(base64)) continue;
    const bytes = bytesOf(base64);
    if (hexOf(bytes.subarray(0, 4)) !== id || (kind === LOG && name !== origin)) continue;
    const time = kind === WITNESS ? new DataView(bytes.buffer).getBigUint64(4) : undefined;
    const text = time === undefined ? body : `cosignature/v1\ntime ${time}\n${body}`;
    if (await isSigned(bytesOf(data).subarray(1), bytes.subarray(-64), encoder.encode(text))) return;
    refuse(`the signature of ${name} is not valid: the checkpoint was changed`);
  }
  const reason = kind === LOG ? 'it belongs to another installation' : 'the witness has not confirmed it';
  refuse(`the checkpoint is not signed by the key ${name}+${id}: ${reason}`);
}

module.exports = { compare, openCheckpoint };
