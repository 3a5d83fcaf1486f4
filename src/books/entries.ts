import Type, { type Static } from 'typebox';
import type { Queries } from '../db/pool.ts';
import { readLong } from '../db/session.ts';
import { type Sql, sql } from '../db/sql.ts';
import { ENTRY, none } from '../figure.ts';
import { ACCOUNT_KINDS, AccountWord, kindOf, MOVEMENT_KINDS, MovementWord } from '../ledger/kinds.ts';
import { type Caller, reading, tableOf } from '../operation.ts';
import { PAGE, pageOf, readCursor } from '../page.ts';
import { SEE } from '../principal.ts';
import { EXPIRY_POLICIES, ProductCode } from '../products/products.ts';
import {
  Count,
  Currency,
  End,
  Id,
  MerchantId,
  Money,
  Nullable,
  NullableText,
  Opening,
  requireDecimals,
  SerialNumber,
  Start,
  Text,
  Time,
  Titled,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import { HOUR_MS, isDay } from '../time.ts';
import { toEnd, toStart, zoneOfBooks } from '../zone.ts';
import { bookedBetween } from './days.ts';

/**
 * The entries of the journal behind a figure: those of some accounts, kinds and owners that were booked in an
 * interval, with their sum. Reports read sums that were made before; this reads the entries themselves.
 */

/** What an entry adds to the sum, by whether it credits and debits the accounts. */
const SUMS = {
  net: sql`case when is_credit then amount_minor else 0 end - case when is_debit then amount_minor else 0 end`,
  'net-debits': sql`case when is_debit then amount_minor else 0 end - case when is_credit then amount_minor else 0 end`,
  credits: sql`case when is_credit then amount_minor else 0 end`,
  debits: sql`case when is_debit then amount_minor else 0 end`,
} as const;

/** Reversals of redemptions before the interval. A settlement lists them apart. */
const EARLIER = 'EARLIER_REVERSAL';

/** One of some words, or several of them, as one parameter. */
function Words(words: readonly string[], description: string, example: string) {
  const one = `(${words.join('|')})`;
  return Type.String({
    pattern: `^${one}(,${one})*$`,
    maxLength: 500,
    description: `${description} Several are separated by commas.`,
    examples: [example],
  });
}

const INPUT = {
  currency: Currency,
  account: Type.Optional(
    Words(ACCOUNT_KINDS, 'The kind of account; left out: all accounts, which add up to 0.', 'VOUCHER'),
  ),
  sum: Type.Optional(
    Word(Object.keys(SUMS) as (keyof typeof SUMS)[], {
      default: 'net',
      description: 'What is added up. `net`: credits less debits.',
      'x-labels': { net: 'Credits less debits', 'net-debits': 'Debits less credits' },
    }),
  ),
  kind: Type.Optional(Words([...MOVEMENT_KINDS, EARLIER], 'The type of the entries.', 'REDEMPTION')),
  merchantId: Type.Optional({ ...MerchantId, description: 'The merchant of the entries.' }),
  issuerId: Type.Optional({ ...Id('merchant'), 'x-format': 'merchant' }),
  product: Type.Optional(ProductCode),
  batch: Type.Optional({ ...TransactionId, description: 'The batch of the vouchers.' }),
  issueMonth: Type.Optional(
    Type.String({
      pattern: '^[0-9]{4}-[0-9]{2}$',
      description: 'The month of issue.',
      examples: ['2026-01'],
    }),
  ),
  policy: Type.Optional(Word(EXPIRY_POLICIES, { title: 'Expired value goes to' })),
  from: Type.Optional(Start('From when on they were booked; left out: from the beginning.')),
  to: Type.Optional(End('Until when they were booked, without a time itself; left out: until now.')),
  setsApart: Type.Optional(
    Type.Boolean({
      description: `Whether reversals of redemptions before \`from\` have the type \`${EARLIER}\`.`,
    }),
  ),
};

type Wanted = { readonly [Name in keyof typeof INPUT]?: Static<(typeof INPUT)[Name]> | undefined };

const SUMMED = none('Of the entries of this list.');

const EntrySchema = Type.Object({
  transactionId: TransactionId,
  bookedAt: Titled('Booked', Time),
  kind: Titled('Type', MovementWord),
  debit: Titled('Debit', AccountWord),
  credit: Titled('Credit', AccountWord),
  currency: Text,
  merchantId: Nullable(MerchantId),
  product: NullableText,
  serialNumber: Nullable(SerialNumber),
  reference: NullableText,
  amount: Money(ENTRY, 'As it counts in the sum.'),
});

type Row = Static<typeof EntrySchema> & { readonly place: string };

/** Returns a day of the books: its zone is the one that it began with. */
async function momentOf(
  caller: Caller,
  text: string | undefined,
  field: 'from' | 'to',
): Promise<Date | null> {
  if (text === undefined) return null;
  if (isDay(text)) {
    const [day] = await caller.service.db.query<{ startsAt: Date; endsAt: Date }>(sql`
select starts_at as "startsAt", ends_at as "endsAt" from book_days where day = ${text}::date`);
    if (day) return field === 'from' ? day.startsAt : day.endsAt;
  }
  if (field === 'from') return toStart(caller, text, field);
  const end = await toEnd(caller, text, field);
  return isDay(text) ? new Date(end.getTime() + 1) : end;
}

/** Before the first entry of any journal. */
const EPOCH = new Date('2000-01-01');

/** Returns the statement of the entries from its word `from` on. */
async function entriesOf(caller: Caller, wanted: Wanted): Promise<Sql> {
  const {
    currency,
    account,
    sum = 'net',
    kind,
    product,
    batch,
    policy,
    issueMonth,
    setsApart = false,
  } = wanted;
  if (currency !== undefined) requireDecimals(currency);
  const zone = await zoneOfBooks(caller.service.db);
  const start = (await momentOf(caller, wanted.from, 'from')) ?? EPOCH;
  const end =
    (await momentOf(caller, wanted.to, 'to')) ?? new Date(caller.service.clock().getTime() + HOUR_MS);
  const accounts = account?.split(',') ?? [...ACCOUNT_KINDS];
  const merchant = wanted.merchantId === undefined ? null : toId(wanted.merchantId, 'merchantId');
  const issuer = wanted.issuerId === undefined ? null : toId(wanted.issuerId, 'issuerId');
  const counts = { net: sql`is_credit <> is_debit`, credits: sql`is_credit`, debits: sql`is_debit` };
  const earlier = sql`
    case when ${setsApart} and r.kind = 'REDEMPTION_REVERSAL' and coalesce(l.slice_at, o.occurred_at) < ${start}
      then ${EARLIER} else r.kind::text end`;
  return sql`
from (
  select r.place, r.id, r.booked_at, r.kind::text as kind, k.debit, k.credit, r.currency, r.merchant_id,
    p.code as product, r.serial_number, r.reference, r.amount_minor, ${earlier} as listed,
    k.credit = any (${accounts}::text[]) as is_credit, k.debit = any (${accounts}::text[]) as is_debit
  from book_rows r
  left join accounts d on d.id = r.debit_account
  left join accounts c on c.id = r.credit_account
  left join vouchers v on v.bucket = r.bucket and v.serial_number = r.serial_number
  left join batches b on b.id = coalesce(r.batch_id, v.batch_id)
  left join products p on p.id = b.product_id
  left join journal o on r.kind = 'REDEMPTION_REVERSAL' and o.bucket = r.bucket and o.id = r.original_id
  left join book_late_rows l on l.id = o.id
  cross join lateral (
    select ${kindOf(sql`r.debit_account`, sql`d.kind::text`)} as debit,
      ${kindOf(sql`r.credit_account`, sql`c.kind::text`)} as credit
  ) k
  where ${bookedBetween(start, end)} and r.currency = ${currency}
    and (${merchant}::integer is null or r.merchant_id = ${merchant})
    and (${issuer}::integer is null or b.merchant_id = ${issuer})
    and (${product ?? null}::text is null or p.code = ${product ?? null})
    and (${batch ?? null}::uuid is null or b.transaction_id = ${batch ?? null}::uuid)
    and (${policy ?? null}::text is null or b.expiry_policy::text = ${policy ?? null})
    and (${issueMonth ?? null}::text is null
      or to_char(v.activated_at at time zone ${zone}, 'YYYY-MM') = ${issueMonth ?? null})
) e
where ${counts[sum === 'net-debits' ? 'net' : sum]}
  and (${kind ?? null}::text is null or listed = any (string_to_array(${kind ?? null}, ',')))`;
}

const COLUMNS = sql`
place, id as "transactionId", booked_at as "bookedAt", kind, debit, credit, currency,
merchant_id::text as "merchantId", product, serial_number::text as "serialNumber", reference`;

type Total = { readonly rows: number; readonly amount: bigint };

async function totalOf(tx: Queries, entries: Sql, amount: Sql): Promise<Total> {
  const [total] = await tx.query<Total>(sql`
select count(*)::float8 as rows, coalesce(sum(${amount}), 0)::bigint as amount ${entries}`);
  if (!total) throw new Error('an aggregate returned no row');
  return total;
}

const list = reading({
  name: 'books.entries',
  summary: 'List the entries of the journal behind a figure, newest first, with their sum',
  description:
    'The figures of answers and reports say in the OpenAPI document which entries they add up, or why none ' +
    '(`x-entries`).',
  path: '/books/entries',
  input: { ...INPUT, ...PAGE },
  output: Type.Object({
    items: Type.Array(EntrySchema),
    nextCursor: NullableText,
    total: Nullable(
      Type.Object({ currency: Text, rows: Titled('Entries', Opening(SUMMED, Count)), amount: Money(SUMMED) }),
      {
        description: 'Of all pages; null after the first page.',
      },
    ),
  }),
  columns: [
    'bookedAt',
    'kind',
    'debit',
    'credit',
    'merchantId',
    'product',
    'serialNumber',
    'reference',
    'amount',
  ],
  isHeavy: true,
  roles: SEE,
  async run(caller, { cursor, limit = 50, ...wanted }) {
    const [place = null, id = null] = readCursor(cursor);
    const entries = await entriesOf(caller, wanted);
    const amount = SUMS[wanted.sum ?? 'net'];
    return caller.service.db.transaction(async (tx) => {
      await readLong(tx, '10min');
      const rows = await tx.query<Row>(sql`
select ${COLUMNS}, ${amount} as amount ${entries}
  and (${place}::uuid is null or (place, id) < (${place}::uuid, ${id}::uuid))
order by place desc, id desc limit ${limit + 1}`);
      const page = pageOf(rows, limit, (row) => [row.place, row.transactionId]);
      const total = cursor === undefined ? await totalOf(tx, entries, amount) : undefined;
      return { ...page, total: total ? { currency: wanted.currency, ...total } : null };
    }, 'repeatable read');
  },
});

export const entries = { list };

export const OPERATIONS = tableOf(list);
