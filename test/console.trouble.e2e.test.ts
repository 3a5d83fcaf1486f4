import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PASSWORD } from './browser.ts';
import { openBrowser, pageOf, ready, whyNoBrowser } from './chromium.ts';
import { openStage } from './console.scene.ts';

/** Failures in the middle of work: no input is lost, and nothing is done twice. */

const skip = await whyNoBrowser();

test('a form keeps its input without a network, and books once if an answer is lost', { skip }, async (t) => {
  const stage = await openStage(t);
  const merchantId = String(stage.scene.shop.merchant.id);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.goto(`/console/merchants/${merchantId}`);
  await ready(page);
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog');
  const send = () => dialog.getByRole('button', { name: 'Top up' }).click();
  await dialog.getByLabel('Amount').fill('12.5');
  await page.route('**/floats/top-up', (route) => route.abort());
  await send();
  await dialog.getByText('Your input is kept').waitFor();
  assert.equal(await dialog.getByLabel('Amount').inputValue(), '12.5');
  // The request arrives, but its answer is lost: the form sends the same request again.
  await page.unroute('**/floats/top-up');
  await page.route('**/floats/top-up', async (route) => {
    await route.fetch();
    await route.abort();
  });
  await send();
  await dialog.getByText('Your input is kept').waitFor();
  await page.unroute('**/floats/top-up');
  await send();
  await page.getByRole('region', { name: 'Float' }).getByText('USD 12.50').waitFor();
});

test('a form keeps its input when the session ends', { skip }, async (t) => {
  const stage = await openStage(t);
  const { listening } = stage;
  const somebody = await stage.join('owner');
  const merchantId = String(stage.scene.shop.merchant.id);
  const { page } = await pageOf(openBrowser(t), listening, somebody.browser);
  await page.goto(`/console/merchants/${merchantId}`);
  await ready(page);
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog', { name: 'Top up' });
  await dialog.getByLabel('Amount').fill('7');
  await stage.ask(stage.owner, `/users/${somebody.person.id}/end-sessions`, {});
  await dialog.getByRole('button', { name: 'Top up' }).click();
  const again = page.getByRole('dialog', { name: /session has ended/ });
  await again.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
  await again.getByRole('button', { name: 'Continue' }).click();
  await again.getByLabel('Six digits').fill(somebody.person.code(listening.clock.now()));
  await again.getByRole('button', { name: 'Continue' }).click();
  await again.waitFor({ state: 'hidden' });
  assert.equal(await dialog.getByLabel('Amount').inputValue(), '7');
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await page.getByRole('region', { name: 'Float' }).getByText('USD 7.00').waitFor();
});

test('a form keeps its input after a conflict, and a right-to-left name of 200 letters fits the page', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto('/console/products/DEFAULT');
  await ready(page);
  await page.getByRole('button', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Valid for').fill('400');
  const name = 'قسيمة هدية '.repeat(19).slice(0, 199).trim();
  const changed = await stage.owner.browser.send('PATCH', '/products/DEFAULT', { name });
  assert.equal(changed.status, 200, changed.text);
  await dialog.getByRole('button', { name: 'Edit' }).click();
  await dialog.getByText('Somebody else has changed this').waitFor();
  assert.equal(await dialog.getByLabel('Valid for').inputValue(), '400');
  await dialog.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('heading', { level: 1, name: name.slice(0, 30) }).waitFor();
  await page.getByText('400', { exact: true }).waitFor();
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(faults, []);
});

test('a German page says in German what failed, and below it the sentence of the service', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const merchantId = String(stage.scene.shop.merchant.id);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser, {
    locale: 'de-DE',
  });
  await page.goto(`/console/merchants/${merchantId}`);
  await ready(page);
  await page.getByRole('button', { name: 'Aufladen' }).click();
  const dialog = page.getByRole('dialog', { name: 'Aufladen' });
  await dialog.getByLabel('Betrag').fill('0,00001');
  await dialog.getByRole('button', { name: 'Aufladen' }).click();
  const alert = dialog.getByRole('alert');
  await alert.getByText('Prüfen Sie die Felder').waitFor();
  await alert.getByText('muss größer als 0 sein').waitFor();
  assert.match(await alert.locator('[lang=en]').innerText(), /invalid|amount/i);
  // A pasted amount keeps its comma.
  await dialog.getByLabel('Betrag').fill('12,50');
  await dialog.getByRole('button', { name: 'Aufladen' }).click();
  await page.getByRole('region', { name: 'Guthaben' }).getByText('12,50').waitFor();
});

test('a banner lists every change that was made without a second person', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  const at = stage.listening.clock.now().toISOString();
  const broken = {
    occurredAt: at,
    until: at,
    actor: 'root',
    origin: 'a command line',
    subject: 'merchant 1',
  };
  const items = ['the bank was closed', 'the owner was ill', 'a till stood still'].map((reason, index) => ({
    ...broken,
    sequence: String(9 - index),
    action: 'float.top-up',
    reason,
  }));
  await page.route('**/audit/break-glass', (route) => route.fulfill({ json: { items, nextCursor: null } }));
  await page.goto('/console/settings');
  await ready(page);
  await page.getByText('the bank was closed').waitFor();
  await page.getByText('and 2 more').click();
  await page.getByText('the owner was ill').waitFor();
  await page.getByText('a till stood still').waitFor();
});

test('a page whose files are away says so in the frame, and comes when they are back', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.goto('/console/merchants');
  await ready(page);
  await page.route('**/console/**', (route) => route.abort());
  const menu = page.getByRole('navigation', { name: 'Menu' });
  await menu.getByRole('link', { name: 'Vouchers' }).click();
  const main = page.getByRole('main');
  await main.getByText('The service did not answer').waitFor();
  await main.getByRole('button', { name: 'Try again' }).click();
  await menu.getByRole('link', { name: 'Vouchers' }).waitFor();
  await page.unroute('**/console/**');
  await main.getByRole('button', { name: 'Try again' }).click();
  await ready(page, 'Vouchers');
});

test('the form of a top-up begins with the currency of the float', { skip }, async (t) => {
  const stage = await openStage(t);
  const merchantId = String(stage.scene.shop.merchant.id);
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await stage.ask(stage.owner, '/floats/top-up', {
    merchantId,
    amount: 5,
    currency: 'EUR',
    reference: 'one',
  });
  await page.goto(`/console/merchants/${merchantId}`);
  await ready(page);
  await page.getByRole('region', { name: 'Float' }).getByText('EUR 5.00').waitFor();
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog', { name: 'Top up' });
  assert.equal(await dialog.getByLabel('Currency').inputValue(), 'EUR');
  await dialog.getByLabel('Amount').fill('7');
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await page.getByRole('region', { name: 'Float' }).getByText('EUR 12.00').waitFor();
});
