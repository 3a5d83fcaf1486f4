import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { invalid, Problem } from '../operator/problem.ts';

/**
 * Passwords, as NIST SP 800-63B and OWASP ASVS 5.0 (6.2) ask for: long, not common, without rules of
 * composition.
 */

const LENGTH_MIN = 12;
/** A bound on the work; a passphrase is far shorter. */
const LENGTH_MAX = 256;

/** One of OWASP's settings for scrypt: 32 MiB and about a quarter of a second. Tests lower it. */
export const PASSWORD_COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/**
 * Passwords that may wait for their hash. Each takes a thread and 32 MiB, so that one is hashed at a time.
 */
const WAITING_MAX = 20;

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

let waiting = 0;
let last: Promise<unknown> = Promise.resolve();

/** @throws Problem `too-many-requests` where too many wait */
async function hashOf(password: string, salt: Buffer): Promise<Buffer> {
  if (waiting >= WAITING_MAX)
    throw new Problem('too-many-requests', 'too many people sign in at once: try again in a moment');
  waiting++;
  // One spelling of a letter with an accent, whatever the keyboard sends.
  const hashed = last.then(() => derive(password.normalize('NFKC'), salt, HASH_BYTES, PASSWORD_COST));
  last = hashed.catch(() => {}).finally(() => waiting--);
  return hashed;
}

/** The hash of a new password, with its salt and its cost. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hashed = await hashOf(password, salt);
  const { N, r, p } = PASSWORD_COST;
  return `scrypt$${N}$${r}$${p}$${salt.toString('base64url')}$${hashed.toString('base64url')}`;
}

const NOBODY_SALT = randomBytes(SALT_BYTES);

/**
 * Whether a password is that of a hash. Without a hash, for an account that does not exist, it takes the same
 * time.
 * @throws Problem `too-many-requests` where too many wait
 */
export async function isPassword(password: string, hash: string | null): Promise<boolean> {
  const [, , , , salt, expected] = hash?.split('$') ?? [];
  if (salt === undefined || expected === undefined) {
    await hashOf(password, NOBODY_SALT);
    return false;
  }
  const hashed = await hashOf(password, Buffer.from(salt, 'base64url'));
  return timingSafeEqual(hashed, Buffer.from(expected, 'base64url'));
}

let common: Promise<ReadonlySet<string>> | undefined;

/** Read when the first password is set. */
async function readCommon(): Promise<ReadonlySet<string>> {
  const text = await readFile(new URL('./common-passwords.txt', import.meta.url), 'utf8');
  return new Set(text.split('\n').filter((line) => !line.startsWith('# ')));
}

/**
 * @throws Problem `invalid` where a password is too short, too long, common, or the address of its account
 */
export async function checkNewPassword(password: string, email: string): Promise<void> {
  const length = [...password].length;
  if (length < LENGTH_MIN)
    throw invalid('password', 'minLength', `must have at least ${LENGTH_MIN} characters`);
  if (length > LENGTH_MAX)
    throw invalid('password', 'maxLength', `must have at most ${LENGTH_MAX} characters`);
  common ??= readCommon();
  const isCommon = (await common).has(password.toLowerCase()) || new Set(password).size === 1;
  if (isCommon || password.toLowerCase() === email)
    throw invalid('password', 'common', 'is one of those that are tried first: choose another one');
}
