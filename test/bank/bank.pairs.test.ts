import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Entry, Movement } from '../../src/bank/entries.ts';
import { exactPairs, suggestedPairs } from '../../src/bank/match.ts';

/** The pairs that are found by words and days are those that comparing each with each finds. */

const TEXTS = [
  'INV-1001',
  'INV-1002',
  '1001',
  'top-up',
  '----',
  'Rechnung 7/8',
  'S-2026-0001',
  'abc',
  'Ü1-Ü2',
];
const text = fc.constantFrom(...TEXTS);
const sentence = fc
  .array(fc.tuple(text, fc.constantFrom(' ', ', ', '/', 'x', '')), { maxLength: 3 })
  .map((parts) => parts.flat().join(''));
const day = fc.integer({ min: 1, max: 12 }).map((each) => `2026-03-${String(each).padStart(2, '0')}`);
const amount = fc.constantFrom(100n, 200n);
const currency = fc.constantFrom('EUR', 'USD');
const orNull = fc.option(text);

const entry = fc.record({ amount, currency, bookedOn: day, description: sentence, reference: text });
const movement = fc.record({
  ...{ amount, currency, day },
  ...{ reference: orNull, bankReference: orNull, settlement: orNull },
});

type Two = { readonly entry: Entry; readonly movement: Movement };

/** Compares each entry with each movement. */
function comparing(
  entries: readonly Entry[],
  movements: readonly Movement[],
  fits: (entry: Entry, movement: Movement) => boolean,
): Two[] {
  const found = entries.flatMap((each) =>
    movements
      .filter((other) => other.amount === each.amount && other.currency === each.currency)
      .filter((other) => fits(each, other))
      .map((other) => ({ entry: each, movement: other })),
  );
  const isOnly = (pair: Two) =>
    found.filter((other) => other.entry === pair.entry || other.movement === pair.movement).length === 1;
  return found.filter(isOnly);
}

/** Whether a text holds a reference that no letter and no digit touches. */
function holds(whole: string, reference: string): boolean {
  const isPart = (character: string | undefined) =>
    character !== undefined && /[\p{L}\p{N}]/u.test(character);
  if (![...reference].some(isPart)) return false;
  for (let at = whole.indexOf(reference); at >= 0; at = whole.indexOf(reference, at + 1))
    if (!isPart(whole[at - 1]) && !isPart(whole[at + reference.length])) return true;
  return false;
}

const names = ({ description, reference }: Entry, other: Movement) =>
  (other.bankReference !== null && other.bankReference === reference) ||
  [other.reference, other.bankReference, other.settlement].some(
    (each) => each !== null && each.length >= 4 && holds(description, each),
  );
const isNear = ({ bookedOn }: Entry, other: Movement) =>
  Math.abs(Date.parse(bookedOn) - Date.parse(other.day)) <= 3 * 86_400_000;

test('the pairs of entries and movements are those of comparing each with each', () => {
  const sides = fc.tuple(fc.array(entry, { maxLength: 8 }), fc.array(movement, { maxLength: 8 }));
  fc.assert(
    fc.property(sides, ([some, others]) => {
      const [entries, movements] = [some as unknown as Entry[], others as unknown as Movement[]];
      const sorted = (pairs: readonly Two[]) =>
        pairs.map((pair) => [entries.indexOf(pair.entry), movements.indexOf(pair.movement)]).sort();
      assert.deepEqual(sorted(exactPairs(entries, movements)), sorted(comparing(entries, movements, names)));
      assert.deepEqual(
        sorted(suggestedPairs(entries, movements)),
        sorted(comparing(entries, movements, isNear)),
      );
    }),
    { numRuns: 1_000 },
  );
});
