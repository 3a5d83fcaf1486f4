import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dialog, Page } from 'playwright-core';
import { openBrowser, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, opened, openStage, opens } from '../support/console.scene.ts';

/** What forms and filters send, and what becomes of a form that somebody leaves. */

const skip = await whyNoBrowser();

test('a box of cards is changed by its first and its last one', { skip }, async (t) => {
  const { stage, page, sent, faults } = await opened(t, '/vouchers/bulk?action=block');
  const { items } = (await stage.ask(stage.owner, '/vouchers')) as { items: { serialNumber: string }[] };
  const [from, to] = items.map(({ serialNumber }) => serialNumber).sort();
  assert.ok(from && to);
  // What was typed into the list is not sent with the range.
  await page.getByLabel('Serial numbers').fill(from);
  await page.getByText('A range of one batch', { exact: true }).click();
  await page.getByRole('textbox', { name: /^From/ }).fill(from);
  await page.getByRole('textbox', { name: /^To/ }).fill(to);
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByText('Of 2 vouchers, 2 will change and 0 will be declined.').waitFor();
  await page.getByRole('button', { name: 'Block: 2 vouchers' }).click();
  const started = page.waitForRequest((request) => request.url().endsWith('/vouchers/bulk'));
  await page.getByRole('dialog').getByRole('button', { name: 'Block: 2 vouchers' }).click();
  assert.deepEqual((await started).postDataJSON(), { action: 'block', from, to });
  await page.getByText('0 of 2 done, 0 failed').waitFor();
  assert.ok(sent.some((each) => each.includes('bulk/preview')));
  assert.deepEqual(faults, []);
});

/** Presses Escape. @returns the question that is asked, if there is one */
async function escapes(page: Page, answer: 'accept' | 'dismiss'): Promise<string | undefined> {
  let asked: string | undefined;
  const reply = (dialog: Dialog) => {
    asked = dialog.message();
    return dialog[answer]();
  };
  page.once('dialog', reply);
  await page.keyboard.press('Escape');
  page.off('dialog', reply);
  return asked;
}

test('Escape asks before it throws away what was typed, and only then', { skip }, async (t) => {
  const { page, faults } = await opened(t, ({ merchantId }) => `/merchants/${merchantId}`);
  const dialog = page.getByRole('dialog', { name: 'Top up' });
  const begin = () => page.getByRole('main').getByRole('button', { name: 'Top up' }).click();
  await begin();
  const amount = dialog.getByLabel('Amount');
  await amount.focus();
  assert.equal(await escapes(page, 'accept'), undefined);
  await dialog.waitFor({ state: 'hidden' });

  await begin();
  await amount.fill('12.5');
  assert.equal(await escapes(page, 'dismiss'), 'Close the form? What you typed is lost.');
  assert.equal(await amount.inputValue(), '12.5');
  assert.ok(await escapes(page, 'accept'));
  await dialog.waitFor({ state: 'hidden' });
  assert.deepEqual(faults, []);
});

/** Chooses each option of each filter of a list. @returns how many there were */
async function chooseAll(page: Page): Promise<number> {
  const filters = page.getByRole('search').getByRole('combobox');
  await filters.first().waitFor();
  let chosen = 0;
  for (let at = 0; at < (await filters.count()); at++) {
    const filter = filters.nth(at);
    await filter.click();
    const options = await page.getByRole('option').allInnerTexts();
    await page.keyboard.press('Escape');
    for (const option of options) {
      await filter.click();
      await page.getByRole('option', { name: option, exact: true }).click();
      await ready(page);
      chosen++;
    }
    await page.getByRole('button', { name: 'Clear filters' }).click();
  }
  return chosen;
}

test('each option of each filter is one that the service knows', { skip }, async (t) => {
  const { page, faults } = await opened(t, '/vouchers');
  assert.ok((await chooseAll(page)) > 1);
  await goes(page, '/transactions');
  assert.ok((await chooseAll(page)) > 1);
  assert.deepEqual(faults, []);
});

/** Fills and sends the form of an action, and waits for what becomes of it. */
async function sends(page: Page, action: string, fields: Readonly<Record<string, string>>, outcome: string) {
  const dialog = page.getByRole('dialog', { name: action });
  for (const [label, value] of Object.entries(fields))
    await dialog.getByLabel(new RegExp(`^${label}`)).fill(value);
  await dialog.getByRole('button', { name: action, exact: true }).click();
  await page.getByText(outcome).first().waitFor();
}

