import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Breakdown } from '../../src/books/reports/report.ts';
import { REPORTS } from '../../src/books/reports/reports.ts';
import { streamTransactions } from '../../src/books/reports/transactions.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import type { Context } from '../../src/context.ts';
import { ACCOUNT_KINDS } from '../../src/ledger/kinds.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { decimalsOf, toNumber } from '../../src/money.ts';
import { DAY_MS } from '../../src/time.ts';
import { show } from '../../src/vouchers/show.ts';
import { ByLaw, type Shown } from '../support/books.law.ts';
import { ByHand, type Card, type Entry, readCards, readEntries } from '../support/books.model.ts';
import { OWN, RULES, rateOn, setLaws, showBank, treatmentOf } from '../support/books.random.law.ts';
import {
  commissionOn,
  FIRST_ACCOUNT,
  next,
  openWorld,
  play,
  START,
  snapshot,
  type World,
  wasRefused,
  ZONE,
} from '../support/books.random.ts';
import { type Ledger, spend } from '../support/books.ts';
import { Figures as Opened } from '../support/figures.ts';
import { asOperator } from '../support/harness.ts';
import { cents, type Figures, type Interval, make, rowsOf, Sums } from '../support/reports.ts';

/**
 * The reports of a random history of days (test/support/books.random.ts) equal those computed by hand from
 * its transactions. SCRIP_TEST_SEED selects another history.
 */

/** When the clocks of the zone go forward, and when April begins there. */
const CLOCKS_CHANGE = Date.parse('2026-03-29T01:00:00Z');
const MONTH_BEGINS = Date.parse('2026-03-31T22:00:00Z');
const SEED = Number(process.env['SCRIP_TEST_SEED'] ?? 8);
/** The figures of a report: the named columns of each row, by currency and label. */
async function figuresOf(
  { ledger }: World,
  name: string,
  interval: Interval,
  [keys, columns]: readonly [readonly string[], readonly string[]],
): Promise<Figures> {
  const { section, ...wanted } = interval;
  const report = await make(ledger.started.service, name, wanted);
  const tables = report.tables.filter((table) => table.section === section);
  const figures: [string, bigint][] = [];
  for (const table of tables) {
    const unknown = columns.length > 0 ? table.amounts.filter((each) => !columns.includes(each)) : [];
    assert.deepEqual(unknown, [], `${name} has amounts that nothing computes by hand`);
    for (const row of rowsOf({ ...report, tables: [table] })) {
      if ([row['merchant'], row[keys[0] as string]].includes('total')) continue;
      const label = [table.currency, ...keys.map((key) => row[key])].join(' ');
      const own = columns.length > 0 ? columns : Object.keys(row).filter((key) => !keys.includes(key));
      for (const column of own)
        if (/^-?[\d.]+$/.test(row[column] ?? '')) figures.push([`${label} ${column}`, cents(row[column])]);
    }
  }
  const sums = new Map<string, bigint>();
  for (const [label, figure] of figures) sums.set(label, (sums.get(label) ?? 0n) + figure);
  return Object.fromEntries([...sums].filter(([, figure]) => figure !== 0n).sort());
}

const SETTLED = [
  ...['redemptions', 'reversals', 'earlierReversals', 'redeemed', 'reversed', 'earlierReversed'],
  ...['refunded', 'cashedOut', 'commission', 'vat', 'paidOut', 'takenOver', 'opening', 'net', 'closing'],
];

const OF_MERCHANTS = ['floats', 'reserves', 'settlements', 'owed'];
const COHORT = ['issued', 'voided', 'redeemed', 'expired', 'other', 'outstanding'];
const COHORTS = [...COHORT, 'redeemedPercent'];
const ESTIMATES = [...COHORT, ...['estimated', 'recognized', 'before', 'inInterval', 'deferred', 'toBook']];
const VAT = ['issued', 'imported', 'redeemed', 'expired', 'taxed', 'base', 'tax'];

type Known = { readonly cards: readonly Card[]; readonly shown: readonly Shown[] };

