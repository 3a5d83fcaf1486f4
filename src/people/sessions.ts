import { audit } from '../audit/audit.ts';
import type { Actor, Service } from '../context.ts';
import { hashOfBearer, newBearer } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { MINUTE_MS } from '../time.ts';
import type { Device } from './devices.ts';
import {
  deleteEnded,
  deleteOldestSessions,
  deleteSession,
  deleteSessions,
  findSessionRow,
  insertSession,
  listSessionRows,
  renewSession,
  touchSession,
} from './sessions.queries.ts';

/**
 * Sessions of people. Each request reads its session and the user's roles from the database, so a session
 * that has ended is no longer valid in any process.
 */

/** The place where people sign in: the operator's console, or the merchants' portal. */
export type Door = 'operator' | 'portal';

/** A session without requests for this time has ended. */
const IDLE_MS = { operator: 20 * MINUTE_MS, portal: 60 * MINUTE_MS } as const;
/** The most sessions of a user. A further one ends the oldest, so that a forgotten one does not last. */
const SESSIONS_MAX = 10;
/** The longest duration of a session. */
export const SESSION_MS = 12 * 60 * MINUTE_MS;
/** The time for which a second factor counts. */
export const STEP_UP_MS = 5 * MINUTE_MS;
/** The shortest interval between two updates of the last request. */
const TOUCH_MS = 15_000;

/** The origin of a request. */
export type Origin = {
  readonly address: string;
  /** The browser's name for itself. */
  readonly agent: string;
  readonly requestId: string;
  /** The devices of users for which the browser has a cookie of this service. */
  readonly devices: readonly Device[];
};

export type Session = {
  readonly id: bigint;
  readonly door: Door;
  readonly user: {
    readonly id: number;
    readonly email: string;
    readonly name: string;
    /** The roles as they are now. */
    readonly roles: readonly string[];
    readonly merchantId: number | null;
    readonly factors: readonly ('totp' | 'passkey')[];
    /** Whether the user signs in by an identity provider. */
    readonly singleSignOn: boolean;
  };
  readonly createdAt: Date;
  /** The time at which the session ends at the latest. It ends earlier without requests. */
  readonly expiresAt: Date;
  readonly idleMs: number;
  /**
   * The time up to which operations that need a second factor are permitted; null if none was given, or if it
   * was given too long ago.
   */
  readonly steppedUpUntil: Date | null;
};

type SessionRow = {
  id: bigint;
  user_id: number;
  created_at: Date;
  last_seen_at: Date;
  expires_at: Date;
  stepped_up_at: Date | null;
  email: string;
  name: string;
  roles: string[];
  merchant_id: number | null;
  /** True for users of the demo who sign in with a link. */
  has_only_link: boolean;
  has_totp: boolean;
  has_passkey: boolean;
  is_bound: boolean;
};

export const doorOf = (merchantId: number | null): Door => (merchantId === null ? 'operator' : 'portal');

/**
 * Returns the name of a user in the audit. A merchant can invite any address, also one of the operator, so
 * the name of its users says whose they are.
 */
export function nameOfUser(email: string, merchantId: number | null): string {
  return merchantId === null ? email : `${email} (merchant ${merchantId})`;
}

type Named = { readonly id: number; readonly email: string } & (
  | { readonly merchantId: number | null }
  | { readonly merchant_id: number | null }
);

/** Returns the actor of a user's changes. */
export function actorOfUser(user: Named, { address, requestId }: Origin): Actor {
  const merchantId = 'merchantId' in user ? user.merchantId : user.merchant_id;
  const name = nameOfUser(user.email, merchantId);
  return { kind: 'user', id: String(user.id), name, origin: address, requestId, reason: null };
}

const AGENT_LENGTH_MAX = 200;

/**
 * Begins a session. Of more than ten, the oldest ends.
 * @param steppedUpAt when a second factor was given; null if none counts
 * @returns its token, which is not stored
 */
export async function beginSession(
  { clock, keys }: Service,
  tx: Queries,
  userId: number,
  { address, agent }: Origin,
  steppedUpAt: Date | null,
): Promise<string> {
  const { token, tokenHash } = newBearer(keys, 'session');
  const now = clock();
  const expiresAt = new Date(now.getTime() + SESSION_MS);
  await tx.query(
    insertSession({
      tokenHash,
      userId,
      now,
      expiresAt,
      steppedUpAt,
      network: address,
      agent: agent.slice(0, AGENT_LENGTH_MAX),
    }),
  );
  await tx.query(deleteOldestSessions(userId, SESSIONS_MAX));
  return token;
}

/**
 * Finds the session of a token for a request, and restarts its idle time. A forged token needs no query.
 * @param isBackground whether a page made the request by itself, which does not restart the idle time
 * @returns undefined if there is none, if it has ended, or if its user belongs to the other door or may no
 *   longer sign in
 */