test('what is shown once stays in its dialog until somebody closes it', { skip }, async (t) => {
  const { page, faults } = await opened(t, ({ merchantId }) => `/merchants/${merchantId}?tab=webhooks`);
  await page.getByRole('tabpanel').getByRole('button', { name: 'Add endpoint' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'URL' }).fill('https://93.184.216.34/events');
  await dialog.getByRole('button', { name: 'Add endpoint' }).click();
  // The list is not empty any more.
  await page.locator('tbody').getByText('https://93.184.216.34/events').waitFor();
  assert.match(await dialog.locator('pre').innerText(), /^whsec_/);
  await dialog.getByRole('button', { name: 'Close' }).click();
  assert.deepEqual(faults, []);
});

test('a product is created by its form, and its page opens', { skip }, async (t) => {
  const { page, faults } = await opened(t, '/products');
  await page.getByRole('button', { name: 'Create product', exact: true }).click();
  const dialog = page.getByRole('dialog');
  for (const [label, text] of Object.entries({ Code: 'GIFT-EUR', Name: 'Gift card', Currency: 'EUR' }))
    await dialog.getByRole('textbox', { name: label }).first().fill(text);
  const create = dialog.getByRole('button', { name: 'Create product', exact: true });
  // A first product needs nothing of a section that begins closed; a wrong value opens it.
  const least = dialog.getByRole('textbox', { name: 'Minimum value' });
  const section = dialog.getByText('Value', { exact: true });
  assert.equal(await least.isVisible(), false);
  await section.click();
  await least.fill('0.001');
  await section.click();
  await least.waitFor({ state: 'hidden' });
  await create.click();
  await least.waitFor();
  await least.fill('');
  await create.click();
  await page.getByRole('heading', { level: 1, name: 'Gift card' }).waitFor();
  assert.equal(new URL(page.url()).pathname, '/console/products/GIFT-EUR');
  assert.deepEqual(
    faults.filter((each) => !each.includes('status of 400')),
    [],
  );
});

test('what seldom happens to money has a form on its page', { skip }, async (t) => {
  const stage = await openStage(t, { isClosed: false });
  const { sold, ask, owner } = stage;
  const { items } = (await ask(owner, `/transactions?serialNumber=${sold.serial}`)) as {
    items: { kind: string; transactionId: string }[];
  };
  const sale = items.find(({ kind }) => kind === 'REDEMPTION')?.transactionId;
  const { page, faults } = await opens(openBrowser(t), stage, owner, `/transactions/${sale}`);
  const main = page.getByRole('main');
  const chooses = async (action: string) => {
    await main.getByRole('button', { name: 'Actions', exact: true }).click();
    await page.getByRole('menuitem', { name: action, exact: true }).click();
  };
  await main.getByRole('button', { name: 'Refund', exact: true }).click();
  const part = { Amount: '1', Reference: 'back-1', Reason: 'a part came back' };
  await sends(page, 'Refund', part, 'Refund: done');

  await goes(page, '/books');
  await chooses('Take over a balance');
  await page
    .getByRole('dialog')
    .getByRole('combobox', { name: /^Account/ })
    .click();
  await page.getByRole('option', { name: 'Fees', exact: true }).click();
  await sends(page, 'Take over a balance', { Amount: '5', Reference: 'old-1' }, 'Proposed');
  await goes(page, '/books');
  await chooses('Hand over unclaimed money');
  // None of it is unclaimed: the service knows what the form has sent.
  const unclaimed = { 'Serial numbers': String(sold.serial), Reference: 'state-1' };
  await sends(page, 'Hand over unclaimed money', unclaimed, 'Insufficient balance');

  await page.goto(`/console/vouchers/${sold.serial}`);
  await ready(page);
  await chooses('Hand over');
  await sends(page, 'Hand over', { Reference: 'state-2' }, 'Proposed');
  await goes(page, `/vouchers/${sold.serial}`);
  await chooses('Cancel the voucher');
  await sends(page, 'Cancel the voucher', {}, 'Cancel the voucher: done');
  // What can only be refused now is not offered.
  await goes(page, `/transactions/${sale}`);
  assert.equal(await main.getByRole('button', { name: 'Refund', exact: true }).count(), 0);
  // The browser reports the answer that declines it.
  assert.deepEqual(
    faults.filter((fault) => !fault.includes('/books/escheat')),
    [],
  );
});
