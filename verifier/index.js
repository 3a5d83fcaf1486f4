const { Refused, Verifier, leafOf } = require('./verify.js');
const { compare } = require('./checkpoint.js');
const { sha256 } = require('./sha256.js');

module.exports = { Refused, Verifier, compare, leafOf, sha256 };
