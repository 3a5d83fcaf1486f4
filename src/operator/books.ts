import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { closeDays } from '../books/close.ts';
import { getBooks, listDays, setBooks } from '../books/days.ts';
import { escheatUnclaimed, VOUCHERS_MAX } from '../books/escheat.ts';
import { INCOME, OPENED, openBalance, transferOwn } from '../books/own.ts';
import { findReport, makeReport, REPORTS } from '../books/reports/index.ts';
import { BREAKDOWNS, type ReportJson, toReportJson } from '../books/reports/report.ts';
import { verifyBooks } from '../books/verify.ts';
import { WAIT_CAUSES, type Waiting } from '../books/wait.ts';
import { toStart } from '../ledger/zone.ts';
import { merchantNamed, requireMerchant } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { alone, type Caller, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { Page } from '../page.ts';
import { MONEY, SEE, VERIFY } from '../principal.ts';
import { invalid, notFound } from '../problem.ts';
import {
  Amount,
  Count,
  Currency,
  checkDay,
  Day,
  Input,
  Line,
  MerchantId,
  minorOf,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  Reference,
  requireDecimals,
  SerialNumber,
  Text,
  Time,
  TransactionId,
  Word,
} from '../schema.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { currencyOf } from './floats.ts';

/** A list of 10,000 serial numbers is 180 kB. */
const BODY_MAX_BYTES = 256 * 1024;

export function checkInterval({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  checkDay(from, 'from');
  checkDay(to, 'to');
  if (from !== undefined && to !== undefined && to <= from)
    throw invalid('to', 'minimum', 'must be later than from: it is the day after the last one');
  return { from, to };
}

const INTERVAL = { from: Type.Optional(Day), to: Type.Optional(Day) };

const days = reading({
  name: 'books.days',
  summary: 'List the days: open, ended and not yet closed, or closed with their hash',
  method: 'GET',
  path: '/books/days',
  command: 'books days',
  input: Input(INTERVAL),
  output: Page(
    Type.Object({
      day: Day,
      startsAt: Time,
      endsAt: Time,
      zone: Text,
      state: Word(['open', 'closing', 'closed'] as const),
      rows: Nullable(Count),
      hash: NullableText,
      closedAt: NullableTime,
    }),
  ),
  roles: VERIFY,
  run: async ({ service }, input) => ({
    items: await listDays(service, checkInterval(input)),
    nextCursor: null,
  }),
});

const WaitingSchema = Type.Object({
  day: Day,
  cause: Word(WAIT_CAUSES),
  reason: Type.String({ description: 'The cause as a sentence, for people.' }),
  endsAt: Time,
  dueAt: Type.Unsafe<Date>({ ...Time, description: 'When the time after its end is over.' }),
  prepared: Type.Array(Type.Object({ name: Text, since: Time }), {
    description: 'Prepared transactions, which somebody has to end.',
  }),
});

const close = changing({
  name: 'books.close',
  summary: 'Close the days that are due, in order, and say why the next one is not',
  method: 'POST',
  path: '/books/close',
  command: 'books close',
  input: Input({ day: Type.Optional(Day), reason: Reason }),
  output: Type.Object({
    closed: Type.Array(Type.Object({ day: Day, hash: Text, failed: Type.Array(Text) })),
    waiting: Type.Unsafe<Waiting | null>({ ...WaitingSchema, type: ['object', 'null'] }),
  }),
  roles: MONEY,
  approval: alone('It books what the rules say, and nothing that the caller chooses.'),
  // Each day is closed in a separate transaction.
  effect: 'outside',
  async run(caller, { day }) {
    checkDay(day, 'day');
    const { closed, waiting } = await closeDays(caller, { until: day, dayEnds: DAY_ENDS });
    return { closed: closed.map((each) => ({ ...each, failed: [...each.failed] })), waiting };
  },
});

const verify = reading({
  name: 'books.verify',
  summary: 'Compute closed days again, and name every row or closing that was changed',
  method: 'GET',
  path: '/books/verify',
  command: 'books verify',
  description:
    'Without an interval, it verifies all closed days, and continues an earlier request that was interrupted.',
  input: Input({
    ...INTERVAL,
    lastDays: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000,
        description: 'Only this number of the last closed days.',
      }),
    ),
  }),
  output: Type.Object({
    ok: Type.Boolean(),
    days: Count,
    rows: Count,
    breaks: Type.Array(Type.Unsafe<object>({ type: 'object' })),
  }),
  roles: VERIFY,
  async run({ service }, { lastDays, ...input }) {
    const interval = checkInterval(input);
    if (lastDays !== undefined && (interval.from ?? interval.to) !== undefined)
      throw invalid('lastDays', 'exclusive', 'cannot be combined with from or to');
    const { breaks, ...result } = await verifyBooks(service, { ...interval, lastDays });
    return { ...result, breaks: [...breaks] };
  },
});

