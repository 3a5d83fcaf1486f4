import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import ipaddr from 'ipaddr.js';
import type { Service } from '../context.ts';
import { hashSecret } from '../credentials.ts';
import { invalid, Problem } from '../operator/problem.ts';
import { countSignIn, deleteAttempts, takeBackAttempt } from './sessions.queries.ts';

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

/**
 * Attempts to sign in, counted in the database before each is checked: a thousand at once, in however many
 * processes, are no more than one after another. A lock always ends. An address that belongs to nobody is
 * counted, and locked, like every other.
 */

/**
 * Five wrong ones in a quarter of an hour lock an account for that long, then for twice as long, up to a day.
 */
const ACCOUNT = { most: 5, period: '15 minutes', lock: '15 minutes', longest: '24 hours' };
/** Fifty wrong ones in an hour lock a network for the next hour. */
const NETWORK = { most: 50, period: '1 hour', lock: '1 hour', longest: '1 hour' };

const MINUTE_MS = 60_000;

/** An IPv6 customer has a network of 64 bits: all its addresses count as one. */
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
 * @throws Problem `too-many-requests` where it may not be checked
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

/** A right password: the attempt does not count any more, earlier ones still do. */
export async function takeBack({ db }: Service, { email, address }: Attempt): Promise<void> {
  await db.query(takeBackAttempt(networkSubject(address)));
  await db.query(takeBackAttempt(accountSubject(email)));
}

/** A right second factor: earlier attempts on the account are forgotten. */
export async function forget({ db }: Service, { email, address }: Attempt): Promise<void> {
  await db.query(takeBackAttempt(networkSubject(address)));
  await db.query(deleteAttempts(accountSubject(email)));
}
