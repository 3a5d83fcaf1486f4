/**
 * Verifies a proof of closed days (docs/reference/proof.md). It needs nothing but JavaScript, and works in
 * Node and in a page. It shares no code with the service.
 */

const VERSION = 1;
const SLICE_US = 900_000_000n;
const HOUR_MS = 3_600_000;
/** Rows whose ids are equal have times less than two hours apart, so their slices are closer than this. */
const IDS_KEPT_US = 9n * SLICE_US;

/** A sentence about what is wrong, and where. */
class Refused extends Error {}

function refuse(sentence) {
  throw new Refused(sentence);
}

// SHA-256 (FIPS 180-4). WebCrypto takes one turn of the event loop for each hash, which is far too slow.

const PRIMES = Array.from({ length: 312 }, (_, at) => at).filter(
  (at) => at > 1 && !Array.from({ length: at }, (_, by) => by).some((by) => by > 1 && at % by === 0),
);
const fraction = (root) => ((root - Math.floor(root)) * 2 ** 32) | 0;
const START = Int32Array.from(PRIMES.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
const ROUND = Int32Array.from(PRIMES.slice(0, 64), (prime) => fraction(Math.cbrt(prime)));
const words = new Int32Array(64);

const rotate = (word, by) => (word >>> by) | (word << (32 - by));

function addBlock(state, view, from) {
  for (let at = 0; at < 16; at++) words[at] = view.getInt32(from + 4 * at);
  for (let at = 16; at < 64; at++) {
    const [early, late] = [words[at - 15], words[at - 2]];
    const first = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const second = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[at] = words[at - 16] + first + words[at - 7] + second;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let at = 0; at < 64; at++) {
    const one =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[at] + words[at]) | 0;
    const two = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + two) | 0;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
  state[5] += f;
  state[6] += g;
  state[7] += h;
}

/** Returns the SHA-256 of bytes. */
function sha256(bytes) {
  const padded = new Uint8Array((Math.floor((bytes.length + 8) / 64) + 1) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length * 8);
  const state = Int32Array.from(START);
  for (let from = 0; from < padded.length; from += 64) addBlock(state, view, from);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, at) => {
    digest.setInt32(4 * at, word);
  });
  return new Uint8Array(digest.buffer);
}

const encoder = new TextEncoder();
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const leafOf = (text) => sha256(encoder.encode(`\0${text}`));

function nodeOf(left, right) {
  const bytes = new Uint8Array(65);
  bytes[0] = 1;
  bytes.set(left, 1);
  bytes.set(right, 33);
  return sha256(bytes);
}

/** A Merkle tree (RFC 6962, section 2.1) that leaves are added to, of which it keeps only what it needs. */
class Tree {
  size = 0;
  /** Complete subtrees, each smaller than the one before it. */
  #subtrees = [];

  add(hash, size = 1) {
    if (this.size % size !== 0) return false;
    this.size += size;
    let joined = { size, hash };
    for (let last = this.#subtrees.at(-1); last?.size === joined.size; last = this.#subtrees.at(-1)) {
      this.#subtrees.pop();
      joined = { size: 2 * last.size, hash: nodeOf(last.hash, joined.hash) };
    }
    this.#subtrees.push(joined);
    return true;
  }

  /** Adds a subtree by its hash in hexadecimal digits. @returns whether it is one, and in its place */
  addHidden(hash, size) {
    const bytes = Uint8Array.from(hash.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
    return bytes.length === 32 && typeof size === 'number' && size >= 1 && this.add(bytes, size);
  }

  /** Returns the root in hexadecimal digits. */
  root() {
    const hashes = this.#subtrees.map((each) => each.hash);
    const last = hashes.pop();
    return hexOf(
      last ? hashes.reduceRight((right, left) => nodeOf(left, right), last) : sha256(new Uint8Array(0)),
    );
  }
}

/** Verifies a proof line by line. Every method throws `Refused` with a sentence. */
class Verifier {
  #header;
  /** The kinds of the accounts that have been named. */
  #kinds = new Map();
  #slices = new Tree();
  #slice;
  #sliceEndUs = 0n;
  /** The name of the last slice. */
  #place = 'before the first slice';
  /** Ids of the last hours: older ones, and newer ones since a time. */
  #ids = [new Set(), new Set()];
  #idsSinceUs = 0n;
  #dayRows = 0;
  #firstId = '';
  #lastId = '';
  /** Rows whose time is not in their slice. */
  #late = new Set();
  /** By currency and account kind. */
  #sums = new Map();
  /** Closing balances of the day before. */
  #balances = new Map();
  #last;
  #days = 0;
  #rows = 0;
  #lateRows = 0;
  #number = 0;
  closings = [];

