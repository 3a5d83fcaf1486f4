import Type, { type Static } from 'typebox';
import {
  itemsOf,
  type ListedEntry,
  listBankEntries,
  listBankMovements,
  type Scanned,
} from '../bank/list.queries.ts';
import { matchBank, matchByHand, type Pair, type PayoutSeen, unmatch } from '../bank/match.ts';
import type { MovementRow } from '../bank/queries.ts';
import { decimalsOf, type Money, toNumber } from '../money.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import { Day, Id, Input, Nullable, NullableText, Reason, Text, TransactionId, toId } from '../schema.ts';
import { BankName } from './bank.ts';

/** Bank entries, movements, and the matching of the two. */

const EntryId = Id('entry');
const Open = Type.Boolean({ description: 'Only those that are not fully matched.' });
const OpenMovements = Type.Boolean({
  description:
    'Only those that are not fully matched. A page may then hold fewer than its limit, or none, and ' +
    'still have a `nextCursor`: each page looks through a bounded number.',
});

const EntrySchema = Type.Object({
  id: EntryId,
  account: Text,
  currency: Text,
  reference: Text,
  bookedOn: Day,
  amount: Type.Number({ description: 'Positive: received.' }),
  matched: Type.Number(),
  description: Text,
  movements: Type.Array(Type.Object({ transactionId: TransactionId, kind: Text, reference: NullableText })),
});
export type BankEntry = Static<typeof EntrySchema>;

const entries = reading({
  name: 'bank.entries',
  summary: 'List entries of the bank, newest first, and what they are matched with',
  method: 'GET',
  path: '/bank/entries',
  command: 'bank entries',
  input: Input({ ...PAGE, account: Type.Optional(BankName), open: Type.Optional(Open) }),
  output: Page(EntrySchema),
  roles: SEE,
  async run({ service }, { cursor, limit = 50, account, open = false }) {
    const filters = { account, open };
    const [before] = readCursor('bank entries', filters, cursor) ?? [];
    const last = before === undefined ? null : Number(before);
    const wanted = { account: account ?? null, open };
    const rows = await service.readDb.query<ListedEntry>(listBankEntries(wanted, last, limit + 1));
    const items = rows.map(({ decimals, ...row }) => ({
      id: String(row.id),
      account: row.account,
      currency: row.currency,
      reference: row.entry_reference,
      bookedOn: row.booked_on,
      amount: toNumber({ minor: row.amount_minor, decimals }),
      matched: toNumber({ minor: row.matched_minor, decimals }),
      description: row.description,
      movements: [...row.movements],
    }));
    return pageOf('bank entries', filters, items, limit, ({ id }) => [Number(id)]);
  },
});

const MovementSchema = Type.Object({
  transactionId: TransactionId,
  kind: Text,
  currency: Text,
  day: Day,
  amount: Type.Number({ description: 'Positive: received.' }),
  matched: Type.Number(),
  reference: NullableText,
  bankReference: NullableText,
  settlement: Nullable(Text, { description: 'The number of the settlement that it pays.' }),
});
export type BankMovement = Static<typeof MovementSchema>;

const movements = reading({
  name: 'bank.movements',
  summary: 'List the movements that the bank should show, newest first',
  method: 'GET',
  path: '/bank/movements',
  command: 'bank movements',
  input: Input({ ...PAGE, open: Type.Optional(OpenMovements) }),
  output: Page(MovementSchema),
  roles: SEE,
  async run({ service }, { cursor, limit = 50, open = false }) {
    const filters = { open };
    const [before = null] = readCursor('bank movements', filters, cursor) ?? [];
    const last = before === null ? null : String(before);
    const rows = await service.readDb.query<Scanned<MovementRow>>(listBankMovements(open, last, limit + 1));
    const { found, scannedTo } = itemsOf(rows);
    const items = found.map((row) => ({
      transactionId: row.id,
      kind: row.kind,
      currency: row.currency,
      day: row.occurred_on,
      amount: toNumber(moneyOf(row.amount_minor, row.currency)),
      matched: toNumber(moneyOf(row.matched_minor, row.currency)),
      reference: row.reference,
      bankReference: row.bank_reference,
      settlement: row.number,
    }));
    return pageOf('bank movements', filters, items, limit, (each) => [each.transactionId], scannedTo);
  },
});

