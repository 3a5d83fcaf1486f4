import { isUnavailable, sqlState } from '../db/errors.ts';
import { CommandError, STATUS } from './output.ts';

/** @throws CommandError if a lost connection leaves the outcome of a change unknown; else the error */
export function explainOutcome(error: unknown, check?: string): never {
  if (isOutcomeUnknown(error)) unknownOutcome('the connection to the database was lost', check);
  throw error;
}

/** Ends the command: nobody knows whether its change was made. */
export function unknownOutcome(
  reason: string,
  check = '`scrip audit list` shows the changes that were made',
): never {
  throw new CommandError(
    `unknown whether the change was made, since ${reason}: ${check}`,
    'unknown',
    STATUS.unknown,
  );
}

const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENFILE',
]);

/**
 * Whether a connection broke after a commit may have been sent. A connection that was never made
 * carried none.
 */
function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  if (state) return /^(08|57P0[12])/.test(state);
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string };
  return (
    isUnavailable(error) &&
    !NOT_CONNECTED.has(code) &&
    !/^timeout exceeded when trying to connect/.test(message)
  );
}
