import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { codeOf, PASSWORD } from '../support/browser.ts';
import { newPage, type OpenPage, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, opens } from '../support/console.scene.ts';

/** The work with money in the console, from the invitation of a person to the payout. */

const skip = await whyNoBrowser();

/** Presses a button, and one of the dialog, which usually has the same name. */
async function does(page: Page, name: string, fields: Readonly<Record<string, string>> = {}, button = name) {
  await page.getByRole('main').getByRole('button', { name, exact: true }).click();
  await confirms(page, button, fields);
}

/** @param button of the dialog */
async function confirms(page: Page, button: string, fields: Readonly<Record<string, string>> = {}) {
  const dialog = page.getByRole('dialog');
  for (const [label, value] of Object.entries(fields))
    await dialog.getByLabel(new RegExp(`^${label}`)).fill(value);
  await dialog.getByRole('button', { name: button, exact: true }).click();
  return dialog;
}

/** Approves a proposal of another person. */
async function approves(page: Page, title: string) {
  await goes(page, '/approvals');
  await page.getByRole('row', { name: title }).click();
  // The page may show an earlier approval: the answer tells that this one is done.
  const answer = page.waitForResponse((response) => response.url().endsWith('/approve'));
  await does(page, 'Approve');
  assert.equal((await answer).status(), 200);
  await page.getByText('Approved', { exact: true }).first().waitFor();
}

/** Disputes the latest settlement, in three clicks from the overview of the portal. */
async function disputes({ page, faults }: OpenPage) {
  await page.goto('/portal/');
  await ready(page, 'Overview');
  await page.getByRole('link', { name: 'Latest settlement' }).click();
  await does(page, 'Dispute', { Comment: 'A sale is missing.' });
  await page.getByRole('cell', { name: 'A sale is missing.' }).waitFor();
  assert.deepEqual(faults, []);
}

/** Makes the payout file from a CSV of accounts, and checks its amount. */
async function makesPayoutFile(page: Page, merchantId: string) {
  await page.getByRole('main').getByRole('button', { name: 'Make a payout file' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('combobox', { name: 'Format' }).click();
  await page.getByRole('option', { name: 'pain.001 (XML)' }).click();
  const accounts = `merchantId,name,iban,bic\n${merchantId},Shop,DE89370400440532013000,\n`;
  const file = { name: 'accounts.csv', mimeType: 'text/csv', buffer: Buffer.from(accounts) };
  await dialog.locator('input[type=file]').setInputFiles(file);
  await dialog.getByLabel('Payer').fill('Operator Ltd');
  await dialog.getByLabel('Your IBAN').fill('DE89 3704 0044 0532 0130 00');
  const [payout] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('button', { name: 'Make a payout file' }).click(),
  ]);
  const text = await readFile(await payout.path(), 'utf8');
  assert.match(text, /<InstdAmt Ccy="USD">97\.10<\/InstdAmt>/);
}

