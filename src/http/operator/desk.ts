import type { FastifyReply, FastifyRequest } from 'fastify';
import { createService, type Service } from '../../context.ts';
import { openDatabase, openReader } from '../../db/pool.ts';
import { networkOf } from '../../network.ts';
import type { Door } from '../../people/sessions.ts';
import { Refusal } from '../../refusal.ts';
import { Shares } from '../overload.ts';

/**
 * The connections and places of the operator API, the portal API, and people who sign in. They are apart from
 * those of tills, and strangers have their own: a flood of sign-ins delays other strangers, and nobody with a
 * session, a token or a known device.
 */

/**
 * The connections that operators' requests share, so that no list or report takes one from a till. They are
 * few, since simultaneous reads take the cores of the database from tills. Reports take turns on one of them
 * (src/operations/perform.ts), so that quick requests do not wait for them.
 */
const POOL_SIZE = 3;
const STRANGERS_POOL_SIZE = 2;
/** The longest wait for one of them: a person rather waits a moment than asks again. */
const WAIT_MS = 10_000;
/**
 * The most requests in progress. Each takes milliseconds, or waits in a queue that has a limit of its own.
 */
const INSIDE_MAX = 512;
/** The most requests of strangers in progress: as many as can wait for the hash of a password, and some. */
const STRANGERS_MAX = 32;

/** Where the routes of each door begin. */
export const PREFIXES: Readonly<Record<Door, string>> = { operator: '/operator/v1', portal: '/portal/v1' };

export type Desk = {
  /** With the connections of those who have proven who they are. */
  readonly service: Service;
  /** With the connections of all others. */
  readonly strangers: Service;
  /** By credential. */
  readonly known: Shares<string>;
  /** By network. */
  readonly unknown: Shares<string>;
  /** The address of the service for browsers; undefined: the Host of each request. */
  readonly publicUrl: string | undefined;
  close(): Promise<void>;
};

/** Opens the desk. Nothing connects before the first statement. */
export function openDesk(service: Service, publicUrl?: string): Desk {
  const isBusy = () => service.db.isBusy();
  // The tills of the whole process: operators' requests rest while these are busy.
  const options = { size: POOL_SIZE, waitMs: WAIT_MS };
  const db = { ...openDatabase(service.db.url, 'scrip-operator', options), isBusy };
  const readDb =
    service.readDb === service.db ? db : openReader(service.readDb.url, 'scrip-operator', options);
  const forStrangers = { size: STRANGERS_POOL_SIZE, waitMs: WAIT_MS };
  const ofStrangers = openDatabase(service.db.url, 'scrip-strangers', forStrangers);
  return {
    service: createService({ ...service, db, readDb }),
    strangers: createService({ ...service, db: ofStrangers, readDb: ofStrangers }),
    known: new Shares(INSIDE_MAX),
    unknown: new Shares(STRANGERS_MAX),
    publicUrl,
    async close() {
      await Promise.all([db.close(), ofStrangers.close(), ...(readDb === db ? [] : [readDb.close()])]);
    },
  };
}

/**
 * Admits a request until its answer has been sent.
 * @param credential what only one client has: its session, token or device; undefined for a stranger
 * @returns the service with the connections for it
 * @throws Refusal `91` if there is no place
 */
export function admitTo(
  desk: Desk,
  request: FastifyRequest,
  reply: FastifyReply,
  credential: string | undefined,
): Service {
  const shares = credential === undefined ? desk.unknown : desk.known;
  const client = credential ?? networkOf(request.ip);
  if (!shares.hasPlace(client)) throw new Refusal('91');
  shares.take(client);
  reply.raw.once('close', () => shares.leave(client));
  return credential === undefined ? desk.strangers : desk.service;
}