async function compare(
  world: World,
  hand: ByHand,
  { from, to }: { from: string; to: string },
  { cards, shown }: Known,
): Promise<void> {
  const at = { from, to };
  const of = (name: string, keys: string[], columns: string[] = [], section?: string) =>
    figuresOf(world, name, { ...at, ...(section && { section }) }, [keys, columns]);
  const label = `${from} to ${to}`;
  assert.deepEqual(await of('R1', ['account']), hand.trialBalance(), `R1 ${label}`);
  const owed = await figuresOf(world, 'R1', { ...at, breakdown: 'merchant' }, [['merchantId'], OF_MERCHANTS]);
  assert.deepEqual(owed, hand.merchants(), `R1 by merchant ${label}`);
  const liability = await of('R2', ['product', 'issuerId']);
  const names = Object.keys(liability).filter((name) => !/ (vouchers|issuer|scope)$/.test(name));
  assert.deepEqual(
    Object.fromEntries(names.map((name) => [name, liability[name]])),
    hand.liability(),
    `R2 ${label}`,
  );
  const booked = await of('R5', ['product', 'account'], ['expired', 'reinstated', 'net'], 'booked');
  assert.deepEqual(booked, hand.breakage(), `R5 ${label}`);
  const law = new ByLaw(hand, cards, ZONE);
  const cohort = ['product', 'issueMonth', 'monthsSince'];
  assert.deepEqual(await of('R5', cohort, COHORTS, 'cohorts'), law.cohorts(), `R5 cohorts ${label}`);
  const estimated = await of('R5', ['product', 'issueMonth', 'policy'], ESTIMATES, 'estimate');
  assert.deepEqual(estimated, law.estimate(rateOn), `R5 estimate ${label}`);
  const termsOn = (merchantId: number, day: string) => commissionOn(world, merchantId, day);
  assert.deepEqual(law.bookedCommission(), law.commission(termsOn), `commission ${label}`);
  const treated = ['product', 'treatment', 'country', 'ratePercent'];
  assert.deepEqual(await of('R11', treated, VAT), law.vat(treatmentOf), `R11 ${label}`);
  const bank = await of('R13', ['item'], ['amount'], 'reconciliation');
  assert.deepEqual(bank, law.bank(shown, OWN), `R13 ${label}`);
  assert.deepEqual(await of('R7', ['merchantId', 'product'], SETTLED), hand.settlements(), `R7 ${label}`);
  assert.deepEqual(
    await of('R9', ['issuerId', 'acceptorId'], ['redeemed', 'reversed', 'net']),
    hand.matrix(),
    `R9 ${label}`,
  );
  const ledger = Object.fromEntries(
    Object.entries(await of('R12', ['account'], ['debit', 'credit'])).map(([name, minor]) => [
      name.replace(/\d{4}/, (account) => ACCOUNT_KINDS[Number(account) - FIRST_ACCOUNT] ?? account),
      minor,
    ]),
  );
  assert.deepEqual(Object.entries(ledger).sort(), Object.entries(hand.ledger()).sort(), `R12 ${label}`);
  for (const { merchant } of world.shops)
    await compareMerchant(world, hand, { ...at, merchantId: merchant.id });
}

async function compareMerchant(
  { ledger }: World,
  hand: ByHand,
  wanted: { from: string; to: string; merchantId: number },
): Promise<void> {
  const { service } = ledger.started;
  const settled = await readSettled(ledger, wanted.merchantId);
  const lines = [];
  for (const { currency, ...table } of (await make(service, 'R6', wanted)).tables)
    for (const row of rowsOf({ tables: [{ currency, ...table }] } as never))
      if (row['amount'])
        lines.push(
          `${currency} ${row['transactionId']} ${row['kind']} ${cents(row['amount'])} ${cents(row['balance'])}`,
        );
  assert.deepEqual(lines.sort(), hand.float(wanted.merchantId), `R6 ${wanted.merchantId}`);
  const streamed = [];
  for await (const line of streamTransactions(service, wanted)) {
    const { transactionId, kind, serialNumber, currency, product } = line;
    const number = settled.find((each) => each.currency === currency && isIn(each, line))?.number ?? null;
    assert.equal(line.settlement, kind === 'ACTIVATION' ? null : number, `${transactionId} is settled`);
    const amount = cents(String(line.amount));
    streamed.push(`${transactionId} ${kind} ${serialNumber} ${currency} ${product} ${amount}`);
  }
  assert.deepEqual(streamed.sort(), hand.transactions(wanted.merchantId), `R8 ${wanted.merchantId}`);
}

