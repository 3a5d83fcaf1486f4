import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { DEMO_OWNER, inviteDemoPerson } from '../src/people/demo.ts';
import { launchChromium } from '../test/support/chromium.ts';
import { startDemo } from '../test/support/demo.process.ts';
import { countTransferred } from '../test/support/transferred.ts';
import { fillDesk } from './desk.fill.ts';
import { median, pause, print } from './figures.ts';
import { type Given, keptIn, numberOf } from './scenario.ts';
import { Stage } from './stage.ts';
import { quantile, sorted } from './statistics.ts';

const TURNS = 12;
const PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime";
const IDLE_MS = 90_000;

/** The pages, and what has to be there before the page is painted. */
const PAGES = {
  overview: { path: '/console/', marks: { numbers: '.stat-line', chart: 'figure.chart svg' } },
  vouchers: { path: '/console/vouchers', marks: { rows: 'main tbody tr:last-child td' } },
} as const;

const FURTHER = 10;
/** Loads 50 more rows of a list. @returns the time until the last one is painted, and that of the answer */
const MORE = `(async () => {
  const rows = () => document.querySelectorAll('main tbody tr').length;
  const [before, since] = [rows(), performance.now()];
  performance.clearResourceTimings();
  [...document.querySelectorAll('main button')].find((each) => each.textContent === 'Load more').click();
  const frame = () => new Promise(requestAnimationFrame);
  while (rows() === before) await frame();
  // What was added is drawn in the next frame.
  await frame();
  const painted = performance.now() - since;
  const [answer] = performance.getEntriesByType('resource').filter(({ name }) => /\\/v1\\/(vouchers|transactions)\\?/.test(name));
  return { painted, answered: answer.responseEnd - answer.startTime };
})()`;

type More = { readonly painted: number; readonly answered: number };

/** The lists of a large database that are read on, each by another index. */
const LARGE = [
  '/vouchers',
  '/vouchers?state=ACTIVE',
  '/vouchers?balanceMin=1',
  '/vouchers?merchantId=7',
  '/transactions',
  '/transactions?merchantId=7',
];

/**
 * Pages of the console in a Chromium, on a demo of its own: the time until the first paint and until the
 * numbers, the chart or the rows are there, with an empty cache and with a full one; what was transferred;
 * what the browser adds to the answer of a list; and what a page at rest transfers. With `--vouchers`, only
 * the lists of a database of that size.
 */
export async function run(given: Given): Promise<void> {
  if (numberOf(given, 'vouchers') > 0) return measureLarge(given);
  const folder = await mkdtemp(join(tmpdir(), 'scrip-paint-'));
  const demo = await startDemo(folder);
  const browser = await launchChromium();
  try {
    const { origin } = new URL(demo.link);
    const first = await browser.newContext({ baseURL: origin });
    const page = await first.newPage();
    await page.goto(demo.link);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    const cookies = await first.cookies();
    await first.close();
    // A new profile has an empty cache.
    const newPage = async () => {
      const context = await browser.newContext({ baseURL: origin, locale: 'en-GB' });
      await context.addCookies(cookies);
      return context.newPage();
    };
    for (const name of Object.keys(PAGES) as (keyof typeof PAGES)[]) await measurePage(name, newPage);
    await measureMore(await newPage());
    const rest = await newPage();
    await rest.goto('/console/');
    await rest.waitForLoadState('networkidle');
    const idle = await countTransferred(rest);
    await pause(IDLE_MS);
    print(
      `at rest for ${IDLE_MS / 1_000} s: ${(idle.bytes / 1_000).toFixed(1)} kB in ${idle.answers.length} answers`,
    );
  } finally {
    await browser.close();
    await demo.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** How long it takes until the last row of 50 more is painted, in the lists of a large database. */
async function measureLarge(given: Given): Promise<void> {
  const stage = await Stage.open(keptIn(given));
  await fillDesk(stage, numberOf(given, 'vouchers'));
  const { url, stop } = await stage.serve();
  const browser = await launchChromium();
  try {
    const context = await browser.newContext({ baseURL: url, locale: 'en-GB' });
    const page = await context.newPage();
    await page.goto(`/console/sign-in#${await inviteDemoPerson(stage.operator, DEMO_OWNER)}`);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    for (const path of LARGE) await measureMore(page, path);
  } finally {
    await browser.close();
    await stop();
  }
}

async function measurePage(name: keyof typeof PAGES, newPage: () => Promise<Page>): Promise<void> {
  const { path, marks } = PAGES[name];
  const times = new Map<string, number[]>();
  const add = (mark: string, ms: number) => times.set(mark, [...(times.get(mark) ?? []), ms]);
  const bytes: number[] = [];
  let answers = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const page = await newPage();
    const transferred = await countTransferred(page);
    const visit = async (cache: string) => {
      const since = performance.now();
      await page.goto(path, { waitUntil: 'commit' });
      for (const [mark, place] of Object.entries(marks)) {
        await page.locator(place).first().waitFor();
        add(`${mark}, ${cache}`, performance.now() - since);
      }
      add(`first paint, ${cache}`, await page.evaluate<number>(PAINT));
    };
    await visit('empty cache');
    await page.waitForLoadState('networkidle');
    bytes.push(transferred.bytes);
    answers = transferred.answers.length;
    await visit('full cache');
    await page.context().close();
  }
  for (const [mark, all] of times)
    print(`${name}, ${mark}: median ${median(all).toFixed(0)} ms, most ${Math.max(...all).toFixed(0)} ms`);
  print(`${name}: ${(median(bytes) / 1_000).toFixed(0)} kB in ${answers} answers`);
}

/** What the browser adds to the answers of a list. */
async function measureMore(page: Page, path = '/vouchers'): Promise<void> {
  const all: More[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    await page.goto(`/console${path}`);
    const button = page.getByRole('button', { name: 'Load more' });
    await button.waitFor();
    // The list of a demo may end before.
    for (let more = 0; more < FURTHER && (await button.isVisible()); more++)
      all.push(await page.evaluate<More>(MORE));
  }
  const of = (pick: (each: More) => number) => {
    const figures = sorted(all.map(pick));
    return `median ${quantile(figures, 0.5).toFixed(0)} ms, p95 ${quantile(figures, 0.95).toFixed(0)} ms`;
  };
  print(`50 more of ${path}, answered: ${of(({ answered }) => answered)}`);
  print(`50 more of ${path}, painted: ${of(({ painted }) => painted)}`);
  print(`50 more of ${path}, what the paint adds: ${of(({ painted, answered }) => painted - answered)}`);
}