const moneyOf = (minor: bigint, currency: string): Money => ({ minor, decimals: decimalsOf(currency) ?? 0 });

const PairSchema = Type.Object({
  entry: EntryId,
  bookedOn: Day,
  description: Text,
  amount: Type.Number(),
  currency: Text,
  movement: TransactionId,
  kind: Text,
  reference: NullableText,
  occurredOn: Day,
});

const pairJson = ({ entry, movement }: Pair): Static<typeof PairSchema> => ({
  entry: String(entry.id),
  bookedOn: entry.booked_on,
  description: entry.description,
  amount: toNumber(moneyOf(entry.amount_minor, entry.currency)),
  currency: entry.currency,
  movement: movement.id,
  kind: movement.kind,
  reference: movement.reference,
  occurredOn: movement.occurred_on,
});

const PayoutSchema = Type.Object({
  entry: EntryId,
  bookedOn: Day,
  amount: Type.Number(),
  currency: Text,
  bankReference: Text,
  settlement: Id('settlement'),
  number: Text,
  merchant: Text,
});

const payoutJson = ({ entry, settlement }: PayoutSeen): Static<typeof PayoutSchema> => ({
  entry: String(entry.id),
  bookedOn: entry.booked_on,
  amount: toNumber(moneyOf(entry.amount_minor, entry.currency)),
  currency: entry.currency,
  bankReference: entry.entry_reference,
  settlement: String(settlement.id),
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
  method: 'POST',
  path: '/bank/match',
  command: 'bank match',
  input: Input({
    accept: Type.Optional(Type.Boolean({ description: 'Match the suggestions too.' })),
    reason: Reason,
  }),
  output: Type.Object({
    exact: Type.Array(PairSchema),
    suggested: Type.Array(PairSchema),
    payouts: Type.Array(PayoutSchema),
  }),
  roles: MONEY,
  approval: alone('It moves no money, and a match can be taken back.'),
  async run(caller, { accept = false }) {
    const { exact, suggested, payouts } = await matchBank(caller, accept);
    return {
      exact: exact.map(pairJson),
      suggested: suggested.map(pairJson),
      payouts: payouts.map(payoutJson),
    };
  },
});

const SIDE_MAX = 1_000;
const Entries = Type.Array(EntryId, { minItems: 1, maxItems: SIDE_MAX, uniqueItems: true });
const Movements = Type.Array(TransactionId, { minItems: 1, maxItems: SIDE_MAX, uniqueItems: true });

const matchOne = changing({
  name: 'bank.match-by-hand',
  summary: 'Match one entry with one or several movements, or several entries with one movement',
  method: 'POST',
  path: '/bank/matches',
  command: 'bank match',
  input: Input({ entries: Entries, movements: Movements, reason: Reason }),
  output: Type.Object({ entries: Entries, movements: Movements }),
  roles: MONEY,
  approval: alone('It moves no money, and a match can be taken back.'),
  audit: 'bank.match',
  async run(caller, input) {
    const entryIds = input.entries.map((each) => toId(each, 'entries'));
    await matchByHand(caller, { entryIds, movementIds: input.movements });
    return { entries: input.entries, movements: input.movements };
  },
});

const unmatchOne = changing({
  name: 'bank.unmatch',
  summary: 'Undo the match of an entry',
  method: 'POST',
  path: '/bank/entries/:id/unmatch',
  command: 'bank unmatch',
  input: Input({ id: EntryId, reason: Reason }),
  output: Type.Object({ entry: EntryId }),
  roles: MONEY,
  approval: alone('It moves no money, and the match can be made again.'),
  risk: 'step-up',
  async run(caller, { id }) {
    await unmatch(caller, toId(id));
    return { entry: id };
  },
});

export const bankMatching = {
  entries,
  movements,
  match,
  matchByHand: matchOne,
  unmatch: unmatchOne,
};

export const BANK_MATCHING = tableOf(...Object.values(bankMatching));
