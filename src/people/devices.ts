import { randomBytes } from 'node:crypto';
import { readSigned, sign } from '../credentials.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { DAY_MS } from '../time.ts';

/**
 * Known devices: browsers in which a user has signed in before. Each has a signed cookie and a limit on
 * attempts of its own, so that strangers who guess cannot keep its user from signing in. The cookie proves
 * nothing else: password and second factor are asked for as always.
 */

/** The validity of a cookie. Each sign-in renews it. */
export const DEVICE_MS = 180 * DAY_MS;

const TIME_BYTES = 6;
const USER_BYTES = 4;
const ID_BYTES = 6;

export type Device = {
  readonly userId: number;
  /** Identifies the device among those of its user. */
  readonly id: string;
  readonly issuedAt: Date;
};

/**
 * Returns the token of a device in which a user has signed in.
 * @param known the device, if it is known already: it keeps its id and therefore its count of attempts
 */
export function newDeviceToken(keys: KeyRing, userId: number, now: Date, known?: Device): string {
  const id = known ? Buffer.from(known.id, 'hex') : randomBytes(ID_BYTES);
  const bytes = Buffer.alloc(TIME_BYTES + USER_BYTES + ID_BYTES);
  bytes.writeUIntBE(now.getTime(), 0, TIME_BYTES);
  bytes.writeUInt32BE(userId, TIME_BYTES);
  id.copy(bytes, TIME_BYTES + USER_BYTES);
  return sign(keys, 'device', bytes).toString('base64url');
}

/** Reads the token of a device. @returns undefined if it is forged or has expired */
export function readDeviceToken(keys: KeyRing, token: string, now: Date): Device | undefined {
  const bytes = readSigned(keys, 'device', Buffer.from(token, 'base64url'));
  if (!bytes) return undefined;
  const buffer = Buffer.from(bytes);
  const issuedAt = new Date(buffer.readUIntBE(0, TIME_BYTES));
  if (now.getTime() - issuedAt.getTime() > DEVICE_MS) return undefined;
  return {
    userId: buffer.readUInt32BE(TIME_BYTES),
    id: buffer.toString('hex', TIME_BYTES + USER_BYTES),
    issuedAt,
  };
}

/**
 * Finds the device of a user that has signed in since the user enrolled: a reset makes all of them unknown.
 */
export function deviceOf(
  devices: readonly Device[],
  user: { readonly id: number; readonly enrolledAt: Date | null } | undefined,
): Device | undefined {
  return devices.find(
    ({ userId, issuedAt }) => userId === user?.id && user.enrolledAt !== null && issuedAt >= user.enrolledAt,
  );
}
