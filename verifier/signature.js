const { hexOf } = require('./verify.js');

/** The prime of Ed25519. */
const P = 2n ** 255n - 19n;

/** Whether 32 bytes are a point whose order divides 8, or have a y that is too large. */
function isWeak(encoded) {
  const y = BigInt(`0x${hexOf(encoded.toReversed())}`) % 2n ** 255n;
  const square = y * y;
  // The points whose order divides 4 have a y of 0, 1 or -1. Doubling one of order 8 gives a y of 0.
  const ofOrder8 = 121_665n * square * square - 2n * 121_666n * square + 121_666n;
  return y >= P || (y * (square - 1n) * ofOrder8) % P === 0n;
}

/**
 * Whether a signature of Ed25519 is that of a text (RFC 8032, section 5.1.7). Node 20 accepts weak
 * points, and Node 24 does not.
 */
async function isSigned(publicKey, signature, text) {
  if (isWeak(publicKey) || isWeak(signature.slice(0, 32))) return false;
  const key = await crypto.subtle.importKey('raw', publicKey, 'Ed25519', false, ['verify']);
  return crypto.subtle.verify('Ed25519', key, signature, text);
}

module.exports = { isSigned };