  line(text) {
    this.#number++;
    const { proof, account, slice, row, hidden, closing, ...more } = this.#parse(text);
    if (!this.#header) this.#begin(proof, more);
    else if (typeof account === 'string') this.#kinds.set(account, String(more.kind));
    else if (typeof slice === 'string') this.#beginSlice(slice);
    else if (typeof row === 'string') this.#addRow(row);
    else if (typeof hidden === 'string') this.#addHidden(hidden, more.size);
    else if (typeof closing === 'string') this.#close(closing, more.totals);
    else refuse(`line ${this.#number} is not a line of a proof`);
    if (this.#slice?.tree.size === this.#slice?.rows) this.#endSlice();
  }

  /** Returns the sentence that says what was proved. */
  end() {
    const { to } = this.#header ?? refuse('the file is empty');
    const last = this.#last;
    if (this.#slice || this.#slices.size > 0 || !last || dayAfter(last.day) !== to)
      return refuse(`the file is cut off: it ends before the closing of the day before ${to}`);
    const shown = `${count(this.#rows, 'row')}${this.#showsAll ? '' : ' shown, others hidden'}`;
    const late = this.#lateRows > 0 ? `, of which ${this.#lateRows} late` : '';
    const days = count(this.#days, 'closed day');
    return `verified: ${days} up to ${last.day}, ${shown}${late}; closing hash ${last.hash}`;
  }

  get #showsAll() {
    return this.#header?.shows !== 'some';
  }

  #parse(text) {
    try {
      const line = JSON.parse(text);
      if (line !== null && typeof line === 'object') return line;
    } catch {
      // Reported below.
    }
    return refuse(`line ${this.#number} is cut off or is no JSON object`);
  }

  #begin(proof, { from, to, shows }) {
    if (proof === undefined) refuse('the file is no proof: its first line has no version');
    if (proof !== VERSION)
      refuse(`the proof has version ${proof}, and this program verifies version ${VERSION}`);
    this.#header = { from, to, shows };
  }

  #beginSlice(text) {
    this.#requireNoSlice();
    const [start, rows, root] = text.split('|');
    const startsUs = BigInt(Date.parse(start)) * 1000n;
    const name = `slice ${start}`;
    if (startsUs % SLICE_US !== 0n) refuse(`${name} does not begin at a quarter of an hour`);
    if (startsUs < this.#sliceEndUs) refuse(`${name} is there twice, or not in its place`);
    this.#sliceEndUs = startsUs + SLICE_US;
    this.#place = name;
    if (startsUs - this.#idsSinceUs > IDS_KEPT_US) {
      this.#ids = [this.#ids[1], new Set()];
      this.#idsSinceUs = startsUs;
    }
    this.#slice = { text, name, startsUs, rows: Number(rows), root, tree: new Tree() };
  }

  #requireNoSlice() {
    if (!this.#slice) return;
    const { name, rows, tree } = this.#slice;
    refuse(`${name}: ${count(rows, 'row')} closed, but ${count(tree.size, 'row')} are in the file`);
  }

  #addRow(text) {
    const slice = this.#slice ?? refuse(`${this.#place}: a row was added`);
    const [id, kind, debit, credit, amount, currency, time] = text.split('|', 7);
    const where = `${slice.name}, row ${id} (${kind})`;
    if (!/^[1-9]\d*$/.test(amount) || !/^\d+$/.test(time)) refuse(`${where} is not the text of a row`);
    slice.tree.add(leafOf(text));
    const us = BigInt(time);
    const idMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    if (!(Math.abs(idMs - Number(us / 1000n)) <= HOUR_MS)) refuse(`${where} has the id of another time`);
    if (this.#ids.some((ids) => ids.has(id)) || this.#late.has(id)) refuse(`${where} is there twice`);
    this.#ids[1].add(id);
    if (us < slice.startsUs) this.#late.add(id);
    else if (us >= slice.startsUs + SLICE_US) refuse(`${where} is of a later time: it was moved`);
    this.#firstId ||= id;
    this.#lastId = id;
    this.#rows++;
    const minor = BigInt(amount);
    this.#sum(currency, this.#kindOf(debit)).debits += minor;
    this.#sum(currency, this.#kindOf(credit)).credits += minor;
  }

  #kindOf(account) {
    if (Number(account) > 10_000_000_000) return 'VOUCHER';
    if (Number(account) >= 5_000_000_000) return 'RESERVE';
    return this.#kinds.get(account) ?? `account ${account}`;
  }

