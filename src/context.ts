import type { Database } from './db/pool.ts';
import type { Logger } from './log.ts';
import type { KeyRing } from './secrets.ts';

/** What a process holds for its life: the database, the key ring, the logger and the clock (tests move it). */
export type Service = {
  readonly db: Database;
  readonly keys: KeyRing;
  readonly log: Logger;
  readonly clock: () => Date;
};

export const PERMISSIONS = ['generate', 'activate', 'balance', 'redeem', 'update-redemption'] as const;
export type Permission = (typeof PERMISSIONS)[number];

/** The merchant on whose behalf a request is made, as its key's last look-up found it (at most a second ago). */
export type Merchant = {
  readonly id: number;
  readonly name: string;
  readonly permissions: ReadonlySet<string>;
  /** An unknown code and a wrong PIN are told apart, unless the merchant is opaque (then both are `14`). */
  readonly opaque: boolean;
  readonly suspended: boolean;
  readonly defaultProductId: number;
};

/** Who asks, with which service, at what time: the first argument of everything that a merchant can ask for. */
export type Context = {
  readonly service: Service;
  readonly merchant: Merchant;
  readonly keyId: string;
  readonly now: Date;
};

/** Who operates the service, from where, and why: what the audit tells of a change. */
export type Actor = { readonly name: string; readonly origin: string; readonly reason: string | null };

/** Who operates, with which service: the first argument of everything that only an operator can ask for. */
export type Operator = { readonly service: Service; readonly actor: Actor };
