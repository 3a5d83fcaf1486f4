import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { invalid, Problem } from '../problem.ts';

/**
 * Passwords as NIST SP 800-63B and OWASP ASVS 5.0 (6.2) recommend: long and not common, but without rules
 * about kinds of characters.
 */

const LENGTH_MIN = 12;
/** A limit on the work of hashing. Passphrases are far shorter. */
const LENGTH_MAX = 256;

/**
 * The cost of scrypt, one of OWASP's recommendations: 32 MiB and about a quarter of a second. Tests lower it.
 */
export const PASSWORD_COST = { N: 2 ** 15, r: 8, p: 3 };
/** scrypt needs this much memory times N and r. */
const SCRYPT_BLOCK_BYTES = 128;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/**
 * The most passwords of one kind that wait for their hash. Each takes a thread and 32 MiB, so they are hashed
 * one at a time.
 */
const WAITING_MAX = 20;
/** The most of them from one network of strangers. */
const WAITING_OF_NETWORK_MAX = 5;

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** Whose password it is: somebody's who has signed in before or holds a link, or a stranger's. */
type Hashing = 'known' | { readonly network: string };

type Waiting = { readonly network: string | null; readonly run: () => Promise<unknown> };

/**
 * The passwords that wait. Those of known devices come first and are counted apart, so that strangers who
 * send many passwords delay them by one hash at most.
 */
const known: Waiting[] = [];
const strangers: Waiting[] = [];
let isHashing = false;

async function hashNext(): Promise<void> {
  if (isHashing) return;
  isHashing = true;
  for (let next = known.shift() ?? strangers.shift(); next; next = known.shift() ?? strangers.shift())
    await next.run();
  isHashing = false;
}

type Cost = { readonly N: number; readonly r: number; readonly p: number };

/** Hashes a password with a salt. @throws Problem `too-many-requests` if too many wait */
async function hashOf(
  password: string,
  salt: Buffer,
  by: Hashing,
  cost: Cost = PASSWORD_COST,
): Promise<Buffer> {
  const network = by === 'known' ? null : by.network;
  const queue = network === null ? known : strangers;
  const isFull =
    queue.length >= WAITING_MAX ||
    (network !== null && queue.filter((each) => each.network === network).length >= WAITING_OF_NETWORK_MAX);
  if (isFull)
    throw new Problem('too-many-requests', 'too many people sign in at once: try again in a moment');
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const maxmem = 2 * SCRYPT_BLOCK_BYTES * cost.N * cost.r;
  // Keyboards send accented letters in different forms, so the text is normalized.
  const run = () =>
    derive(password.normalize('NFKC'), salt, HASH_BYTES, { ...cost, maxmem }).then(resolve, reject);
  queue.push({ network, run });
  void hashNext();
  return promise;
}

/**
 * Returns the hash of a new password, with its salt and its cost.
 * @param other the hash of another account with the same address: with its salt, a password is compared with
 *   both in the time that one takes
 */
export async function hashPassword(password: string, other?: string): Promise<string> {
  const salt = other === undefined || isOutdated(other) ? randomBytes(SALT_BYTES) : readHash(other).salt;
  const { N, r, p } = PASSWORD_COST;
  const hashed = await hashOf(password, salt, 'known');
  return `scrypt$${N}$${r}$${p}$${salt.toString('base64url')}$${hashed.toString('base64url')}`;
}

const NOBODY_SALT = randomBytes(SALT_BYTES);

/** Reads a stored hash, with the cost at which it was made. */
function readHash(hash: string): Cost & { readonly salt: Buffer; readonly expected: Buffer } {
  const [, N, r, p, salt = '', expected = ''] = hash.split('$');
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  return { ...cost, salt: Buffer.from(salt, 'base64url'), expected: Buffer.from(expected, 'base64url') };
}

/**
 * Returns the hashes that a password matches. Those with one salt take the time of one, and so does none (for
 * an unknown account).
 * @throws Problem `too-many-requests` if too many wait
 */
export async function matchingHashes(
  password: string,
  hashes: readonly string[],
  by: Hashing,
): Promise<string[]> {
  if (hashes.length === 0) await hashOf(password, NOBODY_SALT, by);
  const matching: string[] = [];
  for (const alike of Map.groupBy(hashes, (hash) => hash.slice(0, hash.lastIndexOf('$'))).values()) {
    const { salt, expected: _expected, ...cost } = readHash(alike[0] as string);
    const found = await hashOf(password, salt, by, cost);
    matching.push(...alike.filter((hash) => timingSafeEqual(found, readHash(hash).expected)));
  }
  return matching;
}

export async function isPassword(password: string, hash: string | null, by: Hashing): Promise<boolean> {
  return (await matchingHashes(password, hash === null ? [] : [hash], by)).length > 0;
}

/**
 * Whether a hash was made at another cost than new ones. It is then made again when the password is given.
 */
export function isOutdated(hash: string): boolean {
  const { N, r, p } = readHash(hash);
  return N !== PASSWORD_COST.N || r !== PASSWORD_COST.r || p !== PASSWORD_COST.p;
}

let common: Promise<ReadonlySet<string>> | undefined;

/** Reads the list of common passwords when the first password is set. */
async function readCommon(): Promise<ReadonlySet<string>> {
  const text = await readFile(new URL('./common-passwords.txt', import.meta.url), 'utf8');
  return new Set(text.split('\n').filter((line) => !line.startsWith('# ')));
}

/** The words of every account that are tried first, besides the name of its user and of its merchant. */
const CONTEXT = ['scrip', 'voucher', 'password', 'passwort'];
/** Shorter words are parts of many others. */
const WORD_LENGTH_MIN = 3;
/** What has to remain of a password without such words, and without the digits and signs around them. */
const LETTERS_MIN = 8;

/** Whether a password is made of words that its account suggests. */
function isContextual(password: string, words: readonly string[]): boolean {
  const parts = [...CONTEXT, ...words.flatMap((word) => [word, ...word.split(/[^\p{L}\p{N}]/u)])]
    .map((word) => word.toLowerCase())
    .filter((word) => word.length >= WORD_LENGTH_MIN)
    .sort((one, other) => other.length - one.length);
  const rest = parts.reduce((text, word) => text.replaceAll(word, ' '), password.toLowerCase());
  return rest !== password.toLowerCase() && (rest.match(/\p{L}/gu) ?? []).length < LETTERS_MIN;
}

/**
 * Checks a new password.
 * @param words what an attacker knows of its account: address, name, merchant
 * @param field the field of the request that holds it
 * @throws Problem `invalid` if it is too short, too long, common, or made of such words
 */
export async function checkNewPassword(
  password: string,
  words: readonly string[],
  field = 'password',
): Promise<void> {
  const length = [...password].length;
  if (length < LENGTH_MIN) throw invalid(field, 'minLength', `must have at least ${LENGTH_MIN} characters`);
  if (length > LENGTH_MAX) throw invalid(field, 'maxLength', `must have at most ${LENGTH_MAX} characters`);
  common ??= readCommon();
  const isCommon = (await common).has(password.toLowerCase()) || new Set(password).size === 1;
  if (isCommon || isContextual(password, words))
    throw invalid(field, 'common', 'is one of those that are tried first: choose another one');
}
