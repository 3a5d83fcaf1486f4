import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildServer } from '../../src/http/server.ts';
import { accept, invited, PASSWORD } from '../support/browser.ts';
import { arrive, newPage, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, opened, openStage } from '../support/console.scene.ts';

/** Failures in the middle of work: no input is lost, and nothing is done twice. */

const skip = await whyNoBrowser();

test('a form keeps its input without a network, and books once if an answer is lost', { skip }, async (t) => {
  const { page } = await opened(t, ({ merchantId }) => `/merchants/${merchantId}`);
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
  const { promise: lost, resolve: lose } = Promise.withResolvers<void>();
  await page.route('**/floats/top-up', async (route) => {
    assert.equal((await arrive(route)).status(), 200);
    await route.abort();
    lose();
  });
  await send();
  // The message of the first attempt may still be there.
  await lost;
  await dialog.getByText('Your input is kept').waitFor();
  await page.unroute('**/floats/top-up');
  await send();
  await page.getByRole('region', { name: 'Float' }).getByText('USD 12.50').waitFor();
});

test('a page at rest says that the service is away, and shows the news when it is back', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const first = buildServer(stage.listening.service);
  const baseUrl = await first.listen({ host: '127.0.0.1', port: 0 });
  const at = { ...stage.listening, baseUrl };
  const { page } = await pageOf(openBrowser(t), at, stage.owner.browser);
  const goesAway = page.getByText('The service does not answer.');
  await goes(page, '/products/DEFAULT');
  await first.close();
  await goesAway.waitFor();
  const changed = await stage.owner.browser.send('PATCH', '/products/DEFAULT', { name: 'Gift card' });
  assert.equal(changed.status, 200, changed.text);
  const second = buildServer(stage.listening.service);
  t.after(() => second.close());
  await second.listen({ host: '127.0.0.1', port: Number(new URL(baseUrl).port) });
  await goesAway.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { level: 1, name: 'Gift card' }).waitFor();
  await page.context().setOffline(true);
  await goesAway.waitFor();
  await page.context().setOffline(false);
  await goesAway.waitFor({ state: 'hidden' });
});

test('a person without a session is asked to sign in, and led to the page that was asked for', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { listening, owner } = stage;
  const { page } = await newPage(openBrowser(t), listening);
  await page.clock.setFixedTime(listening.clock.now());
  await page.goto('/console/merchants?state=active');
  await page.getByLabel('Email').fill(owner.person.email);
  await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByLabel('Six digits').fill(owner.person.code(listening.clock.now()));
  await page.getByRole('button', { name: 'Continue' }).click();
  await ready(page, 'Merchants');
  assert.equal(new URL(page.url()).search, '?state=active');
});

test('a form keeps its input when the session ends', { skip }, async (t) => {
  const stage = await openStage(t);
  const { listening } = stage;
  const somebody = await stage.join('owner');
  const { merchantId } = stage;
  const { page } = await pageOf(openBrowser(t), listening, somebody.browser);
  await goes(page, `/merchants/${merchantId}`);
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

test('a form keeps its input while another tab signs out, and in again', { skip }, async (t) => {
  const stage = await openStage(t);
  const { listening, merchantId } = stage;
  const { page } = await pageOf(openBrowser(t), listening, stage.owner.browser);
  await goes(page, `/merchants/${merchantId}`);
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog', { name: 'Top up' });
  await dialog.getByLabel('Amount').fill('7');
  const cookies = await page.context().cookies();
  await page.context().clearCookies();
  await dialog.getByRole('button', { name: 'Top up' }).click();
  const again = page.getByRole('dialog', { name: /session has ended/ });
  await again.waitFor();
  // As the other tab has signed in, and this one is looked at again.
  await page.context().addCookies(cookies);
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
  await again.waitFor({ state: 'hidden' });
  assert.equal(await dialog.getByLabel('Amount').inputValue(), '7');
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await page.getByRole('region', { name: 'Float' }).getByText('USD 7.00').waitFor();
});

test('a page asks before what was typed in it is lost, and its button keeps the focus', {
  skip,
}, async (t) => {
  const { page, stage } = await opened(t, '/vouchers');
  await page.getByRole('main').getByText('Change many').click();
  const serials = page.getByLabel('Serial numbers');
  await serials.fill(String(stage.sold.serial));
  const asked: string[] = [];
  page.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.dismiss();
  });
  await page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: 'Batches' }).click();
  assert.deepEqual(asked, ['confirm']);
  assert.equal(await serials.inputValue(), String(stage.sold.serial));
  const preview = page.getByRole('button', { name: 'Preview' });
  await preview.focus();
  await page.keyboard.press('Enter');
  await page.getByText(/^Of 1 /).waitFor();
  await preview.and(page.locator(':focus')).waitFor();
  await page.getByRole('button', { name: /^Block: 1/ }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Block: 1/ })
    .click();
  // Once the change is sent, the page is left without a question.
  await page.waitForURL('**/console/jobs/*');
  assert.deepEqual(asked, ['confirm']);
});

