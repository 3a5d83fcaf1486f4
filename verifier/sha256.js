/** SHA-256 (FIPS 180-4). WebCrypto takes one turn of the event loop for each hash, which is far too slow. */

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
  const sums = [a, b, c, d, e, f, g, h];
  for (let at = 0; at < 8; at++) state[at] += sums[at];
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

if (typeof module === 'object') module.exports = { sha256 };
