import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  arrive,
  inaccessible,
  openBrowser,
  pageOf,
  ready,
  signedIn,
  whyNoBrowser,
} from '../support/chromium.ts';
import { goes, openStage } from '../support/console.scene.ts';
import { testService } from '../support/harness.ts';

const skip = await whyNoBrowser();

test('the search never sends a code with its PIN', { skip }, async (t) => {
  const listening = await testService(t);
  const { page, sent } = await signedIn(openBrowser(t), listening);
  const search = page.getByRole('textbox', { name: 'Search' });
  for (const typed of ['1234567890123456', '1234 5678 9012 3456', '1234-5678-9012-3456']) {
    await search.fill(typed);
    await search.press('Enter');
    await page.getByText('They were not sent').waitFor();
    assert.equal(await search.inputValue(), '');
  }
  await goes(page, '/search?text=1234567890123456');
  const after = sent.filter((each) => !each.includes('/console/search?text='));
  assert.deepEqual(
    after.filter((each) => each.replace(/[\s-]|%20/g, '').includes('1234567890123456')),
    [],
  );
});

test('a search for a serial number opens its voucher, and a filter is readable in the address', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  const serialNumber = String(stage.sold.serial);
  await goes(page, '/merchants');
  await page.getByRole('textbox', { name: 'Search' }).fill(serialNumber);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/console/vouchers/${serialNumber}`);
  const timeline = page.getByRole('region', { name: 'Timeline' });
  // It was sold for 60, of which 40.10 are spent.
  await timeline.getByText('balance USD 60.00').waitFor();
  await timeline.getByText('balance USD 19.90').waitFor();
  await goes(page, `/transactions?serialNumber=${serialNumber}`);
  const filter = page.getByRole('textbox', { name: 'Serial number' });
  assert.equal(await filter.inputValue(), serialNumber);
  await filter.fill('7');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/console/transactions?serialNumber=7');
  await page.goto('/console/nothing');
  await ready(page, 'This page does not exist.');
  await page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: 'Vouchers' }).waitFor();
  assert.deepEqual(faults, []);
});

test('the search begins an operation, and finds a reference without its merchant', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await goes(page, '/merchants');
  const search = page.getByRole('textbox', { name: 'Search' });
  await search.fill('invite');
  await page.getByRole('option', { name: 'User: Invite' }).waitFor();
  await search.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Invite' });
  const email = dialog.getByLabel('Email');
  await email.fill('eve@example.com');
  // Escape asks before it throws away what was typed.
  page.once('dialog', (question) => question.dismiss());
  await page.keyboard.press('Escape');
  assert.equal(await email.inputValue(), 'eve@example.com');
  page.once('dialog', (question) => question.accept());
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  const { items } = (await stage.ask(stage.owner, '/transactions')) as { items: Record<string, string>[] };
  const sale = items.find(({ kind }) => kind === 'REDEMPTION') ?? assert.fail('nothing is redeemed');
  await search.fill(String(sale['reference']));
  await search.press('Enter');
  await page.waitForURL(/\/console\/(transactions\/|search)/);
  await page.getByText(String(sale['reference'])).first().waitFor();
  assert.deepEqual(faults, []);
});

test('a search for four digits of a code asks for the others, and the masked code opens the voucher', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await goes(page, '/vouchers');
  const search = page.getByRole('textbox', { name: 'Search' });
  const { code, serial } = stage.sold;
  for (const typed of [`****${code.slice(-4)}`, code.slice(-4)]) {
    await search.fill(typed);
    await search.press('Enter');
    await page.getByText('Type the first four and the last four').waitFor();
    await goes(page, '/vouchers');
  }
  await search.fill(`${code.slice(0, 4)}…${code.slice(-4)}`);
  await search.press('Enter');
  await page.waitForURL(`**/console/vouchers/${serial}`);
  assert.deepEqual(faults, []);
});

test('an owner sees on the overview which first steps are left, until none is', { skip }, async (t) => {
  const listening = await testService(t);
  const { page, faults } = await signedIn(openBrowser(t), listening);
  const steps = page.getByRole('region', { name: 'Get started' });
  await steps.getByText('0 of 9 done').waitFor();
  assert.deepEqual(await inaccessible(page), []);
  // What a merchant needs comes after the first one.
  const topUp = steps.getByRole('button', { name: 'Top up' });
  const order = steps.getByRole('button', { name: 'Order vouchers' });
  const invite = steps.getByRole('button', { name: 'Invite' });
  assert.deepEqual([await topUp.count(), await order.count(), await invite.count()], [0, 0, 1]);
  const dialog = page.getByRole('dialog');
  await steps.getByRole('button', { name: 'Create product' }).click();
  await dialog.getByRole('textbox', { name: 'Code' }).fill('CARD');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Gift card');
  await dialog.getByRole('button', { name: 'Create product' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await steps.getByText('1 of 9 done').waitFor();
  await steps.getByRole('button', { name: 'Create merchant' }).press('Enter');
  // The product was made for it.
  await dialog.locator('input[value="Gift card (CARD)"]').waitFor();
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Kiosk 1');
  await dialog.getByRole('button', { name: 'Create merchant' }).click();
  await dialog.getByText('This is shown once').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await steps.getByText('3 of 9 done').waitFor();
  await topUp.click();
  // The form says whose float it is.
  await dialog.getByText('Kiosk 1').waitFor();
  await dialog.getByRole('textbox', { name: 'Amount' }).fill('125.5');
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await steps.getByText('4 of 9 done').waitFor();
  await steps.getByRole('listitem').filter({ hasText: 'Top up a float' }).getByText('Done').waitFor();
  await invite.last().click();
  // The cashier of the merchant takes the first voucher.
  assert.ok(await dialog.getByRole('checkbox', { name: 'Cashier' }).isChecked());
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await order.click();
  await dialog.getByRole('textbox', { name: 'Quantity' }).fill('2');
  await dialog.getByRole('textbox', { name: 'Value' }).fill('10');
  await dialog.getByText('Kiosk 1').waitFor();
  await dialog.getByText(/^2 × .*10\.00 = .*20\.00$/).waitFor();
  await dialog.getByRole('button', { name: 'Order vouchers' }).click();
  await page.waitForURL('**/console/batches/*');
  await page.getByRole('button', { name: 'Order sheets' }).waitFor();
  await page.route('**/operator/v1/setup', async (route) => {
    const setup = (await (await arrive(route)).json()) as object;
    await route.fulfill({ json: Object.fromEntries(Object.keys(setup).map((step) => [step, true])) });
  });
  await page.getByRole('link', { name: 'Overview' }).click();
  await ready(page, 'Overview');
  await steps.waitFor({ state: 'detached' });
  assert.deepEqual(faults, []);
});

test('a new merchant is topped up, and shows its float', { skip }, async (t) => {
  const listening = await testService(t);
  const { page, faults } = await signedIn(openBrowser(t), listening);
  await page.getByRole('link', { name: 'Merchants' }).click();
  await ready(page, 'Merchants');
  await page.getByRole('button', { name: 'Create merchant' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('Kiosk 1');
  await dialog.getByRole('button', { name: 'Create merchant' }).click();
  // The secret of its key is shown once, until the dialog is closed.
  await dialog.getByText('This is shown once').waitFor();
  assert.match(await dialog.locator('pre').last().innerText(), /\S{12,}/);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await ready(page, 'Kiosk 1');
  await page.getByRole('button', { name: 'Top up' }).click();
  await dialog.getByRole('textbox', { name: 'Amount' }).fill('125.5');
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await page
    .getByRole('region', { name: 'Float' })
    .getByText(/125\.50$/)
    .waitFor();
  // A top-up is no transaction of a voucher: the tab says what it lists, and where the rest is.
  await page.getByText('No activations or redemptions yet.').waitFor();
  await page.getByRole('link', { name: 'Statement of the float' }).click();
  await ready(page, 'Float statement');
  assert.deepEqual(faults, []);
});

test('a statement is checked where it is chosen, and row by row in the language of the page', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const german = { locale: 'de-DE' };
  const { page, sent, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser, german);
  await goes(page, '/bank');
  const begin = () => page.getByRole('main').getByRole('button', { name: 'Auszug einlesen' }).click();
  await begin();
  const dialog = page.getByRole('dialog').last();
  await dialog.getByText('Noch keine Bankkonten.').waitFor();
  await dialog.getByRole('button', { name: 'Konto hinzufügen' }).click();
  await dialog.getByLabel('Name').fill('Haus');
  await dialog.getByLabel('Währung').fill('USD');
  await dialog.getByRole('button', { name: 'Konto hinzufügen' }).click();

  // The only account is chosen already.
  await dialog.getByRole('combobox', { name: 'Konto' }).waitFor();
  assert.equal(await dialog.getByRole('combobox', { name: 'Konto' }).inputValue(), 'Haus');
  const choose = (name: string, text: string) =>
    dialog.locator('input[type=file]').setInputFiles({
      name,
      mimeType: 'application/octet-stream',
      buffer: Buffer.from(text),
    });
  await choose('november.xlsx', 'PK\u0003\u0004');
  await dialog.getByText('Das ist eine Arbeitsmappe').waitFor();
  await dialog.getByRole('button', { name: 'Vorschau' }).click();
  assert.ok(!sent.some((each) => each.includes('/bank/import')));
  await choose('november.xml', '<Document/>');
  await dialog.getByRole('button', { name: 'Vorschau' }).click();
  await dialog.getByRole('cell', { name: 'ist kein Kontoauszug im Format camt.053' }).waitFor();
  // The columns of a CSV file are read from it, checked once, and used at once.
  await choose('november.csv', 'Buchungstag;Zweck;Betrag\n02.03.2026;Gebühr;-12,90\n');
  await dialog.getByRole('button', { name: 'CSV-Spalten festlegen' }).click();
  const columns = page.getByRole('dialog', { name: 'CSV-Spalten festlegen' });
  assert.equal(await columns.getByRole('textbox', { name: 'Betrag' }).inputValue(), 'Betrag');
  await columns.getByRole('button', { name: 'CSV-Spalten festlegen' }).click();
  await dialog.getByRole('button', { name: 'Vorschau' }).click();
  await dialog.getByRole('cell', { name: /12,90/ }).waitFor();
  assert.deepEqual(faults, []);
});
