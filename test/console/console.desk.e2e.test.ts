import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { strFromU8, unzipSync } from 'fflate';
import type { Download, Page } from 'playwright-core';
import { buildServer } from '../../src/http/server.ts';
import { groupOf } from '../../src/jobs/jobs.ts';
import { startJobs } from '../../src/jobs/queue.ts';
import { JOB_RUNS } from '../../src/operations/background.ts';
import { inaccessible, openBrowser, pageOf, whyNoBrowser } from '../support/chromium.ts';
import { goes, opened, openStage, opens } from '../support/console.scene.ts';

/** The daily work in the console: exports, terms, bulk changes; and a restart of the service. */

const skip = await whyNoBrowser();

const textOf = async (file: Download) => readFile(await file.path(), 'utf8');

/** The sheet of a workbook, as XML. */
async function sheetOf(file: Download): Promise<string> {
  const { 'xl/worksheets/sheet1.xml': sheet = new Uint8Array() } = unzipSync(
    await readFile(await file.path()),
  );
  return strFromU8(sheet);
}

const stringsOf = (sheet: string) => [...sheet.matchAll(/<t [^>]*>([^<]*)</g)].map(([, text]) => text);

/** The names of the buttons that open an export, and save it as CSV and as a workbook. */
type Buttons = readonly [RegExp, RegExp, RegExp];
const DIALOG: Buttons = [/^Export/, /^Download CSV$/, /^Download XLSX$/];
const GERMAN_DIALOG: Buttons = [/^Exportieren/, /^CSV herunterladen$/, /^XLSX herunterladen$/];
const MENU: Buttons = [/^Export/, /^CSV$/, /^XLSX$/];

/** Exports what the page lists. */
async function exportsOf(page: Page, [open, csv, xlsx]: Buttons) {
  const saved = async (kind: RegExp) => {
    await page.getByRole('button', { name: open }).click();
    const button = page.locator('[role=dialog] button, [role=menuitem]').getByText(kind);
    const [file] = await Promise.all([page.waitForEvent('download'), button.click()]);
    return file;
  };
  return { csv: await saved(csv), xlsx: await saved(xlsx) };
}

test('the export of a list holds all rows that match its filter', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  const serialNumber = String(stage.sold.serial);
  const path = `/transactions?serialNumber=${serialNumber}`;
  const { items } = (await stage.ask(stage.owner, path)) as { items: { transactionId: string }[] };
  await goes(page, path);
  await page.getByRole('button', { name: 'Export' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(`Rows that match the filters: ${items.length}`).waitFor();
  // Enter saves the file.
  await dialog.locator('button:focus', { hasText: 'Download CSV' }).waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  const { csv, xlsx } = await exportsOf(page, DIALOG);
  assert.equal(csv.suggestedFilename(), 'transactions.csv');
  const [head = '', ...lines] = (await textOf(csv)).trim().split(/\r?\n/);
  assert.match(head, /timestamp.*kind.*amount/);
  assert.equal(lines.length, items.length);
  for (const { transactionId } of items) assert.ok(lines.some((line) => line.includes(transactionId)));
  assert.equal(xlsx.suggestedFilename(), 'transactions.xlsx');
  const sheet = await sheetOf(xlsx);
  assert.equal(sheet.match(/<row /g)?.length, items.length + 1);
  // Amounts have the decimals of their currency.
  assert.match(sheet, /s="6"><v>\d+\.\d\d<\/v>/);

  await goes(page, '/books/reports/R1');
  const report = await exportsOf(page, MENU);
  assert.match(await sheetOf(report.xlsx), /s="6"><v>-?\d+\.\d\d<\/v>/);
  assert.deepEqual(faults, []);
});

test('a workbook is in the language of the page, and a CSV file is the same in all', { skip }, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const saved = async (locale: string, path: string, buttons: Buttons) => {
    const { page } = await opens(browser, stage, stage.owner, path, { locale });
    const { csv, xlsx } = await exportsOf(page, buttons);
    return { csv: await textOf(csv), texts: stringsOf(await sheetOf(xlsx)) };
  };
  const vouchers = '/vouchers';
  const [english, german] = [
    await saved('en-GB', vouchers, DIALOG),
    await saved('de-DE', vouchers, GERMAN_DIALOG),
  ];
  assert.equal(german.csv, english.csv);
  assert.match(english.csv, /^serialNumber,.*\bACTIVE\b/s);
  for (const text of ['Serial number', 'State', 'Active']) assert.ok(english.texts.includes(text), text);
  for (const text of ['Seriennummer', 'Zustand', 'Aktiv']) assert.ok(german.texts.includes(text), text);

  const balances = '/books/reports/trial-balance';
  const made = [await saved('en-GB', balances, MENU), await saved('de-DE', balances, MENU)] as const;
  assert.equal(made[1].csv, made[0].csv);
  for (const text of ['Account', 'Opening balance']) assert.ok(made[0].texts.includes(text), text);
  for (const text of ['Konto', 'Anfangssaldo', 'Gutscheine']) assert.ok(made[1].texts.includes(text), text);
});

