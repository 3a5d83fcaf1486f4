const { Refused, Verifier, leafOf, sha256 } = require('./verify.js');
const { compare } = require('./checkpoint.js');

module.exports = { Refused, Verifier, compare, leafOf, sha256 };
