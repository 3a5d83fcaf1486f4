import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';
import type { Service } from '../context.ts';
import { hashSecret } from '../credentials.ts';
import { invalid, Problem } from '../problem.ts';
import { MINUTE_MS } from '../time.ts';
import { countSignIn, deleteAttempts, takeBackAttempt } from './sessions.queries.ts';

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
export const PASSWORD_COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/**
 * The most passwords that wait for their hash. Each takes a thread and 32 MiB, so they are hashed one at a
 * time.
 */
const WAITING_MAX = 20;

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

let waiting = 0;
let last: Promise<unknown> = Promise.resolve();

/** Hashes a password with a salt. @throws Problem `too-many-requests` if too many wait */
async function hashOf(password: string, salt: Buffer): Promise<Buffer> {
  if (waiting >= WAITING_MAX)
    throw new Problem('too-many-requests', 'too many people sign in at once: try again in a moment');
  waiting++;
  // Keyboards send accented letters in different forms, so the text is normalized.
  const hashed = last.then(() => derive(password.normalize('NFKC'), salt, HASH_BYTES, PASSWORD_COST));
  last = hashed.catch(() => {}).finally(() => waiting--);
  return hashed;
}

/** Returns the hash of a new password, with its salt and its cost. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hashed = await hashOf(password, salt);
  const { N, r, p } = PASSWORD_COST;
  return `scrypt$${N}$${r}$${p}$${salt.toString('base64url')}$${hashed.toString('base64url')}`;
}

const NOBODY_SALT = randomBytes(SALT_BYTES);

/**
 * Returns whether a password matches a hash. Without a hash (for an unknown account) it takes the same time.
 * @throws Problem `too-many-requests` if too many wait
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

/** Reads the list of common passwords when the first password is set. */
async function readCommon(): Promise<ReadonlySet<string>> {
  const text = await readFile(new URL('./common-passwords.txt', import.meta.url), 'utf8');
  return new Set(text.split('\n').filter((line) => !line.startsWith('# ')));
}

/**
 * Checks a new password.
 * @param field the field of the request that holds it
 * @throws Problem `invalid` if it is too short, too long, common, or the address of its account
 */
export async function checkNewPassword(password: string, email: string, field = 'password'): Promise<void> {
  const length = [...password].length;
  if (length < LENGTH_MIN) throw invalid(field, 'minLength', `must have at least ${LENGTH_MIN} characters`);
  if (length > LENGTH_MAX) throw invalid(field, 'maxLength', `must have at most ${LENGTH_MAX} characters`);
  common ??= readCommon();
  const isCommon = (await common).has(password.toLowerCase()) || new Set(password).size === 1;
  if (isCommon || password.toLowerCase() === email)
    throw invalid(field, 'common', 'is one of those that are tried first: choose another one');
}

/**
 * The limit on attempts to sign in. Each attempt is counted in the database before it is checked, so parallel
 * attempts, even over several processes, gain nothing. A lock always ends. Attempts with an unknown address
 * are counted and locked in the same way.
 */

/**
 * Five wrong attempts within 15 minutes lock an account for 15 minutes. Each further lock is twice as long,
 * up to a day.
 */
const ACCOUNT = { most: 5, period: '15 minutes', lock: '15 minutes', longest: '24 hours' };
/** Fifty wrong attempts within an hour lock a network for an hour. */
const NETWORK = { most: 50, period: '1 hour', lock: '1 hour', longest: '1 hour' };

/**
 * Returns the network of an address. A customer with IPv6 has a network of 64 bits, so all its addresses
 * count as one.
 */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString();
}

const accountSubject = (email: string) => hashSecret(`account ${email}`);
const networkSubject = (address: string) => hashSecret(`network ${networkOf(address)}`);

export type Attempt = { readonly email: string; readonly address: string };

/**
 * Counts an attempt.
 * @throws Problem `too-many-requests` if the attempt may not be checked
 */
export async function countAttempt({ db, clock }: Service, { email, address }: Attempt): Promise<void> {
  const now = clock();
  const count = async (subject: Buffer, rule: typeof ACCOUNT) => {
    const [row] = await db.query<{ locked_until: Date | null }>(countSignIn(subject, now, rule));
    if (row?.locked_until) throw tooMany(row.locked_until.getTime() - now.getTime());
  };
  await count(networkSubject(address), NETWORK);
  await count(accountSubject(email), ACCOUNT);
}

function tooMany(waitMs: number): Problem {
  const minutes = Math.ceil(waitMs / MINUTE_MS);
  return new Problem(
    'too-many-requests',
    `there were too many attempts: try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}`,
  );
}

/** Removes an attempt with a correct password from the count. Earlier attempts still count. */
export async function takeBack({ db }: Service, { email, address }: Attempt): Promise<void> {
  await db.query(takeBackAttempt(networkSubject(address)));
  await db.query(takeBackAttempt(accountSubject(email)));
}

/** Removes all attempts on an account from the count after a correct second factor. */
export async function forget({ db }: Service, { email, address }: Attempt): Promise<void> {
  await db.query(takeBackAttempt(networkSubject(address)));
  await db.query(deleteAttempts(accountSubject(email)));
}
