import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { sell } from '../support/books.ts';
import { inaccessible, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage } from '../support/console.scene.ts';

/** The rows of lists: their order, and which of them are drawn again. */

const skip = await whyNoBrowser();

/** Counts how often the page writes a number or a date: a voucher's row does so with each render. */
const COUNT = `globalThis.formatted = 0;
for (const { prototype } of [Intl.NumberFormat, Intl.DateTimeFormat]) {
  const { get, ...format } = Object.getOwnPropertyDescriptor(prototype, 'format');
  Object.defineProperty(prototype, 'format', {
    ...format,
    get() { globalThis.formatted++; return get.call(this); },
  });
}`;

/** @returns how often numbers and dates were written for what was done */
async function countedIn(page: Page, act: () => Promise<unknown>): Promise<number> {
  const count = () => page.evaluate<number>('globalThis.formatted');
  const before = await count();
  await act();
  await ready(page);
  return (await count()) - before;
}

test('of a long list, the rows that are added or selected are drawn, and not all others', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  // Larger orders are produced in the background.
  for (let order = 0; order < 20; order++) await sell(stage.scene.issuer, 10, 1);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.addInitScript(COUNT);
  await goes(page, '/vouchers');
  const rows = page.locator('main tbody tr');
  const more = async () => {
    const shown = await rows.count();
    await page.getByRole('button', { name: 'Load more' }).click();
    await rows.nth(shown + 49).waitFor();
  };
  const [second, third, fourth] = [
    await countedIn(page, more),
    await countedIn(page, more),
    await countedIn(page, more),
  ];
  assert.equal(await rows.count(), 200);
  assert.ok(second >= 50, `${second} for 50 rows`);
  // All 200 rows would be twice those of the second page.
  assert.ok(Math.max(third, fourth) < 1.2 * second, `${second}, ${third} and ${fourth} for 50 rows each`);
  const selected = await countedIn(page, () => rows.nth(120).getByRole('checkbox').check());
  assert.ok(selected < second / 10, `${selected} for a row that is selected, ${second} for 50`);
  assert.deepEqual(faults, []);
});

test('a merchant has its number and its name in the list', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await goes(page, '/merchants');
  const row = page
    .getByRole('row')
    .filter({ has: page.locator(`a[href$="/merchants/${stage.merchantId}"]`) });
  assert.deepEqual((await row.getByRole('cell').allInnerTexts()).slice(0, 2), [stage.merchantId, 'Shop']);
});

test('the head of a column sorts a list, in the address, the command and a saved view', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  for (const name of ['Zebra', 'apple'])
    await stage.owner.browser.send('POST', '/products', { code: `of-${name}`, name, currency: 'EUR' });
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await goes(page, '/products');
  const head = page.getByRole('columnheader', { name: 'Name' });
  const names = async () => (await page.locator('main tbody tr').allInnerTexts()).join();
  const sorts = async (order: string | null, first: string, last: string) => {
    const address = new RegExp(order ? `sort=${order}$` : 'products$');
    await page.waitForURL(address);
    await ready(page, 'Products');
    assert.match(await names(), new RegExp(`${first}[^]*${last}`));
  };
  await head.getByRole('button').focus();
  await sorts(null, 'Zebra', 'apple');
  await page.keyboard.press('Enter');
  await sorts('name', 'apple', 'Zebra');
  assert.equal(await head.getAttribute('aria-sort'), 'ascending');
  await page.keyboard.press('Enter');
  await sorts('-name', 'Zebra', 'apple');
  assert.equal(await head.getAttribute('aria-sort'), 'descending');
  assert.deepEqual(await inaccessible(page), []);
  await page.getByRole('button', { name: 'As a command' }).click();
  await page.getByText('scrip product list --sort -name --json').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Save view' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('From Z to A');
  await page.keyboard.press('Enter');
  await head.getByRole('button').click();
  await sorts(null, 'Zebra', 'apple');
  assert.equal(await head.getAttribute('aria-sort'), null);
  await page.getByRole('link', { name: 'From Z to A' }).click();
  await sorts('-name', 'Zebra', 'apple');
  // The place of the views is there before they are loaded, so that the list does not move.
  const held = Promise.withResolvers<void>();
  await page.route(/\/assets\/list-tools/, async (route) => {
    await held.promise;
    await route.continue();
  });
  await page.reload();
  await page.locator('main table').waitFor();
  const topOf = async () => (await page.locator('main .panel-head').boundingBox())?.y;
  const before = await topOf();
  assert.equal(await page.getByRole('link', { name: 'From Z to A' }).count(), 0);
  held.resolve();
  await page.getByRole('link', { name: 'From Z to A' }).waitFor();
  assert.equal(await topOf(), before);
  assert.deepEqual(faults, []);
});
