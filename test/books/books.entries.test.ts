import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { entries } from '../../src/books/entries.ts';
import { redeemedDays } from '../../src/books/redeemed.ts';
import { REPORTS } from '../../src/books/reports/reports.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import type { Problem } from '../../src/problem.ts';
import { limitedNetwork } from '../../src/settings/limited-network.ts';
import { playMonth } from '../support/books.history.ts';
import { declared, Figures, type Listed, minor } from '../support/figures.ts';
import { asOperator } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';
import { ofFile } from '../support/scope.ts';

/** Every figure is the sum of the entries that it declares, or says why it has none. */

type Shaped = { readonly properties: Readonly<Record<string, object>> };

const file = ofFile();
let played: Awaited<ReturnType<typeof playMonth>>;
let figures: Figures;
before(async () => {
  played = await playMonth(file);
  figures = new Figures(played.ledger.started.service);
  // Estimates of breakage for all products, from the first day on: closed days take no new rate.
  await asOwner(
    played.ledger.started.url,
    `insert into scrip.book_breakage_rates (product_id, valid_from, rate_ppm, set_by, reason, set_at)
select id, '2026-03-02', 100000, 'tester', 'as agreed', now() from scrip.products`,
  );
});

const MONTH = { from: '2026-03-06', to: '2026-04-01' };
/** Reports with a line for each day. */
const BY_DAY = { from: '2026-03-29', to: '2026-04-01' };
/** Reports of rates, filings and the bank, of which these days have nothing. */
const EMPTY = ['R10', 'R11', 'R12', 'R13'];

for (const kind of REPORTS.filter(({ report }) => !EMPTY.includes(report))) {
  const { report, breakdowns = {}, ofMerchant } = kind;
  for (const breakdown of [undefined, ...Object.keys(breakdowns)])
    test(`the figures of ${report}${breakdown ? ` by ${breakdown}` : ''} are the sums of their entries`, async () => {
      const interval = report === 'R3' || report === 'R14' ? BY_DAY : MONTH;
      // Only the shop has a float.
      const merchant = ofMerchant && { merchantId: report === 'R6' ? played.shop : played.cafe };
      const wanted = { ...interval, ...merchant, ...(breakdown && { breakdown: breakdown as never }) };
      assert.ok((await figures.ofReport(kind, wanted)) > 0);
    });
}

test('the figures of a settlement are the sums of their entries', async () => {
  for (const id of played.settlements) await figures.ofSettlement(String(id));
});

test('the balance of a float is the sum of its entries, now and at an earlier time', async () => {
  for (const at of [undefined, '2026-03-04T00:00:00Z']) assert.ok((await figures.ofFloats(at)) > 0);
});

test('the balance of a batch is the sum of the entries of its vouchers', async () => {
  assert.ok((await figures.ofBatches()) > 0);
});

test('what a merchant redeemed on a day, and the payments of a network, are the sums of their entries', async () => {
  const caller = asOperator(played.ledger.started.service);
  const given = { merchantId: String(played.cafe) };
  const { items } = await redeemedDays.run(caller, { ...given, days: 92 });
  assert.ok(items.length > 0);
  const { items: item } = declared(redeemedDays.output, 'items') as { items?: object };
  for (const day of items)
    await figures.prove(declared(item, 'redeemed')?.['x-entries'], 'redeemed', day, given);

  await limitedNetwork.set.run(asOperator(played.ledger.started.service), { currency: 'USD', amount: 100 });
  const { items: listed } = await limitedNetwork.list.run(caller, {});
  assert.equal(listed.length, 1);
  const { items: paid } = declared(limitedNetwork.list.output, 'items') as { items?: object };
  for (const each of listed) {
    const around = { ...each, since: (each.since as Date).toISOString() };
    await figures.prove(declared(paid, 'paid')?.['x-entries'], 'paid', around);
  }
});

/** Numbers that count nothing, and are no money. */
const NO_FIGURES = ['approvalVouchers', 'approvers', 'id', 'months', 'number', 'percent'];

/** The numbers of an answer that declare nothing. */
function undeclared(schema: object, name = ''): string[] {
  const { type, properties = {}, items, ...about } = schema as Shaped & { type?: unknown; items?: object };
  const isNumber = [type].flat().some((each) => each === 'number' || each === 'integer');
  if (isNumber && !('x-entries' in about) && !('x-format' in about)) return [name];
  return [
    ...(items ? undeclared(items, name) : []),
    ...Object.entries(properties).flatMap(([field, each]) => undeclared(each, field)),
  ];
}

test('every number that a page reads is a figure: it opens, or says why it does not', () => {
  const read = [...OPERATIONS, ...PORTAL_OPERATIONS].filter(({ effect }) => effect === 'read');
  const found = new Set(read.flatMap(({ output }) => undeclared(output)));
  assert.deepEqual([...found].sort(), NO_FIGURES);
});

test('every page of entries belongs to the sum of the first, and no entry is on two', async () => {
  const caller = asOperator(played.ledger.started.service);
  const wanted = { currency: 'USD', account: 'VOUCHER' };
  const { items: all, total } = await entries.list.run(caller, { ...wanted, limit: 200 });
  assert.equal(total?.rows, all.length);
  assert.equal(
    minor(total?.amount),
    all.reduce((sum, { amount }) => sum + minor(amount), 0),
  );
  const paged: string[] = [];
  let cursor: string | null | undefined;
  do {
    const page: Listed = await entries.list.run(caller, { ...wanted, limit: 7, ...(cursor && { cursor }) });
    assert.equal(page.total === null, cursor !== undefined);
    paged.push(...page.items.map(({ transactionId }) => transactionId));
    cursor = page.nextCursor;
  } while (cursor !== null);
  assert.deepEqual(
    paged,
    all.map(({ transactionId }) => transactionId),
  );
});

test('entries of a currency that does not exist are refused', async () => {
  const listing = async () =>
    entries.list.run(asOperator(played.ledger.started.service), { currency: 'PWF' } as never);
  await assert.rejects(listing, (error: Problem) => {
    assert.deepEqual([error.code, error.errors?.map(({ field }) => field)], ['invalid', ['currency']]);
    return true;
  });
});

test('a merchant sees the entries of its own float and settlement account alone', async () => {
  const own = PORTAL_OPERATIONS.find(({ name }) => name === 'books.entries') ?? assert.fail();
  const caller = asOperator(played.ledger.started.service);
  const principal = { ...caller.principal, merchantId: played.cafe };
  const found = (await own.run(
    { ...caller, principal },
    { currency: 'USD', account: 'SETTLEMENT' },
  )) as Listed;
  assert.ok(found.items.length > 0);
  assert.ok(found.items.every(({ merchantId }) => merchantId === String(played.cafe)));
  assert.equal('merchantId' in own.input.properties, false);
  assert.deepEqual((own.input.properties['account'] as { enum?: string[] }).enum, ['FLOAT', 'SETTLEMENT']);
});
