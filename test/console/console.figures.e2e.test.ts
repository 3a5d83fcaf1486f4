import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { reports } from '../../console/generated/reports.ts';
import { setBankAccount } from '../../src/bank/accounts.ts';
import { saveMapping } from '../../src/bank/csv.ts';
import { bankMovements } from '../../src/bank/entries.ts';
import { importBank } from '../../src/bank/import.ts';
import { matchBank } from '../../src/bank/match.ts';
import { demoLinks } from '../../src/cli/demo.ts';
import { fillHistory } from '../../src/cli/demo-history.ts';
import { MAPPING } from '../support/bank.ts';
import { newPage, type OpenPage, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { findPages, furnish, openStage, type Shown, visit } from '../support/console.scene.ts';
import { asOperator, type ListeningService, testService } from '../support/harness.ts';

/**
 * Every figure of the console and the portal opens into rows that add up to it, or says why it has none: on
 * every page, in every tab, and in the table of every chart.
 */

const skip = await whyNoBrowser();

type Door = 'console' | 'portal';
type Found = { readonly value: string; readonly text: string; readonly href: string | null };
type Listed = { readonly total: { readonly rows: number; readonly amount: number } };
type Items = { readonly items: readonly Readonly<Record<string, unknown>>[] };

const FIGURES = `[...document.querySelectorAll('main [data-figure]')].map((each) => ({
  value: each.dataset.figure, text: each.textContent, href: each.getAttribute('href'),
}))`;

/**
 * Texts that are money, and numbers in a column or a large number, which no figure shows. An amount in the
 * record of a change is none; nor is a number with a unit, or on an axis.
 */
const BARE = `(() => {
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const bare = [];
  for (let node; (node = walker.nextNode());) {
    const { parentElement: place, data } = node;
    if (place.closest('[data-figure], [data-sum], [data-recorded], svg, pre, time, button')) continue;
    const isMoney = /\\b(USD|EUR|JPY)\\s?[\\u2212+]?\\d/.test(data);
    const isNumber = place.closest('td.number, .stat') && /^[\\u2212+]?[\\d.,]+$/.test(data.trim());
    if (isMoney || isNumber) bare.push(data + ' in ' + place.outerHTML.slice(0, 120));
  }
  return bare;
})()`;

/** Reads the API as the page does. */
const read = <Answer>(page: Page, path: string) =>
  page.evaluate<Answer>(`fetch(${JSON.stringify(path)}, { headers: { 'x-scrip-request': 'person' } })
    .then((answer) => answer.json())`);

class Walk {
  readonly #page: Page;
  readonly #door: Door;
  readonly #sums = new Map<string, readonly number[]>();
  /** All of them are told, since a walk takes long. */
  readonly problems: string[] = [];
  /** How many figures each tab has that is in the address. */
  readonly tabs = new Map<string, number>();
  figures = 0;
  reasons = 0;

  constructor({ page }: OpenPage, door: Door) {
    this.#page = page;
    this.#door = door;
  }

  get sums(): number {
    return this.#sums.size;
  }

  /** Opens every figure of a page, of each of its tabs, and of the tables of its charts. */
  async page(path: string): Promise<void> {
    const page = this.#page;
    // One report after another keeps the heading of the page.
    if (path.startsWith('/books/reports/')) await visit(page, this.#door, '/audit');
    await visit(page, this.#door, path);
    const tabs = page.locator('main [role=tab]');
    for (let at = 0; at < Math.max(1, await tabs.count()); at++) {
      if (at > 0) await tabs.nth(at).click();
      await ready(page);
      const charts = page.locator('main button[aria-label^="Table: "]');
      while ((await charts.count()) > 0) await charts.first().click();
      await ready(page);
      await this.#check(`${path}, tab ${at}`);
    }
    await this.#follow(path);
  }

  async #check(where: string): Promise<void> {
    for (const bare of await this.#page.evaluate<string[]>(BARE)) this.problems.push(`${where}: ${bare}`);
    const found = await this.#page.evaluate<Found[]>(FIGURES);
    this.figures += found.length;
    const tab = new URL(this.#page.url()).searchParams.get('tab');
    if (tab) this.tabs.set(tab, (this.tabs.get(tab) ?? 0) + found.length);
    this.reasons += await this.#page.locator('main [data-figure][data-none]').count();
    for (const { value, text, href } of found) {
      const sums = href === null ? undefined : await this.#sumsOf(href);
      if (sums?.includes(Number(value)) === false)
        this.problems.push(`${where}: ${text} is not the sum of ${href}: ${sums}`);
    }
  }

  /** What a list that a figure opens into adds up to: its amount, or its number of rows. */
  async #sumsOf(href: string): Promise<readonly number[] | undefined> {
    const known = this.#sums.get(href);
    if (known) return known;
    const [place = '', query = ''] = href.split('?');
    const api = `/${this.#door === 'console' ? 'operator' : 'portal'}/v1`;
    let sums: number[] | undefined;
    if (place.endsWith('/books/entries')) {
      const { total } = await read<Listed>(this.#page, `${api}/books/entries?${query}&limit=1`);
      assert.ok(total, href);
      sums = [total.amount, total.rows];
    } else if (place.endsWith('/bank')) {
      const { items } = await read<Items>(this.#page, `${api}/bank/entries?${query}&limit=200`);
      const open = items.map(({ amount, matched }) => Math.round(100 * (Number(amount) - Number(matched))));
      sums = [items.length, open.reduce((sum, each) => sum + each, 0) / 100];
    }
    if (sums) this.#sums.set(href, sums);
    return sums;
  }

  /** Follows one figure of the page: the list says the same. */
  async #follow(path: string): Promise<void> {
    const link = this.#page.locator('main a[data-figure][href*="/books/entries"]:visible').first();
    if ((await link.count()) === 0) return;
    const value = await link.getAttribute('data-figure');
    await link.click();
    const sum = this.#page.locator('main [data-sum]');
    await sum.waitFor();
    const [amount, text] = [await sum.getAttribute('data-sum'), await sum.textContent()];
    assert.ok(Number(amount) === Number(value) || text?.startsWith(`${Number(value)} `), `${path}: ${text}`);
  }
}

type Walked = { readonly least: number; readonly shown: Shown; readonly others?: readonly string[] };

/** Walks all pages of a door. */
async function walk(t: TestContext, open: OpenPage, door: Door, { least, shown, others = [] }: Walked) {
  await open.page.goto(`/${door}/account`);
  await ready(open.page);
  const walked = new Walk(open, door);
  const pages = (await findPages(door, shown)).filter((path) => !/\$|^\/books\/entries$/.test(path));
  for (const path of [...pages, ...others]) await walked.page(path);
  assert.deepEqual([...walked.problems, ...open.faults], []);
  const { figures, reasons, sums } = walked;
  t.diagnostic(`${figures} figures of the ${door}: ${reasons} with a reason, the rest with ${sums} lists`);
  assert.ok(sums >= least, `${sums}`);
  if (door === 'console') assert.ok(walked.tabs.get('month-end'), 'the end of a month has figures');
}

/** These have a line for each day. */
const BY_DAY = ['outstanding', 'safeguarding'];

/** The general ledger needs account numbers, and is not made of entries. */
const reportsOf = (merchantId: string, days: { readonly from: string; readonly to: string }) =>
  reports
    .filter(({ name }) => name !== 'general-ledger')
    .map(({ name, ofMerchant }) => {
      const query = { ...(ofMerchant && { merchantId }), ...(BY_DAY.includes(name) && days) };
      return `/books/reports/${name}?${new URLSearchParams(query)}`;
    });

test('every figure of a shop opens into what adds up to it', { skip }, async (t) => {
  const stage = await openStage(t);
  const { merchantId, listening } = stage;
  const shown = await furnish(stage);
  const browser = openBrowser(t);
  const owner = await pageOf(browser, listening, stage.owner.browser);
  // The reports are those of the demo, below.
  await walk(t, owner, 'console', { least: 50, shown });
  const merchant = await stage.join('owner', true);
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 100, reference: 'paid in' });
  await walk(t, await pageOf(browser, listening, merchant.browser), 'portal', { least: 1, shown: {} });
});

/** The bank made the payments of the demo in dollars, all but the newest, and charged a fee. */
async function bankOf({ service }: ListeningService): Promise<void> {
  const operator = asOperator(service);
  const { items } = await bankMovements.run(operator, { limit: 200 });
  const paid = items.filter(({ currency }) => currency === 'USD').slice(1);
  assert.ok(paid.length > 3);
  const lines = paid.map(({ day, reference, amount }, at) => {
    const [year, month, date] = day.split('-');
    return [`${date}.${month}.${year}`, `${reference}`, String(amount).replace('.', ','), `B ${at}`].join(
      ';',
    );
  });
  const [first = ''] = lines;
  lines.push([first.slice(0, 10), 'Fee', '-1,50', 'B fee'].join(';'));
  await setBankAccount(operator, { name: 'House', currency: 'USD', own: 500 });
  await saveMapping(operator, 'house', { ...MAPPING, entryReference: 'Ref' });
  const bytes = Buffer.from(`Buchungstag;Zweck;Betrag;Ref\n${lines.join('\n')}\n`);
  await importBank(operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);
  await matchBank(operator, true);
}

/** One of each thing that the demo has, by the pattern of its page. */
async function shownOf(page: Page, door: Door): Promise<Shown> {
  const idOf = async (path: string, name: string) => {
    const { items } = await read<Items>(page, `/${door === 'console' ? 'operator' : 'portal'}/v1${path}`);
    return String(items[0]?.[name]);
  };
  const own = {
    '/transactions/$id': `/transactions/${await idOf('/transactions', 'transactionId')}`,
    '/batches/$transactionId': `/batches/${await idOf('/batches', 'transactionId')}`,
    '/settlements/$id': `/settlements/${await idOf('/settlements', 'id')}`,
  };
  if (door === 'portal') return own;
  return {
    ...own,
    '/vouchers/$serialNumber': `/vouchers/${await idOf('/vouchers', 'serialNumber')}`,
    '/merchants/$id': `/merchants/${await idOf('/merchants', 'id')}`,
    '/products/$code': '/products/GIFT-EUR',
    '/books/reports/$report': '/books/reports/trial-balance',
  };
}

/** The balance of a voucher, and what its history adds up to. */
async function checkVouchers(page: Page): Promise<void> {
  const { items } = await read<Items>(page, '/operator/v1/vouchers?limit=30');
  for (const { serialNumber } of items) {
    const shown = await read<{ balance: number; timeline: { kind: string; amount: number | null }[] }>(
      page,
      `/operator/v1/vouchers/${serialNumber}`,
    );
    const moved = shown.timeline.filter(({ kind }) => kind === 'money');
    const sum = moved.reduce((total, { amount }) => total + Math.round(100 * (amount ?? 0)), 0);
    assert.equal(sum, Math.round(100 * shown.balance), String(serialNumber));
  }
}

test('every figure of the demo opens into what adds up to it, in the console and the portal', {
  skip,
}, async (t) => {
  const listening = await testService(t);
  const { service, url, baseUrl } = listening;
  const { actor } = asOperator(service);
  const progress = { tell: () => {}, stopping: () => false };
  assert.ok(await fillHistory(service, url, { ...actor, reason: 'the demo' }, progress));
  await bankOf(listening);
  const links = (await demoLinks(service, baseUrl)).flatMap((line) => /(?<=\s)http\S+#\S+$/.exec(line) ?? []);
  const browser = openBrowser(t);
  for (const [door, least] of [
    ['console', 300],
    ['portal', 10],
  ] as const) {
    const open = await newPage(browser, listening);
    const link = links.find((each) => each.includes(`/${door}/`)) ?? assert.fail();
    await open.page.goto(link);
    await ready(open.page, 'Overview');
    const shown = await shownOf(open.page, door);
    if (door === 'portal') {
      await walk(t, open, door, { least, shown });
      continue;
    }
    await checkVouchers(open.page);
    const [, merchantId = ''] = /(\d+)$/.exec(shown['/merchants/$id'] ?? '') ?? [];
    const { items: days } = await read<Items>(open.page, '/operator/v1/books/days');
    const [from, to] = [String(days.at(-4)?.['day']), String(days.at(-1)?.['day'])];
    await walk(t, open, door, { least, shown, others: reportsOf(merchantId, { from, to }) });
  }
});
