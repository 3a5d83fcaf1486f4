import ipaddr from 'ipaddr.js';
import type { Service } from '../context.ts';
import { hashSecret } from '../credentials.ts';
import { Problem } from '../operator/problem.ts';
import { countSignIn, deleteAttempts, takeBackAttempt } from './sessions.queries.ts';

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