export async function findSession(
  { db, keys, clock }: Service,
  token: string,
  door: Door,
  isBackground = false,
): Promise<Session | undefined> {
  const now = clock();
  const tokenHash = hashOfBearer(keys, 'session', token);
  const [row] = tokenHash ? await db.query<SessionRow>(findSessionRow(tokenHash, now)) : [];
  if (!row || doorOf(row.merchant_id) !== door) return undefined;
  const idleSince = now.getTime() - row.last_seen_at.getTime();
  if (idleSince > IDLE_MS[door]) return undefined;
  if (idleSince > TOUCH_MS && !isBackground) await db.query(touchSession(row.id, now));
  const { id, user_id, email, name, roles, merchant_id, has_totp, has_passkey, created_at, expires_at } = row;
  return {
    id,
    door,
    user: {
      id: user_id,
      email,
      name,
      roles,
      merchantId: merchant_id,
      factors: factorsOf(has_totp, has_passkey),
      singleSignOn: row.is_bound,
    },
    createdAt: created_at,
    expiresAt: expires_at,
    idleMs: IDLE_MS[door],
    steppedUpUntil: steppedUpUntilOf(row, now),
  };
}

/**
 * Returns until when a session counts as stepped up. The owner of the demo has no second factor to ask for.
 */
function steppedUpUntilOf(row: SessionRow, now: Date): Date | null {
  if (row.has_only_link && !row.has_totp && !row.has_passkey) return row.expires_at;
  const until = row.stepped_up_at && new Date(row.stepped_up_at.getTime() + STEP_UP_MS);
  return until && until > now ? until : null;
}

export function factorsOf(hasTotp: boolean, hasPasskey: boolean): ('totp' | 'passkey')[] {
  return [...(hasTotp ? (['totp'] as const) : []), ...(hasPasskey ? (['passkey'] as const) : [])];
}

/**
 * Gives a session a new token after its user gave a second factor.
 * @param oldToken null if the identity provider sent the browser back
 * @param factor what was given, for the audit
 * @returns undefined if the session has ended meanwhile, or belongs to another user
 */
export async function renewStepped(
  service: Service,
  { id, user }: { readonly id: bigint; readonly user: Named },
  oldToken: string | null,
  origin: Origin,
  factor: string,
): Promise<string | undefined> {
  const { db, keys, clock } = service;
  const { token, tokenHash } = newBearer(keys, 'session');
  const oldHash = oldToken === null ? null : (hashOfBearer(keys, 'session', oldToken) ?? NO_HASH);
  return db.transaction(async (tx) => {
    const session = { id, userId: user.id };
    const [renewed] = await tx.query(renewSession(session, oldHash, tokenHash, clock()));
    if (!renewed) return undefined;
    const operator = { service, actor: actorOfUser(user, origin) };
    await audit(tx, operator, {
      action: 'session.step-up',
      subject: `user ${user.id}`,
      after: { factor },
    });
    return token;
  });
}

/** The hash of no token. */
const NO_HASH = Buffer.alloc(0);

export type SessionInfo = {
  readonly id: bigint;
  readonly createdAt: Date;
  readonly lastSeenAt: Date;
  readonly expiresAt: Date;
  readonly address: string;
  readonly agent: string;
};

type InfoRow = {
  id: bigint;
  created_at: Date;
  last_seen_at: Date;
  expires_at: Date;
  network: string;
  agent: string;
};

/** Lists the sessions of a user, newest first. */
export async function listSessions(
  { db, clock }: Service,
  userId: number,
  door: Door,
): Promise<SessionInfo[]> {
  const now = clock();
  const rows = await db.query<InfoRow>(listSessionRows(userId, now, new Date(now.getTime() - IDLE_MS[door])));
  return rows.map(({ id, created_at, last_seen_at, expires_at, network, agent }) => ({
    id,
    createdAt: created_at,
    lastSeenAt: last_seen_at,
    expiresAt: expires_at,
    address: network,
    agent,
  }));
}

/** The most rows of a table that one statement deletes, so that it takes milliseconds. */
const PORTION = 1_000;

/**
 * Deletes sessions, sign-ins and attempts that have ended, in portions. It runs in the background: no sign-in
 * waits for what strangers have left.
 */
export async function deleteWhatEnded({ db, clock }: Service, stopping: () => boolean): Promise<void> {
  while (!stopping() && (await db.query(deleteEnded(clock(), PORTION))).length > 0);
}

/** Ends all sessions of a user. @returns how many */
export async function endSessions(tx: Queries, userId: number): Promise<number> {
  return (await tx.query(deleteSessions(userId, null))).length;
}

/** Ends one of the sessions of a session's user. @returns whether it existed */
export async function endOwnSession(
  service: Service,
  session: Session,
  id: bigint,
  origin: Origin,
): Promise<boolean> {
  return changeOwn(service, session, origin, async (tx) => {
    const isEnded = (await tx.query(deleteSession(session.user.id, id))).length > 0;
    return { result: isEnded, ended: isEnded ? 1 : 0 };
  });
}

/** Ends all other sessions of a session's user. @returns how many */
export async function endOwnSessions(service: Service, session: Session, origin: Origin): Promise<number> {
  return changeOwn(service, session, origin, async (tx) => {
    const ended = (await tx.query(deleteSessions(session.user.id, session.id))).length;
    return { result: ended, ended };
  });
}

async function changeOwn<Result>(
  service: Service,
  { user }: Session,
  origin: Origin,
  change: (tx: Queries) => Promise<{ result: Result; ended: number }>,
): Promise<Result> {
  return service.db.transaction(async (tx) => {
    const { result, ended } = await change(tx);
    const operator = { service, actor: actorOfUser(user, origin) };
    if (ended > 0)
      await audit(tx, operator, {
        action: 'session.end',
        subject: `user ${user.id}`,
        before: { sessions: ended },
      });
    return result;
  });
}
