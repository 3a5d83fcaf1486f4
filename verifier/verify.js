/**
 * Verifies a proof of closed days (docs/reference/proof.md). It needs nothing but JavaScript, and works in
 * Node and in a page. It shares no code with the service.
 */

/** The version of the file. */
const VERSION = '2';
/** The version of the computations. */
const CLOSING_VERSION = '1';
const SLICE_US = 900_000_000n;
const HOUR_MS = 3_600_000;
/** Rows whose ids are equal have times less than two hours apart, so their slices are closer than this. */
const IDS_KEPT_US = 9n * SLICE_US;
/** The number of the first account of a batch. Greater ones belong to batches and vouchers. */
const FIRST_RESERVE = 5_000_000_000;

// The values of lines.
const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const NUMBER = String.raw`(?:0|[1-9]\d{0,18})`;
const LAST_OF_HASH = '[AEIMQUYcgkosw048]=';
const HASH = `([A-Za-z0-9+/]{42}${LAST_OF_HASH})`;
const ID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const ACCOUNT = /^(0|[1-9]\d{0,9}) ([A-Z_]+)$/;
const SLICE = new RegExp(String.raw`^(${TIME})\|([1-9]\d{0,9})(?:\|([0-9a-f]{64}))?$`);
const ROW = new RegExp(
  String.raw`^(${ID})\|([A-Z_]+)\|(${NUMBER})\|(${NUMBER})\|([1-9]\d{0,18})\|([A-Z]{3})\|(${NUMBER})\|` +
    String.raw`${NUMBER}?\|(?:${ID})?\|${NUMBER}?\|${NUMBER}?\|[^|]*\|`,
);
const HIDDEN = new RegExp(
  `^([1-9]\\d{0,9}) ((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}${LAST_OF_HASH})?)$`,
);
const CLOSING = new RegExp(
  String.raw`^(\d+)\|${HASH}\|(\d{4}-\d\d-\d\d)\|(${TIME})\|(${TIME})\|([\w/+-]+)\|(${NUMBER})\|` +
    String.raw`(${ID})?\|(${ID})?\|${HASH}\|${HASH}\|(${TIME})$`,
);
const BALANCE = ['opening', 'debits', 'credits', 'closing']
  .map((name) => `"${name}":"(?:0|-?[1-9]\\d{0,18})"`)
  .join();
const TOTALS = new RegExp(
  String.raw`^\{"balances":\[(?:\{"currency":"[A-Z]{3}","account_kind":"[A-Z_]+",${BALANCE}\},?)*\],` +
    String.raw`"aggregates":\{(?:"[a-z_]+":"[0-9a-f]{64}",?)*\},"ages":"[0-9a-f]{64}",` +
    String.raw`"checks":\[(?:\{"name":"[^"\\]*","differing":\[(?:[^\]\s][^\]]*)?\]\},?)*\],` +
    String.raw`"late":\[(?:"${ID}",?)*\]\}$`,
);

/** A sentence about what is wrong, and where. */
class Refused extends Error {}

function refuse(sentence) {
  throw new Refused(sentence);
}

// A page loads the other file before this one.
const digest = typeof module === 'object' ? require('./sha256.js').sha256 : sha256;
const encoder = new TextEncoder();
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const leafOf = (text) => digest(encoder.encode(`\0${text}`));

function nodeOf(left, right) {
  const bytes = new Uint8Array(65);
  bytes[0] = 1;
  bytes.set(left, 1);
  bytes.set(right, 33);
  return digest(bytes);
}

/** A Merkle tree (RFC 6962, section 2.1) that leaves are added to, of which it keeps only what it needs. */
class Tree {
  size = 0;
  /** Complete subtrees, each smaller than the one before it; at the end perhaps one that is not complete. */
  #subtrees = [];

  /** @returns false behind the end of the tree */
  add(hash, size = 1) {
    let last = this.#subtrees.at(-1);
    if (!Number.isInteger(Math.log2(last?.size ?? 1))) return false;
    this.size += size;
    let joined = { size, hash };
    for (; last?.size === joined.size; last = this.#subtrees.at(-1)) {
      this.#subtrees.pop();
      joined = { size: 2 * last.size, hash: nodeOf(last.hash, joined.hash) };
    }
    this.#subtrees.push(joined);
    return true;
  }

