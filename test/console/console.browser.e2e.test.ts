import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { inaccessible, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import {
  findPages,
  furnish,
  openStage,
  releaseOf,
  type Shown,
  type Somebody,
  type Stage,
  visit,
} from '../support/console.scene.ts';

/** A tour of every page: axe, the policy, and errors; in both themes and widths, and as every role. */

const skip = await whyNoBrowser();

const DOORS = {
  console: ['owner', 'finance', 'support', 'operations', 'developer', 'auditor'],
  portal: ['owner', 'finance', 'operations', 'cashier', 'developer', 'viewer'],
} as const;
type Door = keyof typeof DOORS;

/**
 * Colors do not depend on the width, and nothing else on the theme: axe looks at each of them once. A window
 * of 1280 that is zoomed to 400 % is 320 wide.
 */
const VIEWS = [
  { colorScheme: 'light', width: 1280, contrast: 'also' },
  { colorScheme: 'dark', width: 1280, contrast: 'only' },
  { colorScheme: 'light', width: 320, contrast: 'not' },
] as const;

/** The roles whose menus are the shortest. They also open all other pages. */
const FEWEST_RIGHTS: ReadonlySet<string> = new Set(['support', 'developer', 'cashier']);

/** The pages that nobody needs a right for. */
const IN_NO_MENU = new Set(['/search', '/account']);

async function load(page: Page, door: Door, path: string): Promise<void> {
  await page.goto(`/${door}${path}`);
  await ready(page);
}

/** On paper of A4 without its margins, a page is not cut off, and has no frame. */
async function cutOffOnPaper(page: Page): Promise<string[]> {
  await page.setViewportSize({ width: 680, height: 960 });
  await page.emulateMedia({ media: 'print' });
  const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
  const hasFrame = await page.getByRole('navigation').first().isVisible();
  await page.emulateMedia({ media: 'screen' });
  return [
    ...(wide > 680 ? [`it is ${wide} wide on paper`] : []),
    ...(hasFrame ? ['its frame is printed'] : []),
  ];
}

const MOVING = "document.getAnimations().filter(({ playState }) => playState === 'running').length";

/** Every page of a door, light and dark, wide and narrow, printed, and without motion. */
async function tour(t: TestContext, stage: Stage, shown: Shown, door: Door, somebody: Somebody) {
  const browser = openBrowser(t);
  const { page, faults } = await pageOf(browser, stage.listening, somebody.browser);
  const found: string[] = [];
  const pages = [...new Set(await findPages(door, shown))];
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await load(page, door, pages.at(-1) ?? '/');
  for (const path of pages) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
    await visit(page, door, path);
    if ((await page.evaluate<number>(MOVING)) > 0) found.push(`${path}: something moves`);
    found.push(...(await cutOffOnPaper(page)).map((each) => `${path}: ${each}`));
    for (const { colorScheme, width, contrast } of VIEWS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth');
      if (wide > width) found.push(`${path} at ${width}: the page is ${wide} wide`);
      for (const each of await inaccessible(page, contrast))
        found.push(`${path}, ${colorScheme}, at ${width}: ${each}`);
    }
  }
  assert.deepEqual([...found, ...faults], [], door);
}

test('every page is accessible and causes no error', { skip }, async (t) => {
  const stage = await openStage(t);
  const shown = await furnish(stage);
  await t.test('the console', (sub) => tour(sub, stage, shown, 'console', stage.owner));
  const merchant = await stage.join('owner', true);
  const { merchantId } = stage;
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 100, reference: 'paid in' });
  const hook = await stage.ask(merchant, '/webhooks', { url: 'https://93.184.216.34/own' });
  const own = await stage.ask(merchant, '/batches', { quantity: 2, value: 10 });
  await stage.join('operations', true);
  const inPortal = {
    ...shown,
    '/webhooks/$id': `/webhooks/${hook['id']}`,
    '/batches/$transactionId': `/batches/${own['transactionId']}`,
    '/approvals/$id': `/approvals/${await releaseOf(stage, merchant, String(own['transactionId']))}`,
    // The merchant has none of its own, and the console's tour visits the same pages.
    '/settlements/$id': '/settlements',
  };
  await t.test('the portal', (sub) => tour(sub, stage, inPortal, 'portal', merchant));
});

test('every role can open all pages of its menu, and some are told which roles open another, without a refusal', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  await furnish(stage);
  const browser = openBrowser(t);
  for (const door of ['console', 'portal'] as const)
    for (const role of DOORS[door]) {
      const somebody = await stage.join(role, door === 'portal');
      const { page, faults } = await pageOf(browser, stage.listening, somebody.browser);
      await load(page, door, '/');
      const links = await page.evaluate<string[]>(
        "[...document.querySelectorAll('nav a.side-link')].map((link) => link.getAttribute('href'))",
      );
      assert.ok(links.length >= 2, `${role} sees ${links}`);
      for (const link of links) {
        const place = page.locator(`nav a.side-link[href="${link}"]`);
        await place.click();
        await place.and(page.locator('[aria-current=page]')).waitFor();
        await ready(page);
      }
      const inMenu = new Set(links.map((link) => link.slice(door.length + 1)));
      const others = new Set(await findPages(door, {})).difference(inMenu);
      for (const path of FEWEST_RIGHTS.has(role) ? others : []) {
        if (!/^\/\w+$/.test(path) || IN_NO_MENU.has(path)) continue;
        await visit(page, door, path);
        await page.getByRole('alert').getByText('Your roles do not permit this').waitFor();
      }
      assert.deepEqual(faults, [], `${role} at ${door}`);
      await page.context().close();
    }
});