test('a view of a list is saved, opens elsewhere by its link, is exported, renamed and removed', {
  skip,
}, async (t) => {
  const { stage, page, faults } = await opened(t, '/merchants');
  const serialNumber = String(stage.sold.serial);
  await goes(page, `/transactions?serialNumber=${serialNumber}&columns=timestamp,amount`);
  await page.getByRole('button', { name: 'Columns' }).click();
  await page.getByRole('button', { name: 'Move up: Amount' }).click();
  assert.deepEqual(await inaccessible(page), []);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Save view' }).click();
  // A code is stored in no browser.
  await page.getByLabel('Name').fill('4829 1305 7641');
  assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), true);
  await page.getByLabel('Name').fill('One card');
  assert.deepEqual(await inaccessible(page), []);
  await page.keyboard.press('Enter');
  const link = page.getByRole('link', { name: 'One card' });
  const address = String(await link.getAttribute('href'));
  assert.equal(address, `/console/transactions?columns=amount%2Ctimestamp&serialNumber=${serialNumber}`);
  await page.getByRole('navigation', { name: 'Saved views' }).getByRole('link', { name: 'All' }).click();
  await page.getByRole('columnheader', { name: 'Reference' }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Serial number' }).inputValue(), '');

  const tab = await page.context().newPage();
  await tab.goto(address);
  await tab.getByRole('row').nth(1).waitFor();
  assert.deepEqual(await tab.getByRole('columnheader').allTextContents(), ['Amount', 'Time']);
  await tab.getByRole('button', { name: 'Export' }).click();
  const [file] = await Promise.all([
    tab.waitForEvent('download'),
    tab.getByRole('button', { name: 'Download CSV' }).click(),
  ]);
  assert.match(await textOf(file), /^amount,timestamp\r\n(-?[\d.]+,20\S+Z\r\n)+$/);
  await tab.getByRole('button', { name: 'Edit view' }).click();
  await tab.getByLabel('Name').fill('The card of today');
  await tab.keyboard.press('Enter');
  // The first tab follows, and the second one keeps what the first one saves.
  await page.getByRole('link', { name: 'The card of today' }).waitFor();
  await goes(page, `/transactions?merchantId=${stage.merchantId}`);
  await page.getByRole('button', { name: 'Save view' }).click();
  await page.getByLabel('Name').fill('Paid');
  await page.keyboard.press('Enter');
  await tab.getByRole('button', { name: 'Edit view' }).click();
  await tab.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('link', { name: 'The card of today' }).waitFor({ state: 'detached' });
  await tab.getByRole('link', { name: 'Paid' }).waitFor();
  assert.deepEqual(faults, []);
});

test('two people set the terms of a merchant, which the page shows with their currency', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const { merchantId } = stage;
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 5, reference: 'paid in' });
  const maker = await stage.join('finance');
  const { page, faults } = await pageOf(browser, stage.listening, maker.browser);
  await goes(page, `/merchants/${merchantId}?tab=terms`);
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Set terms' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('From').fill('2026-04-01');
  await dialog.getByLabel('Commission').fill('3.25');
  await dialog.getByLabel('Minimum payout').fill('25.00');
  await dialog.getByRole('button', { name: 'Set terms' }).click();
  await dialog.getByText('Proposed', { exact: true }).waitFor();
  const checker = await pageOf(browser, stage.listening, stage.owner.browser);
  await goes(checker.page, '/approvals');
  await checker.page.getByRole('row', { name: 'Settlement: Set terms' }).click();
  await checker.page.getByRole('main').getByRole('button', { name: 'Approve' }).click();
  await checker.page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await checker.page.getByText('Approved', { exact: true }).first().waitFor();
  await goes(page, `/merchants/${merchantId}?tab=terms`);
  const row = page.getByRole('row').filter({ hasText: '1 Apr 2026' });
  await row.getByText('3.25%').waitFor();
  await row.getByText('USD 25.00').waitFor();
  assert.deepEqual([...faults, ...checker.faults], []);
});

