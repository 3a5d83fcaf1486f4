import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { opened, openStage, opens } from '../support/console.scene.ts';

/** Other ways to use the console: on paper, on a narrow screen, and by several people in one browser. */

const skip = await whyNoBrowser();

test('a printed report is complete and dark on white, without the frame', { skip }, async (t) => {
  const { page } = await opened(t, '/books/reports/outstanding');
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  // The width of A4 without its margins.
  await page.setViewportSize({ width: 680, height: 960 });
  await page.getByRole('cell').first().waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Search' }).isVisible(), false);
  assert.equal(await page.getByRole('button', { name: /Export/ }).isVisible(), false);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 680, 'nothing is cut off');
  assert.equal(await page.evaluate("getComputedStyle(document.querySelector('td')).color"), 'rgb(0, 0, 0)');
});

test('16 digits in a filter are not sent, and stand in no address', { skip }, async (t) => {
  const { page, sent } = await opened(t, '/transactions');
  const filter = page.getByRole('textbox', { name: 'Serial number' });
  for (const typed of ['1234567890123456', '1234 5678 9012 3456']) {
    await filter.fill(typed);
    await filter.press('Enter');
    await page.getByText('They were not sent').waitFor();
    assert.equal(await filter.inputValue(), '');
  }
  await filter.fill('1234567890123456');
  await filter.blur();
  await page.getByText('They were not sent').waitFor();
  assert.doesNotMatch([page.url(), ...sent].join('\n').replace(/[+\s-]|%20/g, ''), /1234567890123456/);
});

test('what is no serial number is not sent to a preview of many changes', { skip }, async (t) => {
  const { stage, page, sent } = await opened(t, '/vouchers/bulk');
  const serials = page.getByRole('textbox', { name: 'Serial numbers' });
  const preview = page.getByRole('button', { name: 'Preview' });
  await serials.fill(`${stage.sold.serial}\nabc`);
  await preview.click();
  await page.getByText('“abc” is not a serial number').waitFor();
  await serials.fill(`${stage.sold.serial}\n1234567890123456`);
  await preview.click();
  await page.getByText('They were not sent').waitFor();
  assert.doesNotMatch(sent.join('\n'), /1234567890123456|bulk\/preview/);
  await serials.fill(String(stage.sold.serial));
  await preview.click();
  await page.getByText('Of 1 voucher,').waitFor();
});

test('a full code that is searched stays out of the address and the history', { skip }, async (t) => {
  const { stage, page } = await opened(t, '/merchants');
  for (const code of [stage.sold.code, '999999999999']) {
    await page.getByRole('textbox', { name: 'Search' }).fill(code);
    await page.keyboard.press('Enter');
    if (code === stage.sold.code) await page.waitForURL(`**/vouchers/${stage.sold.serial}`);
    else await page.getByText('Nothing was found').waitFor();
    const kept = await page.evaluate<string>('location.href + JSON.stringify(history.state)');
    assert.doesNotMatch(kept, new RegExp(code));
  }
});

test('a token that was found leads to its row by its first characters, and is not sent', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { token } = await stage.ask(stage.owner, '/tokens', { name: 'nightly', roles: ['auditor'] });
  const { page, sent } = await opens(openBrowser(t), stage, stage.owner, '/merchants');
  await page.getByRole('textbox', { name: 'Search' }).fill(String(token));
  await page.keyboard.press('Enter');
  await page.getByRole('row', { name: 'nightly' }).waitFor();
  await page.getByLabel('Begins with').fill(String(token));
  await page.keyboard.press('Tab');
  assert.doesNotMatch([page.url(), ...sent].join('\n'), new RegExp(String(token).slice(0, 11)));
});

test('a tab shows nothing of a person in whose place another one has signed in', { skip }, async (t) => {
  const stage = await openStage(t);
  const support = await stage.join('support');
  const { page } = await opens(openBrowser(t), stage, stage.owner, '/users');
  await page
    .getByRole('cell', { name: /owner-/ })
    .first()
    .waitFor();
  const other = await pageOf(openBrowser(t), stage.listening, support.browser);
  await page.context().clearCookies();
  await page.context().addCookies(await other.page.context().cookies());
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
  await page.getByText('Your roles do not permit this').waitFor();
  await page.getByRole('button', { name: 'My account' }).click();
  await page.getByText(support.person.email).waitFor();
});

test('the menu of a narrow screen closes with Escape', { skip }, async (t) => {
  const { page } = await opened(t, '/merchants');
  await page.setViewportSize({ width: 360, height: 740 });
  const menu = page.getByRole('button', { name: 'Menu' });
  await menu.click();
  const vouchers = page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: 'Vouchers' });
  await vouchers.waitFor();
  await page.keyboard.press('Escape');
  await vouchers.waitFor({ state: 'hidden' });
});

test('a new merchant reads in its portal what it has not yet, and why', { skip }, async (t) => {
  const stage = await openStage(t);
  const { id } = await stage.ask(stage.owner, '/merchants', { name: 'متجر جديد' });
  const fresh = await stage.join('owner', true, Number(id));
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, fresh.browser);
  await page.goto('/portal/');
  await ready(page);
  await page.getByText('Nothing has been paid in yet.').waitFor();
  await page.goto('/portal/settlements');
  await page.getByText('Your operator makes one at the end of each period.').waitFor();
  assert.deepEqual(faults, []);
});

test('a field that may be left empty is sent as none', { skip }, async (t) => {
  const stage = await openStage(t);
  const { merchantId } = stage;
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 5, reference: 'one' });
  const { page } = await opens(openBrowser(t), stage, stage.owner, `/merchants/${merchantId}`);
  await page.getByRole('main').getByRole('button', { name: 'Actions' }).click();
  await page.getByRole('menuitem', { name: 'Set the threshold' }).click();
  const dialog = page.getByRole('dialog', { name: 'Set the threshold' });
  const answer = page.waitForResponse((response) => response.request().method() === 'POST');
  await dialog.getByRole('button', { name: 'Set the threshold' }).click();
  assert.equal((await answer).request().postDataJSON().below, null);
  await dialog.waitFor({ state: 'hidden' });
});

test('a form asks for what the roles of the person may send', { skip }, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const operations = await opens(browser, stage, await stage.join('operations'), '/merchants');
  await operations.page.getByRole('button', { name: 'Create merchant' }).first().click();
  const made = operations.page.getByRole('dialog', { name: 'Create merchant' });
  await made.getByRole('textbox', { name: 'Name' }).waitFor();
  assert.equal(await made.getByRole('textbox', { name: 'First top-up' }).count(), 0);

  const { page } = await opens(browser, stage, stage.owner, '/users');
  await page.getByRole('button', { name: 'Invite' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Invite' });
  await dialog.getByRole('checkbox', { name: 'Auditor' }).check();
  assert.equal(await dialog.getByRole('checkbox', { name: 'Cashier' }).count(), 0);
  await dialog.getByRole('combobox', { name: 'Merchant' }).click();
  await page.getByRole('option', { name: `(${stage.merchantId})` }).click();
  await dialog.getByRole('checkbox', { name: 'Cashier' }).check();
  // What a merchant's person cannot be is no longer chosen.
  assert.equal(await dialog.getByRole('checkbox', { name: 'Auditor' }).count(), 0);
  const proposed = page.waitForRequest((request) => request.method() === 'POST');
  await dialog.getByRole('textbox', { name: 'Email' }).fill('bea@example.com');
  await dialog.getByRole('button', { name: 'Invite' }).click();
  assert.deepEqual((await proposed).postDataJSON().roles, ['cashier']);
});
