import type { Service } from '../context.ts';
import { readSigned, sign } from '../credentials.ts';
import type { AnyOperation, Fields } from '../operation.ts';
import { wrongCursor } from '../page.ts';

/**
 * Cursors of lists are signed where they leave the service, and read where they come back, for all lists: a
 * position reaches a statement as it is.
 */

const purposeOf = ({ name }: AnyOperation) => `cursor ${name}` as const;

const isList = ({ input }: AnyOperation) => 'cursor' in input.properties;

/**
 * Returns the input of an operation with the position of its cursor, without the signature.
 * @throws Problem for a cursor that this service has not made for this operation
 */
export function withPosition(operation: AnyOperation, { keys }: Service, input: Fields): Fields {
  const { cursor } = input;
  if (!isList(operation) || typeof cursor !== 'string') return input;
  const position = readSigned(keys, purposeOf(operation), Buffer.from(cursor, 'base64url'));
  if (!position) throw wrongCursor();
  return { ...input, cursor: Buffer.from(position).toString('base64url') };
}

/** Returns the output of an operation with its cursor signed. */
export function withSignedCursor(operation: AnyOperation, { keys }: Service, output: unknown): unknown {
  const { nextCursor } = (output ?? {}) as Fields;
  if (!isList(operation) || typeof nextCursor !== 'string') return output;
  const signed = sign(keys, purposeOf(operation), Buffer.from(nextCursor, 'base64url'));
  return { ...(output as object), nextCursor: signed.toString('base64url') };
}
