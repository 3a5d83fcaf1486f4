import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BATCH_JOBS } from '../../src/batches/fill.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { enrolled, PASSWORD } from '../support/browser.ts';
import { inaccessible, newPage, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage } from '../support/console.scene.ts';
import { startListening } from '../support/harness.ts';

/** The work of operations and of a merchant in a browser. */

const skip = await whyNoBrowser();

test('operations orders 5,000 vouchers, and watches the progress', { skip }, async (t) => {
  const stage = await openStage(t);
  const { service } = stage.listening;
  const somebody = await stage.join('operations');
  const merchantId = String(stage.scene.issuer.merchant.id);
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 9_000, reference: 'paid in' });
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, somebody.browser);
  await goes(page, '/batches');
  await page.getByRole('button', { name: 'Order vouchers' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('combobox', { name: 'Merchant' }).click();
  await page.getByRole('option', { name: `(${merchantId})` }).click();
  await dialog.getByLabel('Quantity').fill('5000');
  await dialog.getByLabel('Value').fill('1.50');
  await dialog.getByText('5,000 × USD 1.50 = USD 7,500.00').waitFor();
  await dialog.getByLabel('Reference').fill('spring');
  await dialog.getByRole('button', { name: 'Order vouchers' }).click();
  await ready(page, 'spring');
  await page.getByText('0 of 5,000 vouchers produced').waitFor();
  const worker = startJobs(service, [BATCH_JOBS]);
  t.after(() => worker.stop());
  await page.reload();
  await page.getByText('Completed', { exact: true }).first().waitFor();
  await page.getByRole('region', { name: 'Vouchers' }).getByRole('cell').first().waitFor();
  assert.deepEqual(faults, []);
});

type Item = Readonly<Record<string, unknown>>;

const CSV =
  'Datum;Beleg;Betrag\r\n01.03.2026;sale 1;60,00\r\n01.03.2026;sale 2;41,10\r\n01.03.2026;sale 3;5,00\r\n';

test('a merchant checks a voucher, reconciles a file, and rotates a key', { skip }, async (t) => {
  const stage = await openStage(t);
  const { listening, merchantId } = stage;
  const merchant = await stage.join('owner', true);
  await stage.ask(stage.owner, '/api-keys', { merchantId });
  const { page, faults, sent } = await pageOf(openBrowser(t), listening, merchant.browser);
  await page.goto('/portal/check');
  await ready(page);
  const { code, pin } = stage.sold;
  await page.getByLabel('Code').fill(`${code.slice(0, 4)} ${code.slice(4, 8)} ${code.slice(8)}`);
  await page.getByLabel('PIN', { exact: false }).first().fill(pin);
  await page.getByRole('button', { name: 'Check', exact: true }).click();
  await page.getByText('USD 19.90').first().waitFor();
  assert.equal(await page.getByLabel('Code').inputValue(), '');

  // The till wrote UTF-16, as spreadsheets on Windows do; one amount differs, and one sale is not in Scrip.
  await page.goto('/portal/reconcile');
  await ready(page);
  const choose = (name: string, buffer: Buffer) =>
    page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer });
  await choose('till.xlsx', Buffer.from('PK\u0003\u0004'));
  await page.getByText('This is a workbook').waitFor();
  await choose('till.csv', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(CSV, 'utf16le')]));
  await page.getByText('3 rows in the file.').waitFor();
  await page
    .getByRole('banner')
    .getByText(String(((await stage.ask(merchant, '/session'))['user'] as Item)['merchantName']))
    .waitFor();
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.getByText('1 agree. These differ:').waitFor();
  await page.getByRole('region', { name: 'Missing in Scrip (1)' }).getByText('sale 3').waitFor();
  await page.getByRole('region', { name: 'Different amounts (1)' }).getByText('sale 2').waitFor();
  assert.ok(!sent.some((each) => each.includes('sale 3')), 'the file stays in the browser');
  await choose('till.csv', Buffer.from(CSV.replace('5,00', 'five')));
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.getByText('Line 4: “five” is not an amount.').waitFor();

  await page.goto('/portal/keys');
  await ready(page);
  await page
    .getByRole('button', { name: /^Actions: key_/ })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Rotate' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Old key works for').fill('24h');
  await dialog.getByRole('button', { name: 'Rotate' }).click();
  await dialog.getByText('This is shown once').waitFor();
  assert.match(await dialog.locator('pre').last().innerText(), /\S{20,}/);
  assert.deepEqual(faults, []);
  await stage.ask(merchant, '/settlements');
});

test('before the sign-in, both pages name the operator, and have the language and the theme of their reader', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await newPage(openBrowser(t), stage.listening);
  await page.goto('/portal/sign-in');
  await page.getByText('Scrip', { exact: true }).waitFor();
  const sender = 'Vouchers & "Sons" <$& Ltd>';
  const sent = await stage.owner.browser.send('PATCH', '/settings/letterhead', { sender });
  assert.equal(sent.status, 200, sent.text);
  // A change is on the page within a second.
  while (!(await page.getByText(sender, { exact: true }).isVisible())) {
    await page.reload();
    await page.getByRole('button', { name: 'Dark' }).waitFor();
  }
  await page.getByRole('button', { name: 'Dark' }).click();
  await page.getByRole('button', { name: 'Deutsch' }).click();
  await page.reload();
  const dark = page.getByRole('button', { name: 'Dunkel', pressed: true });
  await dark.waitFor();
  const schemeOf = () => page.locator('html').getAttribute('data-mantine-color-scheme');
  assert.equal(await schemeOf(), 'dark');
  assert.deepEqual([...faults, ...(await inaccessible(page))], []);
  await page.getByRole('button', { name: 'Hell' }).click();
  assert.equal(await schemeOf(), 'light');
  await page.goto('/console/sign-in');
  await page.getByText(sender, { exact: true }).waitFor();
});

test('somebody with one address and password at two merchants chooses one to sign in', {
  skip,
}, async (t) => {
  const listening = await startListening();
  t.after(() => listening.stop());
  const email = 'both@example.com';
  const one = await listening.createMerchant({ name: 'One' });
  const two = await listening.createMerchant({ name: 'Second Shop' });
  await enrolled(listening, { email, roles: ['viewer'], merchantId: one.id });
  const { person } = await enrolled(listening, { email, roles: ['viewer'], merchantId: two.id });
  const { page, faults } = await newPage(openBrowser(t), listening);
  await page.goto('/portal/sign-in');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').first().fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
  const choice = page.getByLabel('You have an account at several merchants');
  await choice.selectOption('Second Shop');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Six digits').fill(person.code(listening.clock.now()));
  await page.keyboard.press('Enter');
  await page.getByText('Second Shop').first().waitFor();
  assert.deepEqual(faults, []);
});
