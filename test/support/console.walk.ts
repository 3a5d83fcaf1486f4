import type { Locator, Page } from 'playwright-core';
import { ready } from './chromium.ts';
import { visit } from './console.scene.ts';
import { until } from './until.ts';

/** Walks the pages of a door as somebody does who opens all that they offer, in any language. */

/** Looks at what is open now. @param place the page, and what was opened on it */
type Look = (place: string) => Promise<void>;

const DIALOG = '[role=dialog]:visible';
const OVER = `${DIALOG}, [role=menu]:visible`;

/** Closes what is over a page. Nothing was typed, so nothing is asked. */
async function close(page: Page): Promise<void> {
  for (const over = page.locator(OVER); (await over.count()) > 0; ) {
    // A list of choices, which has the focus, closes first.
    await page.keyboard.press('Escape');
    await ready(page);
  }
}

/** What opens something over the page, in a part of it: not what sorts, copies or sends. */
const openers = (part: Locator): Locator =>
  part.locator(
    'header.head button:not(.mono, [type=submit]), .list-tools button, ' +
      '.panel-head > button, tbody tr:first-child button[aria-haspopup]',
  );

/** Clicks, until something has opened over the page, a file has come, or another page. @returns the first */
async function opens(page: Page, button: Locator, over = OVER): Promise<boolean> {
  const before = page.url();
  let hasFile = false;
  const onFile = () => {
    hasFile = true;
  };
  page.on('download', onFile);
  await button.click();
  const isOver = async () => (await page.locator(over).count()) > 0;
  await until('something opens', async () => hasFile || page.url() !== before || (await isOver()));
  page.off('download', onFile);
  await ready(page);
  return page.url() === before && (await isOver());
}

/** Opens each thing that the page offers. @param again returns to the page */
async function walkPart(part: Locator, path: string, again: () => Promise<void>, look: Look): Promise<void> {
  const page = part.page();
  await look(path);
  const buttons = openers(part);
  const count = await buttons.count();
  for (let at = 0; at < count; at++) {
    const button = buttons.nth(at);
    if (!(await button.isVisible()) || (await button.isDisabled())) continue;
    const name = (await button.getAttribute('aria-label')) ?? (await button.innerText());
    const before = page.url();
    if (await opens(page, button)) await look(`${path}, ${name}`);
    else if (page.url() !== before) {
      await again();
      continue;
    }
    const items = page.locator('[role=menu]:visible [role=menuitem]:not([href])');
    const names = await items.allInnerTexts();
    for (const [index, item] of names.entries()) {
      if (index > 0) await opens(page, button);
      if (await opens(page, items.nth(index), DIALOG)) await look(`${path}, ${name}, ${item}`);
      else if (page.url() !== before) await again();
      await close(page);
    }
    await close(page);
  }
}

export async function walk(
  page: Page,
  door: 'console' | 'portal',
  paths: readonly string[],
  look: Look,
): Promise<void> {
  for (const path of paths) {
    await visit(page, door, path);
    await walkPart(page.locator('main'), path, () => visit(page, door, path), look);
    const tabs = page.locator('main [role=tab]');
    const count = await tabs.count();
    for (let at = 1; at < count; at++) {
      const name = await tabs.nth(at).innerText();
      const open = async () => {
        await tabs.nth(at).click();
        await ready(page);
      };
      await open();
      const again = () => visit(page, door, path).then(open);
      await walkPart(page.locator('main [role=tabpanel]'), `${path} [${name}]`, again, look);
    }
  }
}
