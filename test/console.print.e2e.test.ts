import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { openBrowser, pageOf, ready, whyNoBrowser } from './chromium.ts';
import { openStage } from './console.scene.ts';
import { readSheet } from './print.ts';

const skip = await whyNoBrowser();

test('operations prints a batch: one person gets the file, another one its passphrase', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const somebody = await stage.join('operations');
  const browser = await openBrowser(t);
  const { items } = (await stage.ask(stage.owner, '/batches?status=COMPLETED')) as {
    items: { transactionId: string; quantity: number }[];
  };
  const batch = items[0] ?? assert.fail('no batch is complete');
  const { page, faults, sent } = await pageOf(browser, stage.listening, somebody.browser);
  await page.goto(`/console/batches/${batch.transactionId}`);
  await ready(page);
  await page.getByRole('button', { name: 'Order sheets' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/vouchers? that carr/).waitFor();
  await dialog.getByRole('button', { name: 'Order sheets' }).click();
  await dialog.getByText('Proposed', { exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  const owner = await pageOf(browser, stage.listening, stage.owner.browser);
  await owner.page.goto('/console/approvals');
  await ready(owner.page);
  await owner.page.getByRole('cell', { name: /Order sheets/ }).click();
  await owner.page.getByRole('button', { name: 'Approve' }).click();
  const approval = owner.page.getByRole('dialog');
  await approval.getByRole('button', { name: 'Approve' }).click();
  await approval.getByText('This is shown once').waitFor();
  const passphrase = await approval.locator('pre').innerText();

  await page.reload();
  await ready(page);
  await page.getByRole('main').getByRole('button', { name: 'Download' }).click();
  const saving = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Download' }).click();
  const file = await readFile(await (await saving).path());
  await assert.rejects(readSheet(file), /[Pp]assword/);
  const cards = (await readSheet(file, passphrase)).flatMap(({ qr }) => qr);
  assert.equal(cards.length, batch.quantity);
  assert.ok(![...sent, ...owner.sent].some((each) => each.includes(passphrase)));
  assert.deepEqual([...faults, ...owner.faults], []);
});

test('support replaces a lost card, and gets the file of the new one after an approval', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const somebody = await stage.join('support');
  const browser = await openBrowser(t);
  const { page, faults } = await pageOf(browser, stage.listening, somebody.browser);
  await page.goto(`/console/vouchers/${stage.sold.serial}`);
  await ready(page);
  await page.getByRole('button', { name: 'Actions', exact: true }).click();
  await page.getByRole('menuitem', { name: 'Replace' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Replace' }).click();
  const panel = page.getByRole('region', { name: 'Replacement card' });
  await panel.getByRole('button', { name: 'Order the card' }).click();
  await dialog.getByText(/The card of voucher \d+/).waitFor();
  await dialog.getByRole('button', { name: 'Order the card' }).click();
  await dialog.getByText('Proposed', { exact: true }).waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();

  const owner = await pageOf(browser, stage.listening, stage.owner.browser);
  await owner.page.goto('/console/approvals');
  await ready(owner.page);
  await owner.page.getByRole('cell', { name: /Order the card/ }).click();
  await owner.page.getByRole('button', { name: 'Approve' }).click();
  const approval = owner.page.getByRole('dialog');
  await approval.getByRole('button', { name: 'Approve' }).click();
  await approval.getByText('This is shown once').waitFor();
  const passphrase = await approval.locator('pre').innerText();

  await page.reload();
  await ready(page);
  await panel.getByRole('button', { name: 'Download' }).click();
  const saving = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Download' }).click();
  const file = await readFile(await (await saving).path());
  const cards = (await readSheet(file, passphrase)).flatMap(({ qr }) => qr);
  assert.equal(cards.length, 1);
  assert.ok(!cards[0]?.startsWith(stage.sold.code));
  assert.deepEqual([...faults, ...owner.faults], []);
});
