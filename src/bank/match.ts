import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS } from '../time.ts';
import {
  deleteMatches,
  type EntryRow,
  insertMatch,
  listEntries,
  listMovements,
  listOpenEntries,
  listOpenMovements,
  listPayable,
  lockMatching,
  type MovementRow,
  type PayableRow,
} from './queries.ts';

/** The matching of bank entries with movements of the books. Both sides show the same money. */

export type Pair = { readonly entry: EntryRow; readonly movement: MovementRow };
/** An entry that pays a settlement whose payout is not booked. */
export type PayoutSeen = { readonly entry: EntryRow; readonly settlement: PayableRow };
export type Matched = {
  readonly exact: readonly Pair[];
  readonly suggested: readonly Pair[];
  readonly payouts: readonly PayoutSeen[];
};

/** The most days between the two sides of a suggestion. */
const DAYS_APART = 3;
/** The number of days before the oldest open entry from which movements are searched. */
const LOOK_BACK_DAYS = 31;
/** The shortest reference that is searched for. A shorter one appears in too many texts by chance. */
const REFERENCE_MIN = 4;

/**
 * Matches an entry with a movement of the same amount if the entry names the movement's reference or the
 * number of its settlement. Suggests pairs of the same amount within three days. A pair counts only if
 * neither side fits another entry or movement. An entry that names an unpaid settlement is not suggested: its
 * payout has to be booked first.
 * @param accept whether suggestions are matched too
 */
export async function matchBank(operator: Operator, accept: boolean): Promise<Matched> {
  const { service, actor } = operator;
  return service.db.transaction(async (tx) => {
    await tx.query(lockMatching);
    const entries = (await tx.query<EntryRow>(listOpenEntries())).filter((each) => each.matched_minor === 0n);
    const oldest = entries[0] ? Date.parse(`${entries[0].booked_on}T00:00:00Z`) : service.clock().getTime();
    const since = new Date(oldest - LOOK_BACK_DAYS * DAY_MS);
    const movements = (await tx.query<MovementRow>(listOpenMovements(since))).filter(
      (each) => each.matched_minor === 0n,
    );
    const exact = pair(entries, movements, names);
    const used = new Set<unknown>(exact.flatMap(({ entry, movement }) => [entry, movement]));
    const left = <Each>(some: readonly Each[]) => some.filter((each) => !used.has(each));
    const payouts = payoutsIn(left(entries), await tx.query<PayableRow>(listPayable));
    for (const { entry } of payouts) used.add(entry);
    const suggested = pair(left(entries), left(movements), isNear);
    const now = service.clock();
    const store = async (some: readonly Pair[], how: 'exact' | 'suggested') => {
      for (const { entry, movement } of some) {
        const match = { entry, movement, amountMinor: entry.amount_minor, how };
        await tx.query(insertMatch({ ...match, by: actor.name, now }));
      }
    };
    await store(exact, 'exact');
    if (accept) await store(suggested, 'suggested');
    const after = { exact: exact.length, suggested: accept ? suggested.length : 0 };
    const touches = [...exact, ...(accept ? suggested : [])].map(({ entry }) => `bank entry ${entry.id}`);
    if (touches.length > 0)
      await audit(tx, operator, { action: 'bank.match', subject: 'bank', after, touches });
    return { exact, suggested, payouts };
  });
}

/** Returns the pairs of equal amount and currency that fit, if neither side fits another one. */
function pair(
  entries: readonly EntryRow[],
  movements: readonly MovementRow[],
  fits: (entry: EntryRow, movement: MovementRow) => boolean,
): Pair[] {
  const byAmount = new Map<string, MovementRow[]>();
  for (const movement of movements) {
    const key = `${movement.currency} ${movement.amount_minor}`;
    byAmount.set(key, [...(byAmount.get(key) ?? []), movement]);
  }
  const found = entries.flatMap((entry) => {
    const same = byAmount.get(`${entry.currency} ${entry.amount_minor}`) ?? [];
    return same.filter((movement) => fits(entry, movement)).map((movement) => ({ entry, movement }));
  });
  const count = (of: (each: Pair) => unknown) => {
    const counts = new Map<unknown, number>();
    for (const each of found) counts.set(of(each), (counts.get(of(each)) ?? 0) + 1);
    return counts;
  };
  const [ofEntry, ofMovement] = [count(({ entry }) => entry), count(({ movement }) => movement)];
  return found.filter(({ entry, movement }) => ofEntry.get(entry) === 1 && ofMovement.get(movement) === 1);
}

