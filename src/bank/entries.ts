import Type, { type Static } from 'typebox';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { ENTRY, type Figure, fieldOf, none, sumOf, when } from '../figure.ts';
import { kindsOn, listOf, MovementWord } from '../ledger/kinds.ts';
import { listing, listingAll } from '../listing.ts';
import { reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { SEE } from '../principal.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  Day,
  Id,
  Money,
  Nullable,
  NullableText,
  Opening,
  Text,
  Titled,
  TransactionId,
  toId,
} from '../schema.ts';
import { BankName } from './accounts.ts';
import { BANK_ENTRY } from './statement.ts';

/** Entries of the operator's bank, and the movements of the books that should be among them. */

export const EntryId = Id('entry');

/** An import is one amount at the bank, and one movement for each voucher in the journal. */
const MOVEMENT = when({ kind: ['IMPORT'] }, ENTRY, fieldOf('transaction.show', 'transactionId'));

const OfSettlement = {
  settlement: Nullable(Text, { description: 'The number of the settlement that it pays.' }),
  root: Nullable(Text, {
    title: 'Root of its rows',
    description: 'The root of the rows of that settlement, as its proof shows it.',
  }),
};

/** The columns of a settlement `s` that a movement pays. */
const OF_SETTLEMENT = sql`
  settlement_number(s.merchant_id, s.year, s.number) as settlement, encode(s.root, 'hex') as root`;

/** Selects what an entry is matched with, with the settlement that it pays. @param entry its id */
export const matchesOf = (entry: Sql): Sql => sql`
select m.*, ${OF_SETTLEMENT}
from bank_matches m
left join settlement_payouts p on p.id = m.movement_id
left join settlements s on s.id = p.settlement_id
where m.entry_id = ${entry}`;

const EntryFields = {
  id: EntryId,
  account: Text,
  currency: Text,
  reference: Text,
  bookedOn: Day,
  amount: Money(BANK_ENTRY, 'Positive: received.'),
  matched: Money(sumOf('movements.amount')),
  description: Text,
};
const EntryRow = Type.Object(EntryFields);
const EntrySchema = Type.Object({
  ...EntryFields,
  movements: Type.Array(
    Type.Object({
      transactionId: TransactionId,
      kind: MovementWord,
      reference: NullableText,
      amount: Money(MOVEMENT, 'The part of it that is matched with the entry.'),
      ...OfSettlement,
    }),
  ),
});

/** An entry of the bank. The amounts are in minor units. */
export type Entry = Static<typeof EntryRow>;

const COLUMNS = columnsOf(EntryRow, 'e', {
  currency: sql`a.currency`,
  reference: sql`e.entry_reference`,
});

/** Selects entries `e` with the currency of their account. @param more further columns */
export const entriesWhere = (condition: Sql, more: Sql = sql``): Sql => sql`
select ${COLUMNS} ${more}
from bank_entries e join bank_accounts a on a.name = e.account
where ${condition}`;

/** Returns entries that are not completely matched, oldest first. */
export function openEntries(db: Queries): Promise<Entry[]> {
  return db.query(
    entriesWhere(sql`e.matched_minor <> e.amount_minor order by e.booked_on, e.id limit 20000`),
  );
}

export function entriesOf(db: Queries, ids: readonly number[]): Promise<Entry[]> {
  return db.query(entriesWhere(sql`e.id = any (${ids}::int[]) order by e.id`));
}