  /** Adds a hidden part: the number of its leaves, and hashes. @returns whether it is one, and in its place */
  addHidden(text) {
    const [, leaves, base64] = HIDDEN.exec(text) ?? [];
    const hashes = base64 ? bytesOf(base64) : [];
    let [left, from] = [Number(leaves), 0];
    for (; left > 0 && from < hashes.length; from += 32) {
      let size = 1;
      while (2 * size <= left && this.size % (2 * size) === 0) size *= 2;
      // The last hash may stand for all leaves up to the end of the tree.
      if (from + 32 === hashes.length && this.size % (2 * size) === 0) size = left;
      if (!this.add(hashes.subarray(from, from + 32), size)) return false;
      left -= size;
    }
    return left === 0 && from === hashes.length;
  }

  /** Returns the root in hexadecimal digits. */
  root() {
    const hashes = this.#subtrees.map((each) => each.hash);
    const last = hashes.pop();
    return hexOf(
      last ? hashes.reduceRight((right, left) => nodeOf(left, right), last) : digest(new Uint8Array(0)),
    );
  }
}

/** Verifies a proof. Every method throws `Refused` with a sentence. */
class Verifier {
  #header;
  /** The end of what was read, without a line feed. */
  #rest = '';
  /** The kinds of the accounts that have been named. */
  #kinds = new Map();
  #slices = new Tree();
  /** The beginning of the first slice of the day. */
  #firstSlice;
  #slice;
  #sliceEndUs = 0n;
  /** The name of the last slice. */
  #place = 'before the first slice';
  /** Ids of the last hours: older ones, and newer ones since a time. */
  #ids = [new Set(), new Set()];
  #idsSinceUs = 0n;
  /** The ends of all ids, by their hour: a late row may repeat a row of any day. */
  #ends = new Map();
  #dayRows = 0;
  #firstId = '';
  #lastId = '';
  /** Rows whose time is not in their slice. */
  #late = new Set();
  /** By currency and account kind. */
  #sums = new Map();
  #totals;
  /** Closing balances of the day before. */
  #balances = new Map();
  #last;
  #days = 0;
  #rows = 0;
  #lateRows = 0;
  #number = 0;
  closings = [];

  /** Takes the next part of the file. */
  piece(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    for (const line of lines) this.line(line);
  }

