import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { OPERATIONS } from '../../src/operations/table.ts';
import { sell } from '../support/books.ts';
import { openBrowser, ready, whyNoBrowser } from '../support/chromium.ts';
import { openStage, opens } from '../support/console.scene.ts';
import { asOperator } from '../support/harness.ts';
import { readSheet } from '../support/print.ts';

const skip = await whyNoBrowser();

/** Presses the button of a dialog that orders a file, which proposes it. */
async function proposes(page: Page, button: string) {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: button }).click();
  await dialog.getByText('Proposed', { exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
}

/** Approves an order on the page of approvals. @returns the passphrase, which only the approver is shown */
async function approves(page: Page, title: RegExp): Promise<string> {
  await page.getByRole('row', { name: title }).click();
  await page.getByRole('button', { name: 'Approve' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await dialog.getByText('This is shown once').waitFor();
  return dialog.locator('pre').innerText();
}

/** Downloads an approved order in a part of the page of the person who ordered it. */
async function downloads(page: Page, within: ReturnType<Page['getByRole']>): Promise<Buffer> {
  await page.reload();
  await ready(page);
  await within.getByRole('button', { name: 'Download' }).click();
  const saving = page.waitForEvent('download');
  await page.getByRole('dialog').getByRole('button', { name: 'Download' }).click();
  return readFile(await (await saving).path());
}

test('operations prints a batch: one person gets the file, another one its passphrase', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const [, canceled] = await sell(stage.scene.issuer, 3, 30);
  const { batch } = await stage.ask(stage.owner, `/vouchers/${canceled.serial}`);
  const input = { serialNumber: String(canceled.serial) };
  const cancel = OPERATIONS.find(({ name }) => name === 'voucher.cancel');
  await cancel?.run(asOperator(stage.listening.service) as never, input as never);
  const somebody = await stage.join('operations');
  const { page, faults, sent } = await opens(browser, stage, somebody, `/batches/${batch}`);
  await page.getByRole('button', { name: 'Order sheets' }).click();
  await page.getByRole('dialog').getByText('2 vouchers that carry USD 60.00').waitFor();
  const language = page.getByRole('dialog').getByRole('combobox', { name: 'Language' });
  assert.equal(await language.inputValue(), 'English');
  await language.click();
  await page.getByRole('option', { name: 'German' }).click();
  await proposes(page, 'Order sheets');
  const details = page.getByRole('region', { name: 'Details' });
  const sheets = page.getByRole('region', { name: 'Printed sheets' });
  await sheets.getByRole('link', { name: 'Waiting' }).waitFor();
  assert.match(await details.innerText(), /Exports\s+0/);

  const owner = await opens(browser, stage, stage.owner, '/approvals');
  const passphrase = await approves(owner.page, /Order sheets/);

  const file = await downloads(page, page.getByRole('main'));
  await assert.rejects(readSheet(file), /[Pp]assword/);
  const pages = await readSheet(file, passphrase);
  assert.equal(pages.flatMap(({ qr }) => qr).length, 2);
  // The order waits no longer, and the file that has left is counted.
  await details.getByText(/^1$/).waitFor();
  await page.getByRole('region', { name: 'Exports' }).getByText('PDF').waitFor();
  assert.equal(await sheets.getByRole('link', { name: 'Waiting' }).count(), 0);
  assert.match(pages[0]?.text ?? '', /GÜLTIG BIS/);
  assert.ok(![...sent, ...owner.sent].some((each) => each.includes(passphrase)));
  assert.deepEqual([...faults, ...owner.faults], []);
});

test('support replaces a lost card, and gets the file of the new one after an approval', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const somebody = await stage.join('support');
  const { page, faults } = await opens(browser, stage, somebody, `/vouchers/${stage.sold.serial}`);
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Replace' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Replace' }).click();
  const panel = page.getByRole('region', { name: 'Replacement card' });
  await panel.getByRole('button', { name: 'Order the card' }).click();
  await dialog.getByText(/The card of voucher \d+/).waitFor();
  // Support may only propose the order.
  await proposes(page, 'Propose');

  const owner = await opens(browser, stage, stage.owner, '/approvals');
  const passphrase = await approves(owner.page, /Order the card/);

  const file = await downloads(page, panel);
  const cards = (await readSheet(file, passphrase)).flatMap(({ qr }) => qr);
  assert.equal(cards.length, 1);
  assert.ok(!cards[0]?.startsWith(stage.sold.code));
  assert.deepEqual([...faults, ...owner.faults], []);
});