test('a form keeps its input after a conflict, and a right-to-left name of 200 letters fits the page', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.setViewportSize({ width: 360, height: 740 });
  await goes(page, '/products/DEFAULT');
  await page.getByRole('button', { name: 'Edit' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Valid for').fill('400');
  const name = 'قسيمة هدية '.repeat(19).slice(0, 199).trim();
  const changed = await stage.owner.browser.send('PATCH', '/products/DEFAULT', { name });
  assert.equal(changed.status, 200, changed.text);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('Somebody else has changed this').waitFor();
  assert.equal(await dialog.getByLabel('Valid for').inputValue(), '400');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { level: 1, name: name.slice(0, 30) }).waitFor();
  await page.getByText('400', { exact: true }).waitFor();
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  assert.deepEqual(faults, []);
});

test('a name and a search of many letters without a space fit the page', { skip }, async (t) => {
  const stage = await openStage(t);
  const { issuer } = stage.scene;
  const name = 'x'.repeat(180);
  const renamed = await stage.owner.browser.send('PATCH', `/merchants/${issuer.merchant.id}`, { name });
  assert.equal(renamed.status, 200, renamed.text);
  const { items } = (await stage.ask(stage.owner, '/batches')) as { items: { transactionId: string }[] };
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await page.setViewportSize({ width: 360, height: 740 });
  for (const path of [`/batches/${items[0]?.transactionId}`, `/search?text=${name}`]) {
    await goes(page, path);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360, path);
  }
});

test('a German page says in German what failed, and below it the sentence of the service', {
  skip,
}, async (t) => {
  const { page } = await opened(t, ({ merchantId }) => `/merchants/${merchantId}`, {
    locale: 'de-DE',
  });
  await page.getByRole('button', { name: 'Aufladen' }).click();
  const dialog = page.getByRole('dialog', { name: 'Aufladen' });
  await dialog.getByLabel('Betrag').fill('0,00001');
  await dialog.getByRole('button', { name: 'Aufladen' }).click();
  const alert = dialog.getByRole('alert');
  await alert.getByText('Prüfen Sie die Felder').waitFor();
  await alert.getByText('muss größer als 0 sein').waitFor();
  assert.doesNotMatch(await alert.innerText(), /invalid|amount/i);
  const answer = { status: 409, json: { code: 'conflict', detail: 'A sentence of the service.' } };
  await page.route('**/floats/top-up', (route) => route.fulfill(answer), { times: 1 });
  await dialog.getByRole('button', { name: 'Aufladen' }).click();
  await alert.getByText('Im jetzigen Zustand geht das nicht').waitFor();
  assert.equal(await alert.locator('[lang=en]').innerText(), 'A sentence of the service.');
  // A pasted amount keeps its comma.
  await dialog.getByLabel('Betrag').fill('12,50');
  await dialog.getByRole('button', { name: 'Aufladen' }).click();
  await page.getByRole('region', { name: 'Prepaid-Konten' }).getByText('12,50').waitFor();
});

test('a link that was used says so, and leads to the sign-in', { skip }, async (t) => {
  const { listening } = await openStage(t);
  const { token } = await invited(listening.service, { email: 'new@example.com', roles: ['support'] });
  await accept(listening, token);
  const { page } = await newPage(openBrowser(t), listening, { locale: 'de-DE' });
  const used = page.getByText('Dieser Link wurde schon benutzt oder ist abgelaufen.');
  await page.goto(`/console/sign-in#${token}`);
  await used.waitFor();
  await page.goto(`/console/enroll#${token}`);
  await used.waitFor();
  await page.getByRole('button', { name: 'Anmelden' }).click();
  await page.getByRole('button', { name: 'Eingabe zeigen' }).waitFor();
});

test('a report that cannot be made says why in the language of the page', { skip }, async (t) => {
  const stage = await openStage(t);
  const german = { locale: 'de-DE' };
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser, german);
  await goes(page, '/books/reports/general-ledger');
  const missing = page.getByRole('region', { name: 'Konten ohne Nummer' });
  await missing.getByRole('cell', { name: 'Abrechnungen' }).first().waitFor();
  await missing.getByRole('link', { name: 'Kontonummern' }).click();
  await page.getByText('Noch keine Regel.').first().waitFor();
  for (const [locale, words] of [
    ['de-DE', /Von\s+liegt außerhalb der Bücher, die vom [\d.]+ bis zum [\d.]+ reichen/],
    ['en-GB', /From\s+is outside of the books, which have the days from \d+\s\w+\s\d+ to/],
  ] as const) {
    const other = await pageOf(openBrowser(t), stage.listening, stage.owner.browser, { locale });
    await goes(other.page, '/books/reports/trial-balance?from=2020-01-01&to=2020-02-01');
    const alert = other.page.getByRole('alert').filter({ hasText: words });
    await alert.waitFor();
    assert.doesNotMatch(await alert.innerText(), /2020-01-01|the books have no day/);
  }
});