  line(text) {
    this.#number++;
    const at = text.indexOf(' ');
    const [name, rest] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)];
    if (!this.#header) this.#begin(text);
    else if (name === 'closing') this.#close(rest);
    else if (this.#totals !== undefined) this.#refuseLine();
    else if (name === 'account') this.#nameAccount(rest);
    else if (name === 'slice') this.#beginSlice(rest);
    else if (name === 'row') this.#addRow(rest);
    else if (name === '-') this.#addHidden(rest);
    else if (name === 'totals' && this.#showsAll) this.#totals = rest;
    else this.#refuseLine();
    if (this.#slice?.tree.size >= this.#slice?.rows) this.#endSlice();
  }

  #refuseLine() {
    refuse(`line ${this.#number} is cut off, or is no line of a proof`);
  }

  /** Returns the sentence that says what was proved. */
  end() {
    if (this.#rest) refuse(`the file is cut off: line ${this.#number + 1} has no line feed at its end`);
    const { to } = this.#header ?? refuse('the file is empty');
    const last = this.#last;
    if (
      this.#slice ||
      this.#slices.size > 0 ||
      this.#totals !== undefined ||
      !last ||
      dayAfter(last.day) !== to
    )
      return refuse(`the file is cut off: it ends before the closing of the day before ${to}`);
    const shown = `${count(this.#rows, 'row')}${this.#showsAll ? '' : ' shown, others hidden'}`;
    const late = this.#lateRows > 0 ? `, of which ${this.#lateRows} late` : '';
    const days = count(this.#days, 'closed day');
    return `verified: ${days} up to ${last.day}, ${shown}${late}; closing hash ${last.hash}`;
  }

  get #showsAll() {
    return this.#header?.shows !== 'some';
  }

  #begin(text) {
    const [name, what, version, shows, from, to, ...more] = text.split(' ');
    if (name !== 'scrip' || what !== 'proof')
      refuse('the file is no proof: its first line does not begin with "scrip proof"');
    if (version !== VERSION)
      refuse(`the proof has version ${version}, and this program verifies version ${VERSION}`);
    if (!to || more.length > 0 || (shows !== 'all' && shows !== 'some')) this.#refuseLine();
    this.#header = { from, to, shows };
  }

  #nameAccount(text) {
    const [, account, kind] = ACCOUNT.exec(text) ?? this.#refuseLine();
    if (!this.#showsAll || Number(account) >= FIRST_RESERVE) this.#refuseLine();
    if (this.#kinds.has(account)) refuse(`line ${this.#number}: account ${account} is named twice`);
    this.#kinds.set(account, kind);
  }

  #beginSlice(text) {
    this.#requireNoSlice();
    const [, start, rows, root] = SLICE.exec(text) ?? this.#refuseLine();
    if ((root !== undefined) !== this.#showsAll) this.#refuseLine();
    const startsUs = usOf(start);
    const name = `slice ${start}`;
    if (startsUs % SLICE_US !== 0n) refuse(`${name} does not begin at a quarter of an hour`);
    if (startsUs < this.#sliceEndUs) refuse(`${name} is there twice, or not in its place`);
    this.#sliceEndUs = startsUs + SLICE_US;
    this.#firstSlice ??= start;
    this.#place = name;
    if (startsUs - this.#idsSinceUs > IDS_KEPT_US) {
      this.#ids = [this.#ids[1], new Set()];
      this.#idsSinceUs = startsUs;
    }
    this.#slice = { name, start, startsUs, rows: Number(rows), root, tree: new Tree(), lastUs: -1n };
  }

  #requireNoSlice() {
    if (!this.#slice) return;
    const { name, rows, tree } = this.#slice;
    refuse(`${name}: ${count(rows, 'row')} closed, but ${count(tree.size, 'row')} are in the file`);
  }

  #addRow(text) {
    const slice = this.#slice ?? refuse(`${this.#place}: a row was added`);
    const [, id, kind, debit, credit, amount, currency, time] = ROW.exec(text) ?? [];
    if (!id) refuse(`${slice.name}: line ${this.#number} is not the text of a row`);
    const where = `${slice.name}, row ${id} (${kind})`;
    if (!slice.tree.add(leafOf(text))) refuse(`${where} was added`);
    const us = BigInt(time);
    const idMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    if (!(Math.abs(idMs - Number(us / 1000n)) <= HOUR_MS)) refuse(`${where} has the id of another time`);
    const isLate = us < slice.startsUs;
    const hour = Math.floor(idMs / HOUR_MS);
    let ends = this.#ends.get(hour) ?? [];
    const end = Number.parseInt(id.slice(24), 16);
    // A list takes less memory, and a set is searched quickly.
    if (isLate && Array.isArray(ends)) ends = new Set(ends);
    if (this.#ids.some((ids) => ids.has(id)) || (isLate && ends.has(end))) refuse(`${where} is there twice`);
    this.#ids[1].add(id);
    if (Array.isArray(ends)) ends.push(end);
    else ends.add(end);
    this.#ends.set(hour, ends);
    if (isLate) this.#late.add(id);
    if (us >= slice.startsUs + SLICE_US) refuse(`${where} is of a later time: it was moved`);
    if (us < slice.lastUs || (us === slice.lastUs && id < this.#lastId))
      refuse(`${where} is not in its place`);
    slice.lastUs = us;
    this.#firstId ||= id;
    this.#lastId = id;
    this.#rows++;
    const minor = BigInt(amount);
    this.#sum(currency, this.#kindOf(debit)).debits += minor;
    this.#sum(currency, this.#kindOf(credit)).credits += minor;
  }

  #kindOf(account) {
    if (Number(account) > 10_000_000_000) return 'VOUCHER';
    if (Number(account) >= FIRST_RESERVE) return 'RESERVE';
    return this.#kinds.get(account) ?? `account ${account}`;
  }

  #sum(currency, kind) {
    const key = `${currency} ${kind}`;
    const sum = this.#sums.get(key) ?? { debits: 0n, credits: 0n };
    this.#sums.set(key, sum);
    return sum;
  }

  #addHidden(text) {
    if (this.#showsAll) refuse(`line ${this.#number}: rows are hidden in a proof that shows all`);
    if (!(this.#slice?.tree ?? this.#slices).addHidden(text))
      refuse(`line ${this.#number}, ${this.#place}: a hidden part is cut off, or not in its place`);
  }

  #endSlice() {
    const { name, start, rows, root, tree } = this.#slice;
    if (tree.size > rows) refuse(`${name} has more rows than were closed`);
    const found = tree.root();
    if (root !== undefined && found !== root) refuse(`${name}: a row is not the one that was closed`);
    if (!this.#slices.add(leafOf(`${start}|${rows}|${found}`))) refuse(`${name} was added`);
    this.#dayRows += rows;
    this.#slice = undefined;
  }

  #close(text) {
    this.#requireNoSlice();
    const [, version, ...values] = CLOSING.exec(text) ?? this.#refuseLine();
    for (const at of [0, 8, 9]) values[at] = hexOf(bytesOf(values[at]));
    const [before, day, startsAt, endsAt, , rows, firstId, lastId, root, totalsHash, closedAt] = values;
    if (version !== CLOSING_VERSION)
      refuse(`${day} was closed by version ${version}, and this program verifies ${CLOSING_VERSION}`);
    if (this.#slices.root() !== root)
      refuse(`${day}: a row or a slice is not the one that was closed, or is missing`);
    const last = this.#last;
    if (last ? last.hash !== before || dayAfter(last.day) !== day : day !== this.#header.from)
      refuse(`${day} does not follow the day before it: a closing was removed, changed or added`);
    if (last && last.endsAt !== startsAt) refuse(`${day} does not begin when the day before it ends`);
    usOf(closedAt);
    if (usOf(startsAt) >= usOf(endsAt)) refuse(`${day} ends before it begins`);
    if (this.#firstSlice < startsAt) refuse(`${day} contains a slice of an earlier day`);
    if (this.#sliceEndUs > usOf(endsAt)) refuse(`${day} contains a slice of a later day`);
    if (this.#showsAll) {
      if (rows !== String(this.#dayRows)) refuse(`${day} was closed with ${rows} rows, not ${this.#dayRows}`);
      if ((firstId ?? '') !== this.#firstId || (lastId ?? '') !== this.#lastId)
        refuse(`${day} was closed with another first or last row`);
      const totals = this.#totals ?? refuse(`${day}: the totals are missing`);
      if (hexOf(digest(encoder.encode(totals))) !== totalsHash)
        refuse(`${day}: the totals are not those that were closed`);
      if (!TOTALS.test(totals)) refuse(`${day}: the totals are not in their form`);
      this.#compareTotals(day, JSON.parse(totals));
    }
    const closing = JSON.stringify(['scrip closing', ...values.slice(0, 10), Number(version), closedAt]);
    this.#lateRows += this.#late.size;
    this.#last = { day, endsAt, hash: hexOf(leafOf(closing)) };
    this.closings.push(closing);
    this.#days++;
    this.#beginDay();
  }

  #beginDay() {
    this.#slices = new Tree();
    this.#dayRows = 0;
    this.#firstId = this.#lastId = '';
    this.#firstSlice = this.#totals = undefined;
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
      if (after.has(key)) refuse(`${day}: the totals have ${key} twice`);
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

/** Refuses what `Date` takes for another time, such as 30 February. */
function usOf(time) {
  const ms = Date.parse(time);
  return ms >= 0 && new Date(ms).toISOString() === time ? BigInt(ms) * 1000n : refuse(`${time} is no time`);
}

const dayAfter = (day) =>
  new Date(Number(usOf(`${day}T00:00:00.000Z`) / 1000n) + 86_400_000).toISOString().slice(0, 10);
const bytesOf = (base64) => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));

if (typeof module === 'object')
  module.exports = { Refused, Tree, Verifier, bytesOf, encoder, hexOf, leafOf, refuse };
