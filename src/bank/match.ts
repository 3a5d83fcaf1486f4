import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { MovementWord } from '../ledger/kinds.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { notFound } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { Day, Id, Money, NullableText, Text, TransactionId, toId } from '../schema.ts';
import { addDays, DAY_MS } from '../time.ts';
import {
  type Entry,
  EntryId,
  entriesOf,
  type Movement,
  movementsOf,
  openEntries,
  openMovements,
} from './entries.ts';
import { BANK_ENTRY } from './statement.ts';

/** The matching of bank entries with movements of the books. Both sides show the same money. */

type Pair = { readonly entry: Entry; readonly movement: Movement };
/** An entry that pays a settlement whose payout is not booked. */
type PayoutSeen = { readonly entry: Entry; readonly settlement: Payable };
type Matched = {
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
 * @param dryRun only finds the pairs, and matches none
 */
export async function matchBank(operator: Operator, accept: boolean, dryRun = false): Promise<Matched> {
  const { service } = operator;
  return service.db.transaction(async (tx) => {
    await lockMatching(tx);
    const isWhole = ({ matched }: { readonly matched: bigint }) => matched === 0n;
    const entries = (await openEntries(tx)).filter(isWhole);
    const oldest = entries[0] ? Date.parse(`${entries[0].bookedOn}T00:00:00Z`) : service.clock().getTime();
    const since = new Date(oldest - LOOK_BACK_DAYS * DAY_MS);
    const movements = (await openMovements(tx, since)).filter(isWhole);
    const exact = exactPairs(entries, movements);
    const used = new Set<unknown>(exact.flatMap(({ entry, movement }) => [entry, movement]));
    const left = <Each>(some: readonly Each[]) => some.filter((each) => !used.has(each));
    const payouts = payoutsIn(left(entries), await payableSettlements(tx));
    for (const { entry } of payouts) used.add(entry);
    const suggested = suggestedPairs(left(entries), left(movements));
    if (dryRun) return { exact, suggested, payouts };
    const store = async (some: readonly Pair[], how: How) => {
      for (const each of some) await storeMatch(tx, operator, each, each.entry.amount, how);
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

/** Finds pairs among those of one amount, which thousands may have: it does not compare each with each. */
type Find = (entries: readonly Entry[], movements: readonly Movement[]) => readonly Pair[];

/** Returns the pairs of the same amount and currency in which neither side fits another one. */
function pair(entries: readonly Entry[], movements: readonly Movement[], find: Find): Pair[] {
  const keyOf = ({ currency, amount }: Entry | Movement) => `${currency} ${amount}`;
  const byAmount = Map.groupBy(movements, keyOf);
  const groups = [...Map.groupBy(entries, keyOf)];
  const found = groups.flatMap(([key, same]) => find(same, byAmount.get(key) ?? []));
  const count = (of: (each: Pair) => unknown) => {
    const counts = new Map<unknown, number>();
    for (const each of found) counts.set(of(each), (counts.get(of(each)) ?? 0) + 1);
    return counts;
  };
  const [ofEntry, ofMovement] = [count(({ entry }) => entry), count(({ movement }) => movement)];
  return found.filter(({ entry, movement }) => ofEntry.get(entry) === 1 && ofMovement.get(movement) === 1);
}

const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * Finds the movements that an entry names. A movement is looked for under the word of its texts that the
 * fewest movements have, and compared only with entries that have this word.
 */
function findNamed(entries: readonly Entry[], movements: readonly Movement[]): Pair[] {
  const named = movements.flatMap((movement) =>
    textsOf(movement).map((text) => ({ movement, words: wordsOf(text) })),
  );
  const uses = new Map<string, number>();
  for (const { words } of named) for (const word of words) uses.set(word, (uses.get(word) ?? 0) + 1);
  const usesOf = (word: string) => uses.get(word) ?? 0;
  const byWord = Map.groupBy(named, ({ words }) =>
    words.reduce((one, other) => (usesOf(other) < usesOf(one) ? other : one), words[0] ?? ''),
  );
  const byReference = Map.groupBy(movements, ({ bankReference }) => bankReference);
  return entries.flatMap((entry) => {
    const words = [...new Set(wordsOf(entry.description))];
    const sharing = words.flatMap((word) => (byWord.get(word) ?? []).map(({ movement }) => movement));
    const candidates = new Set([...(byReference.get(entry.reference) ?? []), ...sharing]);
    return [...candidates]
      .filter((movement) => names(entry, movement))
      .map((movement) => ({ entry, movement }));
  });
}

/** Finds the pairs in which each side is the only one near the other. */
function findNear(entries: readonly Entry[], movements: readonly Movement[]): Pair[] {
  const entriesNear = nearOf(entries, ({ bookedOn }) => bookedOn);
  const movementsNear = nearOf(movements, ({ day }) => day);
  return entries.flatMap((entry) => {
    const [movement, another] = movementsNear(entry.bookedOn);
    const isOnly = movement && !another && entriesNear(movement.day).length === 1;
    return isOnly ? [{ entry, movement }] : [];
  });
}

/** Returns a function that finds what is within a few days of a day: at most two, since two are ambiguous. */
function nearOf<Each>(some: readonly Each[], dayOf: (each: Each) => string): (day: string) => Each[] {
  const byDay = Map.groupBy(some, dayOf);
  const days = Array.from({ length: 2 * DAYS_APART + 1 }, (_, at) => at - DAYS_APART);
  return (day) => days.flatMap((apart) => byDay.get(addDays(day, apart))?.slice(0, 2) ?? []).slice(0, 2);
}

/** Returns the pairs in which the entry names the movement. */
export const exactPairs = (entries: readonly Entry[], movements: readonly Movement[]) =>
  pair(entries, movements, findNamed);

/** Returns the pairs of about the same day. */
export const suggestedPairs = (entries: readonly Entry[], movements: readonly Movement[]) =>
  pair(entries, movements, findNear);

/** Returns the entries that pay a settlement: they name its number, and have its amount. */
function payoutsIn(entries: readonly Entry[], payable: readonly Payable[]): PayoutSeen[] {
  const unpaid = Map.groupBy(payable, ({ currency, payable }) => `${currency} ${-payable}`);
  return entries.flatMap((entry) => {
    const [settlement, ...others] = (unpaid.get(`${entry.currency} ${entry.amount}`) ?? []).filter(
      ({ number }) => holds(entry.description, number),
    );
    return settlement && others.length === 0 ? [{ entry, settlement }] : [];
  });
}

function holds(text: string, reference: string): boolean {
  const escaped = reference.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'u').test(text);
}

const textsOf = ({ reference, bankReference, settlement }: Movement): string[] =>
  [reference, bankReference, settlement].flatMap((each) =>
    each !== null && each.length >= REFERENCE_MIN && wordsOf(each).length > 0 ? [each] : [],
  );

/** Returns whether an entry names a movement, as a separate word of its text. */
function names({ description, reference }: Entry, movement: Movement): boolean {
  if (movement.bankReference !== null && movement.bankReference === reference) return true;
  return textsOf(movement).some((each) => holds(description, each));
}

/**
 * Matches by hand: one entry with one or several movements, or several entries with one movement. The
 * unmatched amounts of both sides must be equal.
 * @throws Problem if an entry or a movement does not exist; Refusal `13` if the sums differ or one of them is
 *   matched already; `30` for several on both sides
 */
export async function matchByHand(
  operator: Operator,
  wanted: { readonly entries: readonly string[]; readonly movements: readonly string[] },
): Promise<void> {
  if (wanted.entries.length > 1 && wanted.movements.length > 1)
    throw new Refusal('30', {
      message: 'Invalid request: several entries and several movements; match one with several',
    });
  await operator.service.db.transaction(async (tx) => {
    await lockMatching(tx);
    const ids = wanted.entries.map((each) => toId(each, 'entries'));
    const { entries, movements } = await getBoth(tx, ids, wanted.movements);
    const leftOf = (each: Entry | Movement) => each.amount - each.matched;
    const sum = (some: readonly (Entry | Movement)[]) =>
      some.reduce((total, each) => total + leftOf(each), 0n);
    const all = [...entries, ...movements];
    const currencies = new Set(all.map(({ currency }) => currency));
    if (currencies.size > 1 || sum(entries) !== sum(movements) || all.some((each) => leftOf(each) === 0n))
      throw new Refusal('13', {
        message: 'Invalid amount: what is left of the entries and of the movements is not equal',
      });
    for (const entry of entries)
      for (const movement of movements) {
        const left = entries.length > 1 ? leftOf(entry) : leftOf(movement);
        await storeMatch(tx, operator, { entry, movement }, left, 'manual');
      }
    const after = { entries: ids, movements: wanted.movements };
    const touches = ids.map((id) => `bank entry ${id}`);
    await audit(tx, operator, { action: 'bank.match', subject: 'bank', after, touches });
  });
}

async function getBoth(tx: Queries, entryIds: readonly number[], movementIds: readonly string[]) {
  const entries = await entriesOf(tx, entryIds);
  const movements = await movementsOf(tx, movementIds);
  if (entries.length !== new Set(entryIds).size) throw notFound('such entry');
  if (movements.length !== new Set(movementIds).size)
    throw notFound('movement of the funding account with this transaction id');
  return { entries, movements };
}

/** Allows one matching at a time. */
async function lockMatching(tx: Queries): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock(7311990017)`);
}

type How = 'exact' | 'suggested' | 'manual';

async function storeMatch(
  tx: Queries,
  { service, actor }: Operator,
  { entry, movement }: Pair,
  amount: bigint,
  how: How,
): Promise<void> {
  const { transactionId, kind, reference, occurredAt } = movement;
  await tx.query(sql`
with matched as (
  update bank_entries set matched_minor = matched_minor + ${amount} where id = ${entry.id}
)
insert into bank_matches (entry_id, movement_id, kind, reference, occurred_at, amount_minor, how, matched_by,
  matched_at)
values (${entry.id}, ${transactionId}, ${kind}, ${reference}, ${occurredAt}, ${amount}, ${how},
  ${actor.name}, ${service.clock()})`);
}

type Payable = {
  readonly id: string;
  readonly number: string;
  readonly merchant: string;
  readonly currency: string;
  readonly payable: bigint;
};

/** Returns the settlements whose payout is not booked. */
function payableSettlements(tx: Queries): Promise<Payable[]> {
  return tx.query(sql`
select s.id::text, settlement_number(s.merchant_id, s.year, s.number) as number, m.name as merchant,
  s.currency, s.payable_minor as payable
from settlements s join merchants m on m.id = s.merchant_id
where s.state in ('APPROVED', 'RETURNED') and s.payable_minor > 0 order by s.id limit 100000`);
}

/** Removes the match of an entry. @throws Problem if the entry is not matched */
export async function unmatch(operator: Operator, id: string): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await lockMatching(tx);
    const entryId = toId(id);
    const undone = await tx.query<{ movement: string }>(sql`
with undone as (
  update bank_entries set matched_minor = 0 where id = ${entryId}
)
delete from bank_matches where entry_id = ${entryId} returning movement_id as movement`);
    if (undone.length === 0) throw notFound('such entry, or it is not matched');
    const before = { movements: undone.map(({ movement }) => movement) };
    await audit(tx, operator, { action: 'bank.unmatch', subject: `bank entry ${entryId}`, before });
  });
}

const PairSchema = Type.Object({
  entry: EntryId,
  bookedOn: Day,
  description: Text,
  amount: Money(BANK_ENTRY),
  currency: Text,
  movement: TransactionId,
  kind: MovementWord,
  reference: NullableText,
  occurredOn: Day,
});

const pairOf = ({ entry, movement }: Pair): Static<typeof PairSchema> => ({
  entry: entry.id,
  bookedOn: entry.bookedOn,
  description: entry.description,
  amount: entry.amount,
  currency: entry.currency,
  movement: movement.transactionId,
  kind: movement.kind,
  reference: movement.reference,
  occurredOn: movement.day,
});

const PayoutSchema = Type.Object({
  entry: EntryId,
  bookedOn: Day,
  amount: Money(BANK_ENTRY),
  currency: Text,
  bankReference: Text,
  settlement: Id('settlement'),
  number: Text,
  merchant: Text,
});

const payoutOf = ({ entry, settlement }: PayoutSeen): Static<typeof PayoutSchema> => ({
  entry: entry.id,
  bookedOn: entry.bookedOn,
  amount: entry.amount,
  currency: entry.currency,
  bankReference: entry.reference,
  settlement: settlement.id,
  number: settlement.number,
  merchant: settlement.merchant,
});

const match = changing({
  name: 'bank.match',
  summary: 'Match the entries that are certain, and suggest the rest',
  description:
    'An entry is certain if it names the reference of one movement of its amount. Suggested is the one movement of ' +
    'its amount within three days. `payouts` are entries that pay a settlement whose payout is not booked: book it ' +
    'with `settlement pay`, and match again.',
  path: '/bank/match',
  input: {
    accept: Type.Optional(
      Type.Boolean({ title: 'Accept suggestions', description: 'Match the suggestions too.' }),
    ),
    dryRun: Type.Optional(
      Type.Boolean({ 'x-asked': false, description: 'Only say what would be matched and suggested.' }),
    ),
  },
  output: Type.Object({
    exact: Type.Array(PairSchema),
    suggested: Type.Array(PairSchema),
    payouts: Type.Array(PayoutSchema),
  }),
  roles: MONEY,
  approval: alone('It moves no money, and a match can be taken back.'),
  asksReason: false,
  async run(caller, { accept = false, dryRun = false }) {
    const { exact, suggested, payouts } = await matchBank(caller, accept, dryRun);
    return {
      exact: exact.map(pairOf),
      suggested: suggested.map(pairOf),
      payouts: payouts.map(payoutOf),
    };
  },
});

const SIDE_MAX = 1_000;
const SIDE = { minItems: 1, maxItems: SIDE_MAX, uniqueItems: true };
const Entries = Type.Array(EntryId, { ...SIDE, description: 'The entries of the bank.' });
const Movements = Type.Array(TransactionId, { ...SIDE, description: 'The movements of the books.' });

const matchOne = changing({
  name: 'bank.match-by-hand',
  summary: 'Match one entry with one or several movements, or several entries with one movement',
  path: '/bank/matches',
  command: 'bank match',
  input: { entries: Entries, movements: Movements },
  output: Type.Object({ entries: Entries, movements: Movements }),
  roles: MONEY,
  approval: alone('It moves no money, and a match can be taken back.'),
  asksReason: false,
  audit: 'bank.match',
  async run(caller, { entries, movements }) {
    await matchByHand(caller, { entries, movements });
    return { entries, movements };
  },
});

const unmatchOne = changing({
  name: 'bank.unmatch',
  title: 'Undo the match',
  summary: 'Undo the match of an entry',
  path: '/bank/entries/:id/unmatch',
  input: { id: EntryId },
  output: Type.Object({ entry: EntryId }),
  roles: MONEY,
  approval: alone('It moves no money, and the match can be made again.'),
  risk: 'step-up',
  async run(caller, { id }) {
    await unmatch(caller, id);
    return { entry: id };
  },
});

export const matching = { match, matchOne, unmatchOne };

export const OPERATIONS = tableOf(...Object.values(matching));