test('a report says which roles may read it', { skip }, async (t) => {
  const stage = await openStage(t);
  const somebody = await stage.join('support');
  const { page } = await pageOf(openBrowser(t), stage.listening, somebody.browser);
  await goes(page, '/books/reports/liability');
  await page.getByRole('alert').getByText('Your roles do not permit this').waitFor();
});

test('a German page says in German why the next day is not closed', { skip }, async (t) => {
  const { page } = await opened(t, '/books', {
    locale: 'de-DE',
    timezoneId: 'UTC',
  });
  await page.getByRole('main').getByRole('button', { name: 'Tage abschließen' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Tage abschließen' }).click();
  const said = page.getByText(
    /Der \d\d\.\d\d\.\d{4} kann ab \d\d\.\d\d\.\d{4}, \d\d:15 abgeschlossen werden\./,
  );
  await said.waitFor();
  assert.doesNotMatch(await said.innerText(), /T\d\d:|is due/);
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
  await goes(page, '/settings');
  await page.getByText('the bank was closed').waitFor();
  await page.getByText('and 2 more').click();
  await page.getByText('the owner was ill').waitFor();
  await page.getByText('a till stood still').waitFor();
});

test('a page whose files are away says so in the frame, and comes when they are back', {
  skip,
}, async (t) => {
  const { page } = await opened(t, '/merchants');
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

test('a page whose file another build has replaced is loaded with that build', { skip }, async (t) => {
  const { page } = await opened(t, '/merchants');
  let isAsked = false;
  await page.route(/\/vouchers-[^/]*\.js$/, (route) =>
    isAsked ? route.continue() : route.fulfill({ status: 404 }),
  );
  await page.route('**/console/vouchers', async (route) => {
    const answer = await route.fetch();
    const text = await answer.text();
    await route.fulfill({ response: answer, body: isAsked ? text : text.replace('/assets/', '/newer/') });
    isAsked = true;
  });
  await page.getByRole('navigation', { name: 'Menu' }).getByRole('link', { name: 'Vouchers' }).click();
  await ready(page, 'Vouchers');
});

test('the frame and the page stay while the files of its dialogs are away', { skip }, async (t) => {
  const { page } = await opened(t, '/merchants');
  const said = page.getByText('This part did not load');
  const title = page.getByRole('heading', { level: 1, name: 'Merchants' });
  const away = (url: URL) => /\/(keyboard|action-dialog)-[^/]*\.js$/.test(url.pathname);
  await page.route(away, (route) => route.abort());
  await page.keyboard.press('Shift+?');
  await said.waitFor();
  await title.waitFor();
  await said.waitFor({ state: 'hidden' });
  await page.getByRole('textbox', { name: 'Search' }).fill('invite');
  await page.getByRole('option', { name: 'User: Invite' }).click();
  await said.waitFor();
  await title.waitFor();
});

test('a page whose messages are away asks to be loaded again', { skip }, async (t) => {
  const { page } = await opened(t, '/merchants');
  await page.route(/\/messages-[^/]*\.js$/, (route) => route.abort());
  await page.keyboard.press('Tab');
  await page.getByText('This part did not load').waitFor();
  await page.unroute(/\/messages-[^/]*\.js$/);
  await page.reload();
  await ready(page, 'Merchants');
  await page.keyboard.press('Tab');
  await page.locator('.mantine-Notifications-root').first().waitFor({ state: 'attached' });
  assert.equal(await page.getByText('This part did not load').count(), 0);
});

test('the form of a top-up begins with the currency of the float', { skip }, async (t) => {
  const stage = await openStage(t);
  const { merchantId } = stage;
  const { page } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  await stage.ask(stage.owner, '/floats/top-up', {
    merchantId,
    amount: 5,
    currency: 'EUR',
    reference: 'one',
  });
  await goes(page, `/merchants/${merchantId}`);
  await page.getByRole('region', { name: 'Float' }).getByText('EUR 5.00').waitFor();
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog', { name: 'Top up' });
  assert.equal(await dialog.getByLabel('Currency').inputValue(), 'EUR');
  await dialog.getByLabel('Amount').fill('7');
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await page.getByRole('region', { name: 'Float' }).getByText('EUR 12.00').waitFor();
});