test('an auditor decides nothing; a person who decides alone approves an own proposal after the delay', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { scene, listening, owner, ask } = stage;
  const { merchantId } = stage;
  const changed = await owner.browser.send('PATCH', '/settings', { approvalMode: 'delay' });
  const { id } = changed.body.approval;
  const auditor = await stage.join('auditor');
  const browser = openBrowser(t);
  const reader = await pageOf(browser, listening, auditor.browser);
  await goes(reader.page, `/approvals/${id}`);
  assert.equal(await reader.page.getByRole('button', { name: /Approve|Reject/ }).count(), 0);
  await ask(await stage.join('owner'), `/approvals/${id}/approve`, {});

  const own = await ask(owner, '/floats/top-up', { merchantId, amount: 50_000, reference: 'paid in' });
  const { page, faults } = await pageOf(browser, listening, owner.browser);
  await goes(page, `/approvals/${(own['approval'] as { id: string }).id}`);
  await page.getByRole('button', { name: 'Withdraw' }).waitFor();
  await scene.ledger.at(new Date(listening.clock.now().getTime() + 16 * 60_000));
  await page.getByRole('main').getByRole('button', { name: 'Approve' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await dialog.getByLabel('Six digits').fill(owner.person.code(listening.clock.now()));
  await dialog.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('Approved', { exact: true }).first().waitFor();
  // The answer that asked for a second factor is an error for the console of the browser.
  assert.deepEqual([...faults.filter((each) => !each.includes('403')), ...reader.faults], []);
});

test('vouchers are canceled in bulk, with a preview, a job and a file of the results', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  const { items } = (await stage.ask(stage.owner, '/vouchers')) as {
    items: { serialNumber: string; state: string }[];
  };
  const redeemed = items.find(({ state }) => state === 'REDEEMED') ?? assert.fail('nothing is redeemed');
  const serialNumber = String(stage.sold.serial);
  await goes(page, '/vouchers/bulk?action=cancel');
  await page.getByLabel('Serial numbers').fill(`${serialNumber}\n${redeemed.serialNumber}`);
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByText('Of 2 vouchers, 1 will change and 1 will be declined.').waitFor();
  await page.getByRole('region', { name: 'Will be declined' }).getByText(redeemed.serialNumber).waitFor();
  await page.getByRole('button', { name: 'Cancel: 1 voucher' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill('Never handed out.');
  await dialog.getByRole('button', { name: 'Cancel: 1 voucher' }).click();
  await page.getByText('0 of 2 done, 0 failed').waitFor();
  await page.getByText('Cancel: 1 voucher: started').waitFor();
  const worker = startJobs(stage.listening.service, [groupOf(JOB_RUNS)]);
  t.after(() => worker.stop());
  await page.getByText('2 of 2 done, 1 failed').waitFor();
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: /result of every row/ }).click(),
  ]);
  const lines = (await textOf(file)).trim().split(/\r?\n/);
  assert.equal(lines.length, 3);
  assert.ok(lines.some((line) => line.includes(serialNumber) && line.includes(',ok')));
  await goes(page, `/vouchers/${serialNumber}`);
  await page.getByText('Canceled', { exact: true }).first().waitFor();
  assert.deepEqual(faults, []);
});

test('a form keeps its input while the service restarts', { skip }, async (t) => {
  const stage = await openStage(t);
  const first = buildServer(stage.listening.service);
  const baseUrl = await first.listen({ host: '127.0.0.1', port: 0 });
  const { merchantId } = stage;
  const at = { ...stage.listening, baseUrl };
  const { page } = await pageOf(openBrowser(t), at, stage.owner.browser);
  await goes(page, `/merchants/${merchantId}`);
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog', { name: 'Top up' });
  await dialog.getByLabel('Amount').fill('12.5');
  await first.close();
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await dialog.getByText('Your input is kept').waitFor();
  assert.equal(await dialog.getByLabel('Amount').inputValue(), '12.5');
  const second = buildServer(stage.listening.service);
  t.after(() => second.close());
  await second.listen({ host: '127.0.0.1', port: Number(new URL(baseUrl).port) });
  await dialog.getByRole('button', { name: 'Top up' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('region', { name: 'Float' }).getByText('USD 12.50').waitFor();
});

test('a batch of five million shows its progress, and loads one page of its vouchers', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { page, faults, sent } = await pageOf(openBrowser(t), stage.listening, stage.owner.browser);
  const { items } = (await stage.ask(stage.owner, '/batches')) as { items: { transactionId: string }[] };
  const id = items[0]?.transactionId ?? assert.fail('there is no batch');
  const batch = await stage.ask(stage.owner, `/batches/${id}`);
  let produced = 1_250_000;
  await page.route(`**/operator/v1/batches/${id}`, (route) => {
    produced += 250_000;
    const status = produced < 5_000_000 ? 'PROCESSING' : 'COMPLETED';
    return route.fulfill({ json: { ...batch, quantity: 5_000_000, produced, status } });
  });
  await goes(page, `/batches/${id}`);
  await page.getByText('5,000,000').first().waitFor();
  await page.getByRole('progressbar').waitFor();
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 1280);
  await page.getByText('Completed', { exact: true }).first().waitFor();
  await page.getByRole('region', { name: 'Vouchers' }).getByRole('cell').first().waitFor();
  const lists = sent.filter((each) => each.includes('/vouchers?'));
  assert.ok(lists.length >= 1 && lists.every((each) => /limit=\d{1,3}(&|\s|$)/.test(each)), lists.join());
  assert.deepEqual(faults, []);
});

test('the overview sends each request for the books once', { skip }, async (t) => {
  const { page, sent } = await opened(t, '/');
  const floats = page.getByRole('region', { name: 'Days that floats last' });
  await floats.getByRole('listitem').or(floats.getByText('There are no figures yet')).first().waitFor();
  const requests = sent.filter((each) => each.includes('/v1/books/'));
  assert.ok(requests.length >= 3, requests.join());
  assert.deepEqual(requests, [...new Set(requests)]);
});
