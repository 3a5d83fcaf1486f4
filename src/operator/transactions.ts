import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import { correctRedemption, getRedemption } from '../books/vouchers.ts';
import { findEntry, type JournalEntry, pageOfJournal } from '../ledger/journal.ts';
import { findClaimedTransactions } from '../ledger/queries.ts';
import { maskCode } from '../ledger/transactions.ts';
import { toSpan } from '../ledger/zone.ts';
import { merchantNamed, requireMerchant } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { ABOVE_LIMIT, type Caller, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound } from '../problem.ts';
import {
  Count,
  checkDay,
  Day,
  End,
  Input,
  Line,
  Major,
  MerchantId,
  minorOf,
  Nullable,
  NullableText,
  SerialNumber,
  Start,
  Text,
  Time,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import { addDays, isoDay } from '../time.ts';
import { countDeclines, pageOfDeclines } from '../vouchers/declines.ts';

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const TransactionSchema = Type.Object({
  transactionId: TransactionId,
  kind: Text,
  amount: Major('Negative for a reversal.'),
  currency: Text,
  timestamp: Time,
  merchantId: Nullable(MerchantId),
  reference: NullableText,
  serialNumber: Nullable(SerialNumber),
  voucherCode: Nullable(Text, { description: 'The code, masked.' }),
  originalTransactionId: Nullable(Text, {
    description: 'The redemption that an update corrected by this one.',
  }),
  refundStatus: Nullable(Text, { description: '`CANCELLED`, `NEW` or null.' }),
});

export type Transaction = Static<typeof TransactionSchema>;

const idOf = (id: number | bigint | null) => (id === null ? null : String(id));

function transactionJson({ code, ...entry }: JournalEntry): Transaction {
  return {
    transactionId: entry.transactionId,
    kind: entry.kind,
    amount: toNumber(entry.amount),
    currency: entry.currency,
    timestamp: entry.timestamp,
    merchantId: idOf(entry.merchantId),
    reference: entry.reference,
    serialNumber: idOf(entry.serialNumber),
    voucherCode: code === null ? null : maskCode(code),
    originalTransactionId: entry.originalTransactionId,
    refundStatus: entry.refundStatus,
  };
}

const list = reading({
  name: 'transaction.list',
  summary: 'List transactions, newest first',
  description:
    'With `merchantId`: its activations, redemptions and reversals; those of a generation are in its batch.',
  method: 'GET',
  path: '/transactions',
  command: 'transaction list',
  input: Input({
    ...PAGE,
    merchantId: Type.Optional(MerchantId),
    serialNumber: Type.Optional(SerialNumber),
    from: Type.Optional(Start('The first of them.')),
    to: Type.Optional(End('The last of them.')),
  }),
  output: Page(TransactionSchema),
  columns: ['transactionId', 'kind', 'amount', 'timestamp', 'merchantId', 'serialNumber', 'reference'],
  roles: SEE_VOUCHERS,
  async run(caller, { cursor, limit = 50, merchantId, serialNumber, from, to }) {
    const filters = { merchantId, serialNumber, from, to };
    const [before = null] = readCursor('transactions', filters, cursor) ?? [];
    const filter = {
      merchantId: merchantId === undefined ? null : toId(merchantId, 'merchantId'),
      serialNumber: serialNumber === undefined ? null : BigInt(serialNumber),
      ...(await toSpan(caller, { from, to })),
    };
    const rows = await pageOfJournal(
      caller.service,
      filter,
      before === null ? null : String(before),
      limit + 1,
    );
    return pageOf('transactions', filters, rows.map(transactionJson), limit, (each) => [each.transactionId]);
  },
});

async function show({ service }: Caller, id: string): Promise<Transaction> {
  const entry = await findEntry(service, id);
  if (!entry) throw notFound(`transaction ${id}`);
  return transactionJson(entry);
}

const showOne = reading({
  name: 'transaction.show',
  summary: 'Get a transaction',
  method: 'GET',
  path: '/transactions/:transactionId',
  command: 'transaction show',
  input: Input({ transactionId: TransactionId }),
  output: TransactionSchema,
  roles: SEE_VOUCHERS,
  run: (caller, { transactionId }) => show(caller, transactionId),
});

const find = reading({
  name: 'transaction.find',
  summary: "Find the transaction of a merchant's reference: the redemption, else the activation or top-up",
  method: 'POST',
  path: '/transactions/find',
  command: 'transaction show',
  input: Input({ reference: Line(100, "The merchant's reference.", 'order-10071'), merchantId: MerchantId }),
  output: TransactionSchema,
  roles: SEE_VOUCHERS,
  async run(caller, { reference, merchantId }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    const claimed = await caller.service.readDb.query<{ id: string }>(findClaimedTransactions(id, reference));
    const [first] = claimed;
    if (!first) throw notFound(`transaction with this reference of merchant ${id}`);
    return show(caller, first.id);
  },
});

const correct = changing({
  name: 'redemption.correct',
  summary: 'Correct a redemption on behalf of its merchant, once: another amount, or 0 for a full reversal',
  method: 'POST',
  path: '/redemptions/:transactionId/correct',
  command: 'redemption correct',
  input: Input({
    transactionId: TransactionId,
    amount: Type.Number({
      minimum: 0,
      description: 'The right amount of the redemption, in major units.',
      examples: [7.5],
    }),
    reason: Line(500, 'Why, for the audit.', 'The cashier mistyped the amount.'),
  }),
  output: Type.Object({
    original: TransactionSchema,
    reversal: TransactionSchema,
    replacement: Type.Unsafe<Transaction | null>({ ...TransactionSchema, type: ['object', 'null'] }),
  }),
  roles: MONEY,
  approval: twoPeople({
    why: 'It takes money from a merchant, or gives it more.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Correct a redemption by {merchant} of voucher {voucher}: {before} → {after}',
    async of(asked) {
      const { transactionId } = asked.input;
      const { before, after } = changeIn(asked);
      const { merchant_id, serial_number } = await getRedemption(asked.caller, transactionId);
      return {
        ...{ merchant: await merchantNamed(asked, merchant_id), voucher: String(serial_number) },
        ...{ before: before['amount'], after: after['amount'], link: `/transactions/${transactionId}` },
      };
    },
  },
  risk: 'step-up',
  async run(caller, { transactionId, amount }) {
    const redemption = await getRedemption(caller, transactionId);
    const amountMinor = amount === 0 ? 0n : minorOf(amount, redemption.currency, 'amount');
    const { transactionId: reversalId, newId } = await correctRedemption(caller, redemption, amountMinor);
    return {
      original: await show(caller, transactionId),
      reversal: await show(caller, reversalId),
      replacement: newId === null ? null : await show(caller, newId),
    };
  },
});

const DeclineSchema = Type.Object({
  id: Text,
  at: Time,
  merchantId: MerchantId,
  keyId: Type.String({ description: 'The API key of the request.' }),
  serialNumber: Nullable(SerialNumber, { description: 'Null where the code is unknown.' }),
  operation: Word(['activate', 'balance', 'redeem'] as const),
  code: Type.String({ description: 'The status code of the refusal.' }),
  amount: Nullable(Major()),
  currency: Nullable(Text, {
    description: 'That of the voucher, since a request names none. Null where the code is unknown.',
  }),
  reference: NullableText,
});

export type Decline = Static<typeof DeclineSchema>;

const declines = reading({
  name: 'decline.list',
  summary: 'List requests that named a voucher and were declined, newest first; kept 90 days',
  method: 'GET',
  path: '/declines',
  command: 'decline list',
  input: Input({ ...PAGE, merchantId: Type.Optional(MerchantId), serialNumber: Type.Optional(SerialNumber) }),
  output: Page(DeclineSchema),
  columns: ['at', 'merchantId', 'serialNumber', 'operation', 'code', 'amount', 'reference'],
  roles: SEE_VOUCHERS,
  async run(caller, { cursor, limit = 50, merchantId, serialNumber }) {
    const filters = { merchantId, serialNumber };
    const [before = LAST_ID] = readCursor('declines', filters, cursor) ?? [];
    const { merchantId: own } = caller.principal;
    const isOpaque = own !== null && (await requireMerchant(caller, String(own))).opaque;
    const filter = {
      merchantId: merchantId === undefined ? null : toId(merchantId, 'merchantId'),
      serialNumber: serialNumber === undefined ? null : BigInt(serialNumber),
      // Even the end of a page would show which voucher a guess was about.
      without: isOpaque && serialNumber !== undefined ? OF_A_GUESS : [],
    };
    const rows = await pageOfDeclines(caller.service.readDb, filter, String(before), limit + 1);
    const items = rows.map((row) => ({
      ...row,
      merchantId: String(row.merchantId),
      serialNumber: idOf(row.serialNumber),
    }));
    const shown = isOpaque ? items.map(withoutCode) : items;
    return pageOf('declines', filters, shown, limit, ({ id }) => [id]);
  },
});

/** The answers that show whether a code exists. An opaque merchant gets 14 instead of each. */
const OF_A_GUESS: readonly string[] = ['14', '55', '75'];

/** Returns a decline as an opaque merchant knows it. */
function withoutCode(decline: Decline): Decline {
  if (!OF_A_GUESS.includes(decline.code)) return decline;
  return { ...decline, code: '14', serialNumber: null, currency: null };
}

/** The number of days that are counted by default. */
const COUNTED_DAYS = 30;

const declineCount = reading({
  name: 'decline.count',
  summary: 'Count the declined requests by their code, the most frequent first; kept 90 days',
  description: 'Of the last 30 days unless `from` is given. Both days are included, and are those of UTC.',
  method: 'GET',
  path: '/declines/count',
  command: 'decline count',
  input: Input({
    from: Type.Optional(Day),
    to: Type.Optional(Day),
  }),
  output: Page(
    Type.Object({ code: Type.String({ description: 'The status code of the refusal.' }), declines: Count }),
  ),
  roles: SEE_VOUCHERS,
  async run({ service }, input) {
    checkDay(input.from, 'from');
    checkDay(input.to, 'to');
    const { to = isoDay(service.clock().getTime()) } = input;
    const { from = addDays(to, 1 - COUNTED_DAYS) } = input;
    if (to < from) throw invalid('to', 'order', 'comes before from');
    const counts = await countDeclines(service.readDb, from, to);
    const items = counts.map(({ code, declines: count }) => ({ code, declines: Number(count) }));
    return { items, nextCursor: null };
  },
});

export const transactions = { list, show: showOne, find, correct, declines, declineCount };

export const TRANSACTIONS = tableOf(...Object.values(transactions));