async function compareAges(world: World, law: ByLaw, whole: Interval): Promise<void> {
  assert.deepEqual(
    await figuresOf(world, 'R4', whole, [
      ['basis', 'days'],
      ['vouchers', 'outstanding'],
    ]),
    law.aging(),
    'R4',
  );
  assert.deepEqual(
    await figuresOf(world, 'R4', { ...whole, breakdown: 'product' }, [
      ['product', 'basis', 'days'],
      ['vouchers', 'outstanding'],
    ]),
    law.aging(true),
    'R4 by product',
  );
  assert.deepEqual(
    await figuresOf(world, 'R4', { ...whole, section: 'expiryMonths' }, [
      ['month'],
      ['vouchers', 'outstanding'],
    ]),
    law.expiryMonths(),
    'R4 months',
  );
}

type Settled = { currency: string; firstDay: string; lastDay: string; number: string };

/** The settlements of a merchant, which are all approved. */
const readSettled = ({ sql }: Ledger, merchantId: number): Promise<Settled[]> =>
  sql(`select currency, first_day::text as "firstDay", last_day::text as "lastDay",
    scrip.settlement_number(merchant_id, year, number) as number
  from scrip.settlements where merchant_id = ${merchantId}`);

/** Whether a line of R8 is of the days of a settlement. */
const isIn = ({ firstDay, lastDay }: Settled, { localTime }: Record<string, unknown>) => {
  const day = String(localTime).slice(0, 10);
  return firstDay <= day && day <= lastDay;
};

/** Compares the figures of all reports, settlements, floats and batches with the entries they open into. */
async function openFigures({ ledger, shops }: World, intervals: readonly Interval[]): Promise<number> {
  const figures = new Opened(ledger.started.service);
  for (const kind of REPORTS)
    for (const breakdown of [undefined, ...Object.keys(kind.breakdowns ?? {})] as const)
      for (const { merchant } of kind.ofMerchant ? shops : shops.slice(0, 1))
        for (const { from, to } of intervals)
          await figures.ofReport(kind, {
            ...{ from, to },
            ...(kind.ofMerchant && { merchantId: merchant.id }),
            ...(breakdown && { breakdown: breakdown as Breakdown }),
          });
  for (const { id } of await ledger.sql<{ id: number }>('select id from scrip.settlements'))
    await figures.ofSettlement(String(id));
  await figures.ofFloats();
  await figures.ofBatches();
  return figures.compared;
}

type Day = { readonly day: string; readonly starts: Date; readonly ends: Date };

/** Compares balances at times of the past: around the change of the clocks, the end of a month, and later. */
async function openInstants({ ledger, random }: World, entries: readonly Entry[], days: readonly Day[]) {
  const { service } = ledger.started;
  const figures = new Opened(service);
  const caller = asOperator(service);
  const turns = [CLOCKS_CHANGE, MONTH_BEGINS].flatMap((time) => [time - 1, time]);
  const within = MONTH_BEGINS + Math.floor(random() * DAY_MS);
  for (const at of [...turns, within].map((time) => new Date(time))) {
    const day = days.find(({ ends }) => at < ends)?.day ?? assert.fail();
    for (const kind of REPORTS.filter(({ endsAnytime }) => endsAnytime))
      await figures.ofReport(kind, { from: days[0]?.day ?? '', to: next(day), at });
    const past = at.toISOString();
    assert.ok((await figures.ofFloats(past)) > 0);
    for (const [serial, minor] of new ByHand(entries, START, at).held()) {
      const { balance } = await show.run(caller, { serialNumber: String(serial), at: past });
      const decimals = decimalsOf(entries.find((each) => each.serial === serial)?.currency ?? '') ?? 2;
      assert.equal(Number(balance), toNumber({ minor, decimals }), `${serial} at ${past}`);
    }
  }
  return figures.compared;
}