export const bankEntries = listing({
  name: 'bank.entries',
  summary: 'List entries of the bank, newest first, and what they are matched with',
  path: '/bank/entries',
  filters: {
    account: Type.Optional(BankName),
    open: Type.Optional(
      Type.Boolean({ title: 'Open only', description: 'Only those that are not fully matched.' }),
    ),
    statement: Type.Optional({ ...Id('statement'), description: 'Only those of this statement.' }),
  },
  item: EntrySchema,
  columns: ['id', 'account', 'bookedOn', 'amount', 'description', 'movements'],
  roles: SEE,
  async rows({ service }, { account, open, statement }, [before], count) {
    const isOpen = open ? sql`e.matched_minor <> e.amount_minor` : sql`true`;
    const ofAccount = account === undefined ? sql`` : sql`and e.account = ${account}`;
    const ofStatement =
      statement === undefined ? sql`` : sql`and e.file_id = ${toId(statement, 'statement')}`;
    const earlier = before === undefined ? sql`` : sql`and e.id < ${before}`;
    const found = await service.readDb.query<Static<typeof EntrySchema>>(
      entriesWhere(
        sql`${isOpen} ${ofAccount} ${ofStatement} ${earlier} order by e.id desc limit ${count}`,
        sql`, coalesce((
    select json_agg(
      json_build_object('transactionId', m.movement_id, 'kind', m.kind, 'reference', m.reference,
        'amount', m.amount_minor,
        'settlement', m.settlement, 'root', m.root)
      order by m.movement_id)
    from (${matchesOf(sql`e.id`)}) m
  ), '[]') as movements`,
      ),
    );
    // In JSON, an amount is a number.
    const own = (movement: (typeof found)[number]['movements'][number]) => ({
      ...movement,
      amount: BigInt(movement.amount),
    });
    return found.map((each) => ({ ...each, movements: each.movements.map(own) }));
  },
});

const OPEN: Figure = [{ of: 'bank.entries', given: { account: '{account}', open: 'true' } }];

const OpenSchema = Type.Object({
  account: Text,
  currency: Text,
  entries: Opening(OPEN, Count),
  openAmount: Titled('Open amount', Money(OPEN, 'What of them is not matched. Positive: received.')),
});

export const bankOpen = listingAll({
  name: 'bank.open',
  summary: 'Sum up the entries of each bank account that are not fully matched',
  description: 'An account is left out when all of its entries are matched.',
  path: '/bank/open',
  item: OpenSchema,
  roles: SEE,
  rows: ({ service: { readDb } }) =>
    readDb.query(sql`
select e.account, a.currency, count(*)::int as entries,
  sum(e.amount_minor - e.matched_minor)::bigint as "openAmount"
from bank_entries e join bank_accounts a on a.name = e.account
where e.matched_minor <> e.amount_minor
group by e.account, a.currency order by e.account`),
});

const MovementSchema = Type.Object({
  transactionId: TransactionId,
  kind: MovementWord,
  currency: Text,
  day: Day,
  amount: Money(MOVEMENT, 'Positive: received.'),
  matched: Money(none('Entries of the bank, which name the movements that they are matched with.')),
  reference: NullableText,
  bankReference: NullableText,
  ...OfSettlement,
});

/** A movement of the books. The amounts are in minor units, and the day is one of the books. */
export type Movement = Static<typeof MovementSchema> & { readonly occurredAt: Date };

/**
 * The kinds of movements that should appear on the operator's bank statement. The index journal_of_funding
 * covers them.
 */
const FUNDING_KINDS = listOf(kindsOn('FUNDING').filter((kind) => kind !== 'IMPORT'));

const FUNDING = sql`array(select f.id from accounts f where f.merchant_id = 0 and f.kind = 'FUNDING')`;

/**
 * Selects the movements on the funding accounts that should appear on the operator's bank statement. Cash
 * that a merchant paid out is left out, since it does not move these accounts. An import books one movement
 * for each voucher, which are one amount at the bank. On several shards, the journal is not where most other
 * tables are, so it is read first and by itself.
 * @param condition selects rows `j`, of the journal or of imports
 * @param countMax only the newest of them
 */