const BooksSettings = Type.Object({ zone: Text, graceMinutes: Count });

async function settingsOf({ service }: Caller) {
  const { zone, grace_minutes: graceMinutes } = await getBooks(service.db);
  return { zone, graceMinutes };
}

const show = reading({
  name: 'books.show',
  summary: 'Get the time zone of the days, and the time between the end of a day and its close',
  method: 'GET',
  path: '/books',
  command: 'books set',
  input: Input({}),
  output: BooksSettings,
  roles: SEE,
  run: settingsOf,
});

const set = changing({
  name: 'books.set',
  summary:
    'Set the time zone of days that have not begun, and the time between the end of a day and its close',
  method: 'PATCH',
  path: '/books',
  command: 'books set',
  input: Input({
    zone: Type.Optional(
      Type.String({ pattern: '^[A-Za-z0-9_+/-]{1,60}$', description: 'Of the IANA database.' }),
    ),
    graceMinutes: Type.Optional(Type.Integer({ minimum: 5, maximum: 60 })),
    reason: Reason,
  }),
  output: BooksSettings,
  roles: MONEY,
  approval: alone('It takes effect from a day that has not begun, and moves no money.'),
  risk: 'step-up',
  async run(caller, { zone, graceMinutes }) {
    if (zone === undefined && graceMinutes === undefined)
      throw invalid('zone', 'required', 'or graceMinutes is required: there is nothing to change');
    await setBooks(caller, { zone, graceMinutes });
    return settingsOf(caller);
  },
});

export const Section = Type.Optional(
  Line(40, 'Of a report with several kinds of tables, this one alone.', 'total'),
);
export const BreakdownField = Type.Optional(
  Word(BREAKDOWNS, { description: 'Broken down: R1 by merchant, R4 by product.', examples: ['merchant'] }),
);
export const REPORT_NAMES = REPORTS.flatMap(({ report, name }) => [report, name]);

const report = reading({
  name: 'books.report',
  summary: 'Make a report of an interval of days; a report of closed days never changes',
  description:
    'A row has a field for each of the `columns`. Money is decimal text, in the columns that `amounts` names. ' +
    'R8 (`transactions`) is `books.report-csv`.',
  method: 'GET',
  path: '/books/reports/:report',
  command: 'books report',
  input: Input({
    report: Word(REPORT_NAMES, { description: 'Its number or its name.', examples: ['R1'] }),
    from: Day,
    to: Day,
    merchantId: Type.Optional(MerchantId),
    section: Section,
    breakdown: BreakdownField,
  }),
  output: Type.Unsafe<ReportJson>({ type: 'object', required: ['report', 'name', 'tables', 'state'] }),
  isHeavy: true,
  roles: SEE,
  async run(caller, { report: name, from, to, merchantId, section, breakdown }) {
    checkInterval({ from, to });
    const kind = findReport(name);
    if (!kind) throw notFound(`report ${name}`);
    const id =
      merchantId === undefined ? undefined : (await requireMerchant(caller, merchantId, 'merchantId')).id;
    return toReportJson(
      await makeReport(caller.service, kind, { from, to, merchantId: id, section, breakdown }),
    );
  },
});

const BookedAmount = Type.Object({
  currency: Text,
  amount: Type.Number(),
  transactionId: TransactionId,
  replayed: Type.Boolean(),
});

const transfer = changing({
  name: 'books.transfer',
  summary: 'Book income that you took out, tax that you paid, or money for goodwill',
  method: 'POST',
  path: '/books/transfer',
  command: 'books transfer',
  input: Input({
    account: Word([...INCOME, 'goodwill'] as const, { description: 'The account of the operator.' }),
    amount: Amount('In major units.'),
    currency: Type.Optional(Currency),
    reference: Reference,
    reason: Reason,
  }),
  output: BookedAmount,
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book {amount} between the bank and your account {account}',
    of: (asked) => ({
      ...{ account: asked.input.account, amount: changeIn(asked).after['amount'] },
      ...{ reference: asked.input.reference, link: '/books' },
    }),
  },
  async run(caller, { account, amount, currency: given, reference }) {
    const currency = await currencyOf(caller, given);
    const decimals = requireDecimals(currency);
    const amountMinor = minorOf(amount, currency, 'amount');
    const booked = await transferOwn(caller, { account, currency, decimals, amountMinor, reference });
    return { currency, amount, ...booked };
  },
});