  #sum(currency, kind) {
    const key = `${currency} ${kind}`;
    const sum = this.#sums.get(key) ?? { debits: 0n, credits: 0n };
    this.#sums.set(key, sum);
    return sum;
  }

  #addHidden(hash, size) {
    if (this.#showsAll) refuse(`line ${this.#number}: rows are hidden in a proof that shows all`);
    if (!(this.#slice?.tree ?? this.#slices).addHidden(hash, size))
      refuse(`line ${this.#number}: a hidden part is not in its place`);
  }

  #endSlice() {
    if (!this.#slice) return;
    const { text, name, rows, root, tree } = this.#slice;
    if (tree.root() !== root) refuse(`${name}: a row is not the one that was closed`);
    this.#slices.add(leafOf(text));
    this.#dayRows += rows;
    this.#slice = undefined;
  }

  #close(text, totals) {
    this.#requireNoSlice();
    const [what, before, day, startsAt, endsAt, , rows, firstId, lastId, root, totalsHash, version] =
      this.#parse(text);
    if (what !== 'scrip closing') refuse(`line ${this.#number} is not the text of a closing`);
    if (version !== VERSION)
      refuse(`${day} was closed by version ${version}, and this program verifies ${VERSION}`);
    if (this.#slices.root() !== root) refuse(`${day}: a slice is not the one that was closed, or is missing`);
    if (this.#last ? this.#last.hash !== before : day !== this.#header?.from)
      refuse(`${day} does not follow the day before it: a closing was removed, changed or added`);
    if (this.#last && this.#last.endsAt !== startsAt)
      refuse(`${day} does not begin when the day before it ends`);
    if (this.#sliceEndUs > BigInt(Date.parse(endsAt)) * 1000n)
      refuse(`${day} contains a slice of a later day`);
    if (this.#showsAll) {
      if (rows !== String(this.#dayRows)) refuse(`${day} was closed with ${rows} rows, not ${this.#dayRows}`);
      if ((firstId ?? '') !== this.#firstId || (lastId ?? '') !== this.#lastId)
        refuse(`${day} was closed with another first or last row`);
      if (typeof totals !== 'string') refuse(`${day}: the totals are missing`);
      if (hexOf(sha256(encoder.encode(String(totals)))) !== totalsHash)
        refuse(`${day}: the totals are not those that were closed`);
      this.#compareTotals(day, this.#parse(String(totals)));
    }
    this.#lateRows += this.#late.size;
    this.#last = { day, endsAt, hash: hexOf(leafOf(text)) };
    this.closings.push(text);
    this.#days++;
    this.#beginDay();
  }

  #beginDay() {
    this.#slices = new Tree();
    this.#dayRows = 0;
    this.#firstId = this.#lastId = '';
    this.#late = new Set();
    this.#sums = new Map();
  }

  /** Compares the trial balance and the late rows with those of the rows themselves. */
  #compareTotals(day, { balances, late, checks }) {
    const known = new Set(late);
    for (const id of this.#late)
      if (!known.has(id)) refuse(`${day}: row ${id} was moved here from another time`);
    const failed = checks.filter((each) => each.differing.length > 0);
    if (failed.length > 0) refuse(`${day} was closed although a check had failed: ${failed[0].name}`);
    const inAll = new Map();
    const after = new Map();
    for (const { currency, account_kind, opening, debits, credits, closing } of balances) {
      const key = `${currency} ${account_kind}`;
      const sum = this.#sum(currency, account_kind);
      if (String(sum.debits) !== debits || String(sum.credits) !== credits)
        refuse(`${day}: the rows do not add up to the totals of ${key}`);
      if (this.#days > 0 && (this.#balances.get(key) ?? '0') !== opening)
        refuse(`${day}: ${key} does not open with what it closed with the day before`);
      if (BigInt(opening) + BigInt(credits) - BigInt(debits) !== BigInt(closing))
        refuse(`${day}: the closing balance of ${key} is wrong`);
      after.set(key, closing);
      inAll.set(currency, (inAll.get(currency) ?? 0n) + BigInt(closing));
    }
    for (const [currency, sum] of inAll)
      if (sum !== 0n) refuse(`${day}: the balances in ${currency} do not add up to 0`);
    for (const key of this.#sums.keys()) if (!after.has(key)) refuse(`${day}: the totals lack ${key}`);
    for (const [key, balance] of this.#balances)
      if (balance !== '0' && !after.has(key)) refuse(`${day}: the balance of ${key} is lost`);
    this.#balances = after;
  }
}

const count = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;

function dayAfter(day) {
  return new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
}

const bytesOf = (base64) => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));

/** Reads a checkpoint. @throws Refused if it is cut off, or `key` is given and did not sign it */
async function openCheckpoint(note, key) {
  const body = note.slice(0, note.indexOf('\n\n') + 1);
  const [origin, size, root] = body.split('\n');
  if (!root || !/^[1-9]\d*$/.test(size)) refuse('the checkpoint is cut off');
  if (key !== undefined) await verifySignature(note, body, key);
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
  for (const text of closings.slice(0, size)) tree.add(leafOf(text));
  if (tree.root() !== root) refuse(`${origin}: the published closings are not those of the checkpoint`);
  const byDay = new Map(closings.slice(0, size).map((text) => [JSON.parse(text)[2], text]));
  for (const text of proved) {
    const day = JSON.parse(text)[2];
    if (!byDay.has(day)) refuse(`${day} is not in the checkpoint of ${origin}`);
    if (byDay.get(day) !== text)
      refuse(`${day} is not the day that ${origin} published: there are two histories`);
  }
}

async function verifySignature(checkpoint, body, key) {
  const [, name, id, data] =
    /^([^+\s]+)\+([0-9a-f]{8})\+(\S+)$/.exec(key.trim()) ?? refuse('the key is not name+id+key');
  for (const line of checkpoint.slice(body.length + 1).split('\n')) {
    const [dash, signer, base64] = line.split(' ');
    if (dash !== '\u2014' || signer !== name) continue;
    const bytes = bytesOf(base64);
    if (hexOf(bytes.subarray(0, 4)) !== id) continue;
    const publicKey = await crypto.subtle.importKey('raw', bytesOf(data).subarray(1), 'Ed25519', false, [
      'verify',
    ]);
    if (await crypto.subtle.verify('Ed25519', publicKey, bytes.subarray(4), encoder.encode(body))) return;
    refuse(`the signature of ${name} is not valid: the checkpoint was changed`);
  }
  refuse(`the checkpoint is not signed by the key ${name}+${id}: it belongs to another installation`);
}

if (typeof module === 'object')
  module.exports = { Refused, Tree, Verifier, compare, hexOf, leafOf, openCheckpoint, refuse, sha256 };
