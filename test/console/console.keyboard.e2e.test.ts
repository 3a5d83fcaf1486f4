import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator } from 'playwright-core';
import { inaccessible, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, opened, openStage, visit } from '../support/console.scene.ts';

/** The console without a mouse: where the focus begins, stays and returns. */

const skip = await whyNoBrowser();

const focused = (place: Locator) => place.and(place.page().locator(':focus')).waitFor();

test('a page begins with its skip link, at its top', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.setViewportSize({ width: 360, height: 420 });
  await goes(page, `/merchants/${stage.scene.shop.merchant.id}`);
  assert.equal(await page.evaluate('scrollY'), 0);
  await page.keyboard.press('Tab');
  await focused(page.getByRole('link', { name: 'Skip to the content' }));
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  await focused(page.getByRole('main').getByRole('link', { name: 'Merchants' }));
});

test('a screen reader says the title of each page that opens without a load, also of none', {
  skip,
}, async (t) => {
  const { page } = await opened(t, '/merchants');
  const said = page.locator('[role=status]#announced');
  assert.equal(await said.textContent(), '');
  const name = 'Products';
  await page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name }).click();
  await said.getByText(name, { exact: true }).waitFor();
  await page.getByRole('table', { name, exact: true }).waitFor();
  // The keyboard goes on where the new page begins.
  await focused(page.getByRole('main'));
  await page.keyboard.press('/');
  await page.keyboard.type('webhooks');
  await page.getByRole('option', { name: 'Webhooks', exact: true }).waitFor();
  await page.keyboard.press('Enter');
  await said.getByText('Webhooks', { exact: true }).waitFor();
  await focused(page.getByRole('main'));
  // An old link leads somewhere else.
  await visit(page, 'console', '/nowhere');
  await said.getByText('This page does not exist.', { exact: true }).waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Overview' }).click();
  await said.getByText('Overview', { exact: true }).waitFor();
});

test('a menu and a dialog are accessible, hold the focus, and give it back', { skip }, async (t) => {
  const { page, faults } = await opened(t, ({ scene }) => `/merchants/${scene.shop.merchant.id}`);
  const menu = page.getByRole('main').getByRole('button', { name: 'Actions' });
  await menu.focus();
  await page.keyboard.press('Enter');
  await focused(page.getByRole('menuitem').first());
  assert.deepEqual(await inaccessible(page), []);
  await page.getByRole('menuitem', { name: 'Refund' }).focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Refund' });
  await focused(dialog.getByLabel('Amount'));
  assert.deepEqual(await inaccessible(page), []);
  await dialog.getByRole('button', { name: 'Refund' }).focus();
  await page.keyboard.press('Tab');
  await focused(dialog.getByRole('button', { name: 'Dismiss' }));
  // A key of the page does nothing while a dialog is open.
  await page.keyboard.press('/');
  await focused(dialog.getByRole('button', { name: 'Dismiss' }));
  await page.keyboard.press('Escape');
  await focused(menu);
  // What replaces a form has the focus too.
  await page.getByRole('main').getByRole('button', { name: 'Top up' }).click();
  const topUp = page.getByRole('dialog', { name: 'Top up' });
  await topUp.getByLabel('Amount').fill('123456');
  await page.keyboard.press('Enter');
  await topUp.getByText('Another person has to approve this').waitFor();
  await focused(topUp.getByRole('button', { name: 'Close' }));
  assert.deepEqual(faults, []);
});

test('rows are links, and keys move among them, open and select them', { skip }, async (t) => {
  const { page, faults } = await opened(t, () => '/vouchers');
  const rows = page.getByRole('row');
  const row = (index: number) => rows.nth(index).getByRole('link').first();
  const address = String(await row(2).getAttribute('href'));
  assert.match(address, /^\/console\/vouchers\/\d+$/);
  for (const [key, index] of [
    ['j', 1],
    ['j', 2],
    ['k', 1],
    ['j', 2],
  ] as const) {
    await page.keyboard.press(key);
    await focused(row(index));
  }
  await page.keyboard.press('x');
  await page.getByRole('toolbar', { name: '1 selected' }).waitFor();
  assert.deepEqual(await inaccessible(page), []);
  await page.getByRole('link', { name: 'Block', exact: true }).click();
  await page.waitForURL('**/console/vouchers/bulk?**');
  const serialNumber = address.split('/').at(-1) ?? '';
  assert.equal(await page.getByLabel('Serial numbers').inputValue(), serialNumber);
  await page.goBack();
  await row(1).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/console\/vouchers\/\d+$/);
  assert.deepEqual(faults, []);
});

test('keys lead to pages and are listed, and those of one letter can be turned off', {
  skip,
}, async (t) => {
  const { page, faults } = await opened(t, '/merchants');
  const search = page.getByRole('textbox', { name: 'Search' });
  for (const key of ['g', 'v']) await page.keyboard.press(key);
  await ready(page, 'Vouchers');
  // A letter alone leads nowhere, nor does one that is typed.
  await page.keyboard.press('m');
  await page.keyboard.press('/');
  await page.keyboard.type('gm');
  assert.equal(await search.inputValue(), 'gm');
  await search.fill('');
  await search.blur();
  await page.keyboard.press('Shift+?');
  const dialog = page.getByRole('dialog', { name: 'Keys' });
  await dialog.getByText('The next row').waitFor();
  assert.deepEqual(await inaccessible(page), []);
  for (const key of ['g', 'm']) await page.keyboard.press(key);
  await dialog.getByRole('checkbox').uncheck();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  for (const key of ['g', 'm', '/', 'Shift+?']) await page.keyboard.press(key);
  await ready(page, 'Vouchers');
  assert.equal(await dialog.count(), 0);
  assert.equal(await search.and(page.locator(':focus')).count(), 0);
  await page.getByRole('button', { name: 'My account' }).click();
  await page.getByRole('menuitem', { name: 'Keys' }).click();
  await dialog.getByRole('checkbox').check();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  for (const key of ['g', 'm']) await page.keyboard.press(key);
  await ready(page, 'Merchants');
  assert.deepEqual(faults, []);
});

test('a message offers to undo a block', { skip }, async (t) => {
  const { page, faults } = await opened(t, ({ sold }) => `/vouchers/${sold.serial}`);
  await page.getByRole('button', { name: 'Block' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click();
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Unblock: done').waitFor();
  await page.getByRole('button', { name: 'Block', exact: true }).waitFor();
  assert.deepEqual(faults, []);
});
