import assert from 'node:assert/strict';
import { test } from 'node:test';
import { enrolled, invited } from '../support/browser.ts';
import { inaccessible, newPage, openBrowser, ready, whyNoBrowser } from '../support/chromium.ts';
import { scene } from '../support/identity-provider.ts';

/** Single sign-on in a real browser, with a provider of another site. */

const skip = await whyNoBrowser();
const BUTTON = 'Continue with single sign-on';

test('a person signs in at a provider that asks for a second factor, and steps up there', {
  skip,
}, async (t) => {
  const { listening, account } = await scene(t);
  await invited(listening.service, {});
  const { page, faults } = await newPage(openBrowser(t), listening);
  await page.goto('/console/merchants');
  await ready(page, 'Sign in');
  assert.deepEqual(await inaccessible(page), []);
  await page.getByRole('button', { name: BUTTON }).click();
  // The page that was asked for first.
  await ready(page, 'Merchants');
  listening.clock.advance(6 * 60_000);
  account.authenticatedAt = listening.clock.now();
  await page.goto('/console/users');
  await ready(page, 'Users');
  await page.getByRole('button', { name: 'Invite', exact: false }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Email' }).fill('bob@example.com');
  await dialog.getByText('Support', { exact: true }).click();
  await dialog.getByRole('button', { name: 'Invite', exact: false }).click();
  const [window] = await Promise.all([
    page.context().waitForEvent('page'),
    dialog.getByRole('button', { name: BUTTON }).click(),
  ]);
  await window.getByText('It is confirmed.').waitFor();
  await window.close();
  await dialog.getByText('This is shown once').waitFor();
  assert.deepEqual(
    faults.filter((fault) => !fault.includes('403')),
    [],
  );
});

test('after a provider without a second factor, the page asks for that of Scrip', { skip }, async (t) => {
  const { listening, account } = await scene(t);
  const { person } = await enrolled(listening);
  account.amr = ['pwd'];
  const { page, faults } = await newPage(openBrowser(t), listening);
  await page.goto('/console/sign-in');
  await page.getByRole('button', { name: BUTTON }).click();
  const code = page.getByRole('textbox', { name: 'Six digits from your authenticator' });
  await code.fill(person.code(listening.clock.now()));
  await page.getByRole('button', { name: 'Continue', exact: true }).click();
  await ready(page, 'Overview');
  assert.deepEqual(faults, []);
});

test('somebody who was not invited reads why, in the page of the sign-in', { skip }, async (t) => {
  const { listening } = await scene(t);
  const { page } = await newPage(openBrowser(t), listening);
  await page.goto('/console/sign-in');
  await page.getByRole('button', { name: BUTTON }).click();
  await page.getByText('Nobody was invited under this account.').waitFor();
  await page.getByRole('button', { name: BUTTON }).waitFor();
  assert.deepEqual(await inaccessible(page), []);
});
