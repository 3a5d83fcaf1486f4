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
import { notFound } from '../problem.ts';
import {
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
} from '../schema.ts';

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

export const transactions = { list, show: showOne, find, correct };

export const TRANSACTIONS = tableOf(...Object.values(transactions));