function movementsWhere(condition: Sql, countMax?: number): Sql {
  const newest = countMax === undefined ? sql`` : sql` order by id desc limit ${countMax}`;
  return sql`
with picked as materialized (
  select j.id, j.kind, j.debit_account, j.credit_account, j.amount_minor, j.currency, j.reference,
    j.occurred_at
  from journal j
  where j.kind in ${FUNDING_KINDS} and (j.kind <> 'CASH_OUT' or j.credit_account = any (${FUNDING}))
    and ${condition}${newest}
), moved as materialized (
  select * from picked
  union all
  (
    select j.id, 'IMPORT'::entry_kind, j.account_id, 0, j.amount_minor, j.currency, j.reference, j.occurred_at
    from import_movements j where ${condition}${newest}
  )${newest}
)
select j.id as "transactionId", j.kind::text as kind, j.currency,
  (j.occurred_at at time zone (select k.zone from books k))::date::text as day,
  case when j.debit_account = f.id then j.amount_minor else -j.amount_minor end as amount,
  coalesce((select sum(m.amount_minor) from bank_matches m where m.movement_id = j.id), 0)::bigint as matched,
  j.reference, p.bank_reference as "bankReference",
  ${OF_SETTLEMENT}, j.occurred_at as "occurredAt"
from moved j
join accounts f on f.merchant_id = 0 and f.kind = 'FUNDING' and f.id in (j.debit_account, j.credit_account)
left join settlement_payouts p on p.id = j.id
left join settlements s on s.id = p.settlement_id`;
}

/** Returns movements since a time that are not completely matched. */
export function openMovements(db: Queries, since: Date): Promise<Movement[]> {
  return db.query(sql`
select * from (${movementsWhere(sql`j.id >= id_floor(${since}::timestamptz)`)}) m
where m.matched <> m.amount order by m."occurredAt", m."transactionId" limit 100000`);
}

export function movementsOf(db: Queries, ids: readonly string[]): Promise<Movement[]> {
  return db.query(sql`${movementsWhere(sql`j.id = any (${ids}::uuid[])`)} order by j.id`);
}

/** The most rows that are read for a page of open movements. */
const SCAN_MAX = 5_000;

/** A row of a page. If no movement was found, the only row has no id. */
type Scanned = Partial<Movement> & {
  /** The last id that was read; null if all rows were read. */
  readonly scannedTo: string | null;
};

export const bankMovements = reading({
  name: 'bank.movements',
  summary: 'List the movements that the bank should show, newest first',
  path: '/bank/movements',
  input: {
    ...PAGE,
    open: Type.Optional(
      Type.Boolean({
        description:
          'Only those that are not fully matched. A page may then hold fewer than its limit, or none, and ' +
          'still have a `nextCursor`: each page looks through a bounded number.',
      }),
    ),
  },
  output: Page(MovementSchema),
  columns: ['transactionId', 'day', 'kind', 'amount', 'reference', 'settlement'],
  roles: SEE,
  async run({ service }, { cursor, limit = 50, open = false }) {
    const [before] = readCursor(cursor);
    const earlier = before === undefined ? sql`true` : sql`j.id < ${before}::uuid`;
    const rows = await service.readDb.query<Scanned>(sql`
with scanned as materialized (
  ${movementsWhere(earlier, open ? SCAN_MAX : limit + 1)}
)
select f.*, s."scannedTo" from (
  select case
    when count(*) = ${SCAN_MAX} then (select o."transactionId"::text from scanned o order by o."transactionId" limit 1)
  end as "scannedTo"
  from scanned
) s
left join lateral (
  select c.* from scanned c where not ${open}::boolean or c.matched <> c.amount
  order by c."transactionId" desc limit ${limit + 1}
) f on true
order by f."transactionId" desc`);
    const found = rows.filter((row) => row.transactionId !== null) as (Movement & Scanned)[];
    const [scannedTo] = rows.flatMap((row) => row.scannedTo ?? []);
    const last = scannedTo === undefined ? undefined : [scannedTo];
    return pageOf(found, limit, (each) => [each.transactionId], last);
  },
});

export const OPERATIONS = tableOf(bankEntries, bankOpen, bankMovements);
