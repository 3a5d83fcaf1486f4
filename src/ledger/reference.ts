import { Refusal } from '../refusal.ts';

const LONGEST = 100;

/**
 * Refuses (`18`) what cannot be a merchant's reference: 1 to 100 characters, no control characters,
 * well-formed Unicode (two broken spellings would be stored as one), not beginning with `CANCEL-` or
 * `NEW-`.
 */
export function checkReference(reference: string): void {
  if (!isReference(reference) || /^(CANCEL|NEW)-/.test(reference)) throw new Refusal('18');
}

/** Like `checkReference`, for a lookup: `CANCEL-x` and `NEW-x` are well-formed, and find nothing. */
export function checkLookupReference(reference: string): void {
  if (!isReference(reference)) throw new Refusal('18');
}

/** Whether a text has the form of a reference. */
export function isReference(reference: string): boolean {
  // A character has at most two units, so a text beyond twice the limit needs no counting.
  if (reference.length === 0 || reference.length > 2 * LONGEST || !reference.isWellFormed()) return false;
  return !/\p{Cc}/u.test(reference) && (reference.length <= LONGEST || [...reference].length <= LONGEST);
}