test('the reports of random days equal those computed by hand from the transactions', async (t) => {
  t.diagnostic(`SCRIP_TEST_SEED=${SEED}`);
  const world = await openWorld(t, SEED);
  const { ledger, random } = world;
  const { service } = ledger.started;
  await setLaws(world);
  const asClosed = await play(world);
  const entries = await readEntries(ledger);
  const known = { cards: await readCards(ledger), shown: await showBank(world, entries) };
  const kinds = new Set(entries.map(({ kind }) => kind));
  t.diagnostic(`${entries.length} transactions of ${kinds.size} kinds, ${asClosed.size} days`);
  const days = await ledger.sql<{ day: string; starts: Date; ends: Date }>(
    'select day::text, starts_at as starts, ends_at as ends from scrip.book_closings order by day',
  );
  const last = days.length - 1;
  const bounds: [number, number][] = [[0, last]];
  while (bounds.length < 5) {
    const two = [random(), random()].map((each) => Math.floor(each * days.length));
    bounds.push([Math.min(...two), Math.max(...two)]);
  }
  for (const [from, to] of bounds) {
    const [first, end] = [days[from], days[to]];
    assert.ok(first && end);
    const hand = new ByHand(entries, first.starts, end.ends);
    await compare(world, hand, { from: first.day, to: next(end.day) }, known);
  }
  const outstanding: Figures = {};
  for (const { day, starts, ends } of days)
    Object.assign(outstanding, new ByHand(entries, starts, ends).outstanding(day));
  const whole = { from: days[0]?.day ?? '', to: next(days[last]?.day ?? '') };
  assert.deepEqual(
    await figuresOf(world, 'R3', whole, [['day'], []]),
    Object.fromEntries(Object.entries(outstanding).sort()),
    'R3',
  );
  const hand = new ByHand(entries, days[last]?.starts ?? START, days[last]?.ends ?? START);
  await compareAges(world, new ByLaw(hand, known.cards, ZONE), whole);
  const opened = await openFigures(world, [whole, { from: next(days[3]?.day ?? ''), to: whole.to }]);
  assert.ok((await openInstants(world, entries, days)) > 100);
  t.diagnostic(`${opened} figures are the sums of their entries`);
  assert.ok(opened > 1_000);
  for (const [day, closed] of asClosed) assert.equal(await snapshot(world, day, next(day)), closed, day);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
  for (const sinceClosing of [false, true])
    assert.deepEqual(
      (await reconcile(service, { sinceClosing })).checks.filter(({ ok }) => !ok),
      [],
    );
  await compareDormant(world);
});

/** Compares dormant vouchers at the end of an open day a month later, without the movements since. */
async function compareDormant(world: World): Promise<void> {
  const { ledger, cards, shops, random } = world;
  const [end] = await ledger.sql<{ at: Date }>(`select '2026-04-30'::timestamp at time zone '${ZONE}' as at`);
  assert.ok(end);
  const spendSome = async () => {
    for (const { sold } of cards)
      if (random() < 0.2) await spend(shops[0] as Context, sold, 1).catch(wasRefused);
  };
  await ledger.at(new Date(end.at.getTime() - 8 * DAY_MS));
  await spendSome();
  await ledger.at(new Date(end.at.getTime() + 60_000));
  await spendSome();
  const rows = [];
  const { tables } = await make(ledger.started.service, 'R10', { from: '2026-04-20', to: '2026-04-30' });
  for (const { currency, ...table } of tables.filter(({ section }) => section === undefined))
    for (const row of rowsOf({ tables: [{ currency, ...table }] } as never))
      rows.push(
        [currency, ...['rule', 'serialNumber', 'issuedOn', 'lastUsedOn', 'dueOn'].map((key) => row[key])]
          .concat(String(cents(row['balance'])))
          .join(' '),
      );
  const hand = new ByHand(await readEntries(ledger), START, end.at);
  const expected = new ByLaw(hand, await readCards(ledger), ZONE).dormant(RULES);
  assert.ok(expected.length > 0);
  assert.deepEqual(rows.sort(), expected, 'R10');
  const unclaimed = new Sums();
  for (const { currency, ...table } of tables.filter(({ section }) => section === 'unclaimed'))
    for (const row of rowsOf({ tables: [{ currency, ...table }] } as never))
      unclaimed.add(currency, cents(row['amount']));
  assert.deepEqual(unclaimed.figures(), hand.unclaimed(), 'R10 unclaimed');
}