test('an invited person enrolls and signs in', { skip }, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const { page, faults } = await opens(browser, stage, stage.owner, '/users');
  await page.getByRole('button', { name: 'Invite', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Email').fill('grace@example.com');
  await dialog.getByRole('checkbox', { name: 'Support' }).check();
  await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
  const first = await dialog.locator('pre').innerText();
  assert.ok(first.startsWith(stage.listening.baseUrl), first);

  // Who lost the link gets another one, and the first is void.
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Actions: grace@example.com' }).click();
  await page.getByRole('menuitem', { name: 'New link' }).click();
  await dialog.getByRole('button', { name: 'New link' }).click();
  await dialog.locator('pre').waitFor();
  const link = await dialog.locator('pre').innerText();
  assert.notEqual(link, first);

  const { page: theirs, faults: others } = await newPage(browser, stage.listening);
  await theirs.goto(link);
  await theirs.getByLabel('Your name').fill('Grace Hopper');
  await theirs.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
  const secret = await theirs.locator('pre').innerText();
  const code = () => codeOf(secret, stage.listening.clock.now());
  await theirs.getByLabel('Six digits').fill(code());
  await theirs.getByRole('button', { name: 'Finish' }).click();
  await theirs.getByRole('heading', { name: 'Recovery codes' }).waitFor();
  assert.equal((await theirs.locator('pre').innerText()).trim().split('\n').length, 10);
  const [kept] = await Promise.all([
    theirs.waitForEvent('download'),
    theirs.getByRole('button', { name: 'Download' }).click(),
  ]);
  assert.equal(kept.suggestedFilename(), 'scrip-recovery-codes.txt');
  await theirs.getByRole('button', { name: /stored them/ }).click();
  await ready(theirs, 'Overview');
  await theirs.getByRole('button', { name: 'My account' }).click();
  await theirs.getByRole('menuitem', { name: 'Sign out' }).click();

  stage.listening.clock.advance(30_000);
  await theirs.getByLabel('Email').fill('grace@example.com');
  await theirs.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
  await theirs.getByRole('button', { name: 'Continue' }).click();
  await theirs.getByLabel('Six digits').fill(code());
  await theirs.getByRole('button', { name: 'Continue' }).click();
  await ready(theirs, 'Overview');
  assert.deepEqual([...faults, ...others], []);
});

test('support finds a voucher by its masked code, and corrects a redemption', { skip }, async (t) => {
  const stage = await openStage(t);
  const { scene, listening } = stage;
  const somebody = await stage.join('support');
  const { page, faults } = await opens(openBrowser(t), stage, somebody, '/');
  const { items } = (await stage.ask(stage.owner, '/vouchers')) as { items: Record<string, string>[] };
  const voucher = items.find(({ state }) => state === 'ACTIVE') ?? assert.fail('no voucher is active');
  const search = page.getByRole('textbox', { name: 'Search' });
  await search.fill(String(voucher['voucherCode']));
  await search.press('Enter');
  await page.waitForURL(`**/vouchers/${voucher['serialNumber']}`);
  await page.getByText('USD 19.90').first().waitFor();
  // Every second factor is older than five minutes now.
  await scene.ledger.at(new Date(listening.clock.now().getTime() + 6 * 60_000));
  const sale = (await stage.ask(stage.owner, `/transactions?serialNumber=${voucher['serialNumber']}`)) as {
    items: { kind: string; transactionId: string }[];
  };
  const redemption = sale.items.find(({ kind }) => kind === 'REDEMPTION')?.transactionId;
  await goes(page, `/transactions/${redemption}`);
  // Support proposes; the owner approves.
  await does(page, 'Correct', { Amount: '30', Reason: 'The customer gave one back.' }, 'Propose');
  await page.getByRole('dialog').getByText('Proposed').waitFor();
  assert.deepEqual(faults, []);
  const owner = await opens(openBrowser(t), stage, stage.owner, '/approvals');
  await owner.page.getByRole('row', { name: /Redemption: Correct/ }).click();
  await ready(owner.page);
  await does(owner.page, 'Approve');
  const code = owner.page.getByLabel('Six digits');
  await code.fill(stage.owner.person.code(listening.clock.now()));
  await owner.page.getByRole('button', { name: 'Confirm' }).click();
  await owner.page.getByText('Approved', { exact: true }).first().waitFor();
  await goes(owner.page, `/vouchers/${voucher['serialNumber']}`);
  await owner.page.getByText('USD 30.00').first().waitFor();
});

test('finance closes a day, and two people draft, approve and pay a settlement', { skip }, async (t) => {
  const stage = await openStage(t, { isClosed: false });
  const browser = openBrowser(t);
  const [ada, bob] = [await stage.join('finance'), await stage.join('finance')];
  const { page, faults } = await opens(browser, stage, ada, '/books');
  // A transaction of another test on the same server may delay the close.
  for (const closed = page.getByText('1 day was closed.'); !(await closed.isVisible()); ) {
    await does(page, 'Close days');
    await page.getByText(/was closed|was due/).waitFor();
  }
  await goes(page, '/settlements');
  await page.getByRole('button', { name: 'Create draft' }).first().click();
  await page.getByRole('dialog').getByRole('combobox', { name: 'Merchant' }).click();
  await page.getByRole('option', { name: `(${stage.scene.shop.merchant.id})` }).click();
  await confirms(page, 'Create draft');
  await ready(page, 'Draft');
  const path = new URL(page.url()).pathname.replace('/console', '');

  const second = await opens(browser, stage, bob, '/approvals');
  await does(page, 'Approve');
  await page.getByRole('dialog').getByText('Proposed', { exact: true }).waitFor();
  // Its maker can withdraw it, but not approve it.
  await goes(page, '/approvals?tab=mine');
  await page.getByRole('row', { name: 'Settlement: Approve' }).click();
  await page.getByRole('button', { name: 'Withdraw' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Approve' }).count(), 0);
  await approves(second.page, 'Settlement: Approve');

  await goes(second.page, path);
  const [statement] = await Promise.all([
    second.page.waitForEvent('download'),
    second.page.getByRole('link', { name: 'Download PDF' }).click(),
  ]);
  assert.match(statement.suggestedFilename(), /^settlement-.+\.pdf$/);
  await second.page.getByText('each of their redemptions is in exactly one settlement').waitFor();
  const [proof] = await Promise.all([
    second.page.waitForEvent('download'),
    second.page.getByRole('link', { name: 'Proof' }).click(),
  ]);
  assert.match(proof.suggestedFilename(), /^settlement-.+\.json$/);
  await makesPayoutFile(second.page, stage.merchantId);
  await goes(second.page, '/settlements');
  const files = second.page.getByRole('region', { name: 'Payout files' });
  await files.getByRole('cell', { name: /^\d+-2026-0001$/ }).waitFor();
  await goes(second.page, path);
  await does(second.page, 'Record payment', {
    'Bank reference': 'transfer 81',
    Reference: 'payout 1',
    'Value date': '2026-03-02',
  });
  await second.page.getByRole('dialog').getByText('Proposed', { exact: true }).waitFor();
  await approves(page, 'Settlement: Record payment');
  await goes(page, path);
  await page.getByText('Paid', { exact: true }).first().waitFor();
  const number = await page.getByRole('heading', { level: 1 }).innerText();
  await disputes(await pageOf(browser, stage.listening, (await stage.join('owner', true)).browser));
  await goes(page, path);
  await does(page, 'Answer', { Comment: 'It is on the next statement.' });
  await page.getByRole('cell', { name: 'It is on the next statement.' }).waitFor();
  await goes(page, '/audit?action=settlement.paid');
  await page.getByRole('link', { name: `Settlement ${number.split(/\s/)[0]}` }).click();
  await ready(page);
  assert.match(page.url(), new RegExp(`${path}$`));
  assert.deepEqual([...faults, ...second.faults], []);
});