const opening = changing({
  name: 'books.opening',
  summary: 'Take over a balance that another system leaves behind, before the first day is closed',
  description: 'Openings of an account add up. Floats are opened by a top-up, and vouchers by an import.',
  method: 'POST',
  path: '/books/opening',
  command: 'books opening',
  input: Input({
    account: Word(OPENED, {
      positional: true,
      description: '`settlement`: what the operator owes a merchant.',
    }),
    merchantId: Type.Optional(Type.String({ ...MerchantId, description: 'The merchant of `settlement`.' })),
    amount: Amount('In major units.'),
    debit: Type.Optional(
      Type.Boolean({ description: 'Subtracts: the merchant owes the amount, or too much was opened.' }),
    ),
    currency: Type.Optional(Currency),
    reference: Reference,
    reason: Reason,
  }),
  output: BookedAmount,
  roles: MONEY,
  approval: twoPeople({ why: 'It gives money to a merchant or to the operator.' }),
  agreement: {
    sentence: 'Take over {amount} into the account {account} of {merchant}',
    async of(asked) {
      const { account, merchantId, reference } = asked.input;
      const merchant = await merchantNamed(asked, merchantId);
      const link = merchantId === undefined ? '/books' : `/merchants/${merchantId}`;
      return { account, merchant, amount: changeIn(asked).after['amount'], reference, link };
    },
  },
  async run(caller, { account, merchantId, amount, debit = false, currency: given, reference }) {
    if ((account === 'settlement') !== (merchantId !== undefined))
      throw invalid('merchantId', 'dependent', 'belongs to settlement, which needs it');
    const currency = await currencyOf(caller, given);
    const booked = await openBalance(caller, {
      account,
      merchantId: merchantId === undefined ? 0 : (await requireMerchant(caller, merchantId, 'merchantId')).id,
      currency,
      decimals: requireDecimals(currency),
      amountMinor: minorOf(amount, currency, 'amount'),
      isDebit: debit,
      reference,
    });
    return { currency, amount, ...booked };
  },
});

const escheat = changing({
  name: 'books.escheat',
  summary: 'Book the unclaimed money of expired vouchers as paid to a state; they do not get it back',
  description:
    'Names the vouchers or a day, and pays all of their unclaimed money under one movement. Without either, ' +
    'it pays all that is unclaimed, and needs the amount.',
  method: 'POST',
  path: '/books/escheat',
  command: 'books escheat',
  bodyMaxBytes: BODY_MAX_BYTES,
  input: Input({
    serialNumbers: Type.Optional(
      Type.Array(SerialNumber, {
        minItems: 1,
        maxItems: VOUCHERS_MAX,
        uniqueItems: true,
        description: 'The vouchers.',
      }),
    ),
    expiredBefore: Type.Optional(
      Type.String({ ...Day, description: 'All vouchers whose money expired before this day.' }),
    ),
    amount: Type.Optional(
      Amount('What was paid, in major units: another sum of the vouchers is refused. Left out: any sum.'),
    ),
    currency: Type.Optional(Currency),
    reference: Reference,
    reason: Reason,
  }),
  output: Type.Object({
    ...BookedAmount.properties,
    vouchers: Type.Array(Type.Object({ serialNumber: SerialNumber, amount: Type.Number(), expiredAt: Time })),
  }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book {amount} of the unclaimed money of vouchers as paid to a state; amounts: {expiries}',
    of(asked) {
      const { amount, expiries } = changeIn(asked).after;
      const { reference, expiredBefore } = asked.input;
      return { amount, expiries, expiredBefore, reference, link: '/books' };
    },
  },
  async run(caller, { serialNumbers, expiredBefore: day, amount, currency: given, reference }) {
    const currency = await currencyOf(caller, given);
    const decimals = requireDecimals(currency);
    if (serialNumbers !== undefined && day !== undefined)
      throw invalid('expiredBefore', 'dependent', 'and serialNumbers: name one of them');
    if (serialNumbers === undefined && day === undefined && amount === undefined)
      throw invalid('amount', 'required', 'is required to pay all that is unclaimed');
    const expiredBefore = day === undefined ? null : await toStart(caller, day, 'expiredBefore');
    const booked = await escheatUnclaimed(caller, {
      ...{ currency, decimals, reference },
      of: serialNumbers ? { serialNumbers: serialNumbers.map(BigInt) } : { expiredBefore },
      amountMinor: amount === undefined ? undefined : minorOf(amount, currency, 'amount'),
    });
    const { transactionId, replayed, vouchers } = booked;
    const inMajor = (minor: bigint) => toNumber({ minor, decimals });
    return {
      ...{ currency, transactionId, replayed, amount: inMajor(booked.amountMinor) },
      vouchers: vouchers.map(({ serialNumber, amountMinor, expiredAt }) => ({
        serialNumber: String(serialNumber),
        amount: inMajor(amountMinor),
        expiredAt,
      })),
    };
  },
});

export const books = { days, close, verify, show, set, report, transfer, opening, escheat };

export const BOOKS = tableOf(...Object.values(books));