/** Returns the entries that pay a settlement: they name its number, and have its amount. */
function payoutsIn(entries: readonly EntryRow[], payable: readonly PayableRow[]): PayoutSeen[] {
  const unpaid = Map.groupBy(payable, ({ currency, payable_minor }) => `${currency} ${-payable_minor}`);
  return entries.flatMap((entry) => {
    const [settlement, ...others] = (unpaid.get(`${entry.currency} ${entry.amount_minor}`) ?? []).filter(
      ({ number }) => holds(entry.description, number),
    );
    return settlement && others.length === 0 ? [{ entry, settlement }] : [];
  });
}

/** Returns whether a text holds a reference as a separate word. */
function holds(text: string, reference: string): boolean {
  const escaped = reference.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'u').test(text);
}

/** Returns whether an entry names a movement, as a separate word of its text. */
function names(
  { description, entry_reference }: EntryRow,
  { reference, bank_reference, number }: MovementRow,
): boolean {
  if (bank_reference !== null && bank_reference === entry_reference) return true;
  return [reference, bank_reference, number].some((each) => {
    return each !== null && each.length >= REFERENCE_MIN && holds(description, each);
  });
}

function isNear({ booked_on }: EntryRow, { occurred_on }: MovementRow): boolean {
  return Math.abs(Date.parse(booked_on) - Date.parse(occurred_on)) <= DAYS_APART * DAY_MS;
}

/**
 * Matches by hand: one entry with one or several movements, or several entries with one movement. The
 * unmatched amounts of both sides must be equal.
 * @throws Refusal `60` if an entry or a movement does not exist; `13` if the sums differ or one of them is
 *   matched already; `30` for several on both sides
 */
export async function matchByHand(
  operator: Operator,
  { entryIds, movementIds }: { entryIds: readonly number[]; movementIds: readonly string[] },
): Promise<void> {
  const { service, actor } = operator;
  if (entryIds.length > 1 && movementIds.length > 1)
    throw new Refusal('30', {
      message: 'Invalid request: several entries and several movements; match one with several',
    });
  await service.db.transaction(async (tx) => {
    await tx.query(lockMatching);
    const { entries, movements } = await getBoth(tx, entryIds, movementIds);
    const leftOf = (each: EntryRow | MovementRow) => each.amount_minor - each.matched_minor;
    const sum = (some: readonly (EntryRow | MovementRow)[]) =>
      some.reduce((total, each) => total + leftOf(each), 0n);
    const all = [...entries, ...movements];
    const currencies = new Set(all.map(({ currency }) => currency));
    if (currencies.size > 1 || sum(entries) !== sum(movements) || all.some((each) => leftOf(each) === 0n))
      throw new Refusal('13', {
        message: 'Invalid amount: what is left of the entries and of the movements is not equal',
      });
    const now = service.clock();
    for (const entry of entries)
      for (const movement of movements) {
        const amountMinor = entries.length > 1 ? leftOf(entry) : leftOf(movement);
        const match = { entry, movement, amountMinor, how: 'manual' } as const;
        await tx.query(insertMatch({ ...match, by: actor.name, now }));
      }
    const after = { entries: entryIds, movements: movementIds };
    const touches = entryIds.map((id) => `bank entry ${id}`);
    await audit(tx, operator, { action: 'bank.match', subject: 'bank', after, touches });
  });
}

async function getBoth(tx: Queries, entryIds: readonly number[], movementIds: readonly string[]) {
  const entries = await tx.query<EntryRow>(listEntries(entryIds));
  const movements = await tx.query<MovementRow>(listMovements(movementIds));
  if (entries.length !== new Set(entryIds).size)
    throw new Refusal('60', { message: 'Not found: there is no such entry' });
  if (movements.length !== new Set(movementIds).size)
    throw new Refusal('60', {
      message: 'Not found: no movement of the funding account has this transaction id',
    });
  return { entries, movements };
}

/** Removes the match of an entry. @throws Refusal `60` if the entry is not matched */
export async function unmatch(operator: Operator, entryId: number): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(lockMatching);
    const undone = await tx.query<{ movement_id: string }>(deleteMatches(entryId));
    if (undone.length === 0)
      throw new Refusal('60', { message: 'Not found: there is no such entry, or it is not matched' });
    const before = { movements: undone.map(({ movement_id }) => movement_id) };
    await audit(tx, operator, { action: 'bank.unmatch', subject: `bank entry ${entryId}`, before });
  });
}
