import { recordRefusal, UNKNOWN_ACCOUNT } from '../audit/refusals.ts';
import type { Actor, RefusedEvent, Service } from '../context.ts';
import { hashSecret } from '../credentials.ts';
import { sql } from '../db/sql.ts';
import { networkOf } from '../network.ts';
import { Problem } from '../problem.ts';
import { MINUTE_MS } from '../time.ts';
import type { Device } from './devices.ts';
import { actorOfUser, type Door, type Origin, type Session, type SignedIn } from './sessions.ts';

/**
 * The limits on attempts to sign in and to step up. Each attempt is counted in the database before it is
 * checked, so parallel attempts, even over several processes, gain nothing. A lock always ends. Attempts with
 * an unknown address are counted and locked in the same way.
 *
 * Sessions and known devices have limits of their own: strangers who guess lock out each other, but nobody
 * who has signed in before (docs/how-to/people.md, "Locks").
 */

type Rule = {
  readonly most: number;
  readonly period: string;
  readonly lock: string;
  readonly longest: string;
};

/**
 * The limit of a guesser: five wrong attempts within 15 minutes start a lock of 15 minutes. Each further lock
 * is twice as long, up to a day.
 */
const GUESSER: Rule = { most: 5, period: '15 minutes', lock: '15 minutes', longest: '24 hours' };
/** The limit of an account: twenty wrong attempts within an hour, from all networks or sessions together. */
const ACCOUNT: Rule = { most: 20, period: '1 hour', lock: '1 hour', longest: '1 hour' };
/** The limit of a network: fifty wrong attempts within an hour, on any accounts. */
const NETWORK: Rule = { most: 50, period: '1 hour', lock: '1 hour', longest: '1 hour' };

/** What an attempt counts against. The first lock that is found refuses it. */
type Limits = readonly (readonly [subject: readonly (string | number | bigint)[], rule: Rule])[];

const ofDevice = ({ userId, id }: Device): Limits => [[['device', userId, id], GUESSER]];

/**
 * Returns the limits for a password. They are those of a door, since the owner of an account at one door must
 * not gain guesses at another one, nor lock anybody out of it.
 */
export function passwordLimits({
  door,
  email,
  address,
  device,
}: {
  readonly door: Door;
  readonly email: string;
  readonly address: string;
  /** The known device of the account from which the attempt comes. */
  readonly device?: Device | undefined;
}): Limits {
  if (device) return ofDevice(device);
  const network = networkOf(address);
  return [
    [['network', network], NETWORK],
    [['password', door, email, network], GUESSER],
    [['password', door, email], ACCOUNT],
  ];
}

/**
 * Returns the limits for a second factor, once the password was right. A code has six digits, so all unknown
 * devices together have the limit of one.
 */
export function factorLimits({
  userId,
  address,
  device,
}: {
  readonly userId: number;
  readonly address: string;
  readonly device: Device | undefined;
}): Limits {
  if (device) return ofDevice(device);
  return [
    [['network', networkOf(address)], NETWORK],
    [['factor', userId], GUESSER],
  ];
}

/** Returns the limits for what a user gives again in a session: a second factor, or the password. */
function sessionLimits({ id, user }: Session): Limits {
  return [
    [['session', id], GUESSER],
    [['sessions', user.id], ACCOUNT],
  ];
}

/** The stored name of a subject: a hash, since an address may be that of nobody. */
const hashOf = (subject: Limits[number][0]) =>
  hashSecret(`attempt ${subject.map(String).map(encodeURIComponent)}`);

/** What is tried, for the audit. */
type Trial = {
  readonly limits: Limits;
  /** The user who is named; undefined if nobody has the address. */
  readonly userId: number | undefined;
  /** What is given, such as `password`. */
  readonly by: string;
  readonly origin: Origin;
  /** The user, if it has a session. */
  readonly actor?: Actor | null;
};

/** Returns what a user tries in a session. @param by what is given again */
export function trialOf({ session, origin }: SignedIn, by: string): Required<Trial> {
  const actor = actorOfUser(session.user, origin);
  return { limits: sessionLimits(session), userId: session.user.id, by, origin, actor };
}

/**
 * Counts an attempt, then checks it. A refused attempt is recorded for the audit.
 * @param check whether what was given is right
 * @param refusal the problem if it is not
 * @throws Problem `too-many-requests` if the attempt may not be checked; `refusal`
 */
export async function attempt(
  service: Service,
  trial: Trial,
  check: () => Promise<boolean>,
  refusal: () => Problem,
): Promise<void> {
  await countAttempt(service, trial);
  if (await check()) return;
  record(service, trial);
  throw refusal();
}

function record(
  service: Service,
  { userId, by, origin, actor = null }: Omit<Trial, 'limits'>,
  action: RefusedEvent['action'] = actor ? 'session.step-up-refused' : 'session.refused',
): void {
  const { address, requestId } = origin;
  const subject = userId === undefined ? UNKNOWN_ACCOUNT : `user ${userId}`;
  recordRefusal(service, { action, subject, actor, address, requestId, by });
}

/** Runs a sign-in that has no limit, since nothing can be guessed. Its refusal is recorded too. */
export async function recordingRefusal<Result>(
  service: Service,
  trial: Omit<Trial, 'limits'>,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Problem && error.code === 'unauthorized') record(service, trial);
    throw error;
  }
}

/**
 * Counts an attempt. One that may not be checked is recorded for the audit.
 * @throws Problem `too-many-requests` if the attempt may not be checked
 */
export async function countAttempt(service: Service, trial: Trial): Promise<void> {
  const { clock, db } = service;
  const now = clock();
  for (const [subject, rule] of trial.limits) {
    const [row] = await db.query<{ lockedUntil: Date | null }>(sql`
select count_sign_in(${hashOf(subject)}, ${now}, ${rule.most}, ${rule.period}::interval,
  ${rule.lock}::interval, ${rule.longest}::interval) as "lockedUntil"`);
    if (!row?.lockedUntil) continue;
    record(service, trial, 'account.locked');
    throw tooMany(row.lockedUntil.getTime() - now.getTime());
  }
}

function tooMany(waitMs: number): Problem {
  const minutes = Math.ceil(waitMs / MINUTE_MS);
  return new Problem(
    'too-many-requests',
    `there were too many attempts: try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}`,
    undefined,
    {},
    Math.ceil(waitMs / 1_000),
  );
}

/** Removes a right attempt from the count. Earlier attempts still count. */
export async function takeBack({ db }: Service, limits: Limits): Promise<void> {
  for (const [subject] of limits)
    await db.query(sql`
update sign_in_attempts set failures = failures - 1 where subject = ${hashOf(subject)} and failures > 0`);
}

/**
 * Removes a right second factor from the count, and all earlier attempts of the same guesser, who has turned
 * out to be the user.
 */
export async function forget(service: Service, limits: Limits): Promise<void> {
  for (const limit of limits) {
    const [subject, rule] = limit;
    if (rule !== GUESSER) await takeBack(service, [limit]);
    else await service.db.query(sql`delete from sign_in_attempts where subject = ${hashOf(subject)}`);
  }
}
