import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Locator } from 'playwright-core';
import { setBankAccount } from '../../src/bank/accounts.ts';
import { saveMapping } from '../../src/bank/csv.ts';
import { importBank } from '../../src/bank/import.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { MAPPING } from '../support/bank.ts';
import { inaccessible, openBrowser, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, opens } from '../support/console.scene.ts';

/** A form says what its change comes to, also when that has changed in the meantime. */

const skip = await whyNoBrowser();

test('an approval whose effect has changed shows the new sentence, and is confirmed', { skip }, async (t) => {
  const stage = await openStage(t);
  const [maker, path] = [await stage.join('finance'), `/vouchers/${stage.sold.serial}/adjust`];
  const adjust = (amount: number) =>
    stage.ask(maker, path, { amount, reference: `by ${amount}`, reason: 'as agreed' });
  const { approval } = (await adjust(20_000)) as { approval: { id: string } };
  const { page } = await opens(openBrowser(t), stage, stage.owner, `/approvals/${approval.id}`);
  await page.getByRole('main').getByRole('button', { name: 'Approve' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('note').getByText('USD 19.90 → USD 20,019.90').waitFor();
  await adjust(5);
  const confirm = () => dialog.getByRole('button', { name: 'Approve' }).click();
  await confirm();
  await dialog.getByText('The effect has changed').waitFor();
  await dialog.getByRole('note').getByText('USD 24.90 → USD 20,024.90').waitFor();
  await confirm();
  await page.getByText('Approved', { exact: true }).first().waitFor();
});

test('a top-up says the balance that it leads to', { skip }, async (t) => {
  const stage = await openStage(t);
  const path = `/merchants/${stage.scene.issuer.merchant.id}`;
  const { page } = await opens(openBrowser(t), stage, stage.owner, path);
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount').fill('12.5');
  await dialog.getByText('Shop: USD 9,880.00 → USD 9,892.50').waitFor();
});

test('a payout that the bank made and the books lack is booked from the page of the bank', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { scene } = stage;
  const { operator } = scene.ledger;
  const [draft] = await draftSettlements(operator, { merchantId: scene.shop.merchant.id });
  assert.ok(draft);
  const { settlement } = await approve(operator, draft.id);
  await setBankAccount(operator, { name: 'House', currency: 'USD' });
  await saveMapping(operator, 'house', { ...MAPPING, entryReference: 'Ref' });
  const row = `02.03.2026;Settlement ${settlement.number};-97,10;B 1`;
  const bytes = Buffer.from(`Buchungstag;Zweck;Betrag;Ref\n${row}\n`);
  await importBank(operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);

  const finance = await stage.join('finance');
  const { page } = await opens(openBrowser(t), stage, finance, '/bank');
  await page.getByRole('main').getByRole('button', { name: 'Match' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Match' }).click();
  const lacking = page.getByRole('region', { name: 'Payouts that the bank made and the books lack' });
  await lacking.getByText('USD 97.10').waitFor();
  await lacking.getByRole('button', { name: 'Record payment' }).click();
  await dialog.getByLabel(/^Reference/).fill('payout 1');
  await dialog.getByRole('button', { name: 'Record payment' }).click();
  await dialog.getByText('Proposed', { exact: true }).waitFor();
  const { items } = (await stage.ask(stage.owner, '/approvals')) as { items: { id: string }[] };
  await stage.ask(stage.owner, `/approvals/${items[0]?.id}/approve`, {});
  const { state, payouts } = await stage.ask(stage.owner, `/settlements/${draft.id}`);
  const [payout] = payouts as { bankReference: string; valueDate: string }[];
  assert.deepEqual([state, payout?.bankReference, payout?.valueDate], ['PAID', 'B 1', '2026-03-02']);
  await goes(page, '/bank?tab=movements');
  await page.getByText('payout 1').waitFor();
});

test('an entry is matched with a movement beside it, by the suggestion or by keys, once the sums agree', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { operator } = stage.scene.ledger;
  const { merchantId } = stage;
  for (const [amount, reference] of [
    [30, 'paid in'],
    [12, 'one'],
    [8, 'other'],
  ] as const)
    await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount, reference });
  await setBankAccount(operator, { name: 'House', currency: 'USD' });
  await saveMapping(operator, 'house', { ...MAPPING, entryReference: 'Ref' });
  const rows = ['02.03.2026;A payment;30,00;B 1', '02.03.2026;Two payments;20,00;B 2'];
  const bytes = Buffer.from(`Buchungstag;Zweck;Betrag;Ref\n${rows.join('\n')}\n`);
  await importBank(operator, { account: 'House', bytes, format: 'csv', mapping: 'house' }, false);

  const { page, faults } = await opens(openBrowser(t), stage, await stage.join('finance'), '/bank?tab=match');
  const bank = page.getByRole('region', { name: 'Open entries of the bank' });
  const books = page.getByRole('region', { name: 'Open movements of the books' });
  const match = page.getByRole('main').getByRole('button', { name: 'Match by hand', exact: true });
  const confirm = async () => {
    await match.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Match by hand' }).press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  };
  await bank.getByRole('button', { name: 'Fits: Top-up' }).click();
  await page.getByRole('status').getByText('Bank: USD 30.00 · Books: USD 30.00').waitFor();
  assert.deepEqual([...faults, ...(await inaccessible(page))], []);
  await confirm();
  await bank.getByText('A payment').waitFor({ state: 'hidden' });
  await books.getByText('paid in').waitFor({ state: 'hidden' });
  // The dialog gives the focus back a moment after it is gone.
  await page.reload();

  const checkOf = (side: Locator, text: string) =>
    side.getByRole('row').filter({ hasText: text }).getByRole('checkbox');
  await checkOf(bank, 'Two payments').focus();
  await page.keyboard.press('Space');
  await checkOf(books, 'one').focus();
  await page.keyboard.press('x');
  await page.getByText('Difference: +USD 8.00').waitFor();
  assert.equal(await match.count(), 0);
  await checkOf(books, 'other').focus();
  await page.keyboard.press('Space');
  await match.focus();
  await confirm();
  await bank.getByText('Every entry of the bank is matched.').waitFor();
  const { items } = (await stage.ask(stage.owner, '/bank/entries')) as { items: { movements: object[] }[] };
  assert.deepEqual(
    items.map(({ movements }) => movements.length),
    [2, 1],
  );
  assert.deepEqual(faults, []);
});

test('an operation for which nothing was due says so', { skip }, async (t) => {
  const stage = await openStage(t, { isClosed: false });
  const { page } = await opens(openBrowser(t), stage, stage.owner, '/settlements');
  await page.getByRole('button', { name: 'Create draft' }).first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Create draft' }).click();
  await page.getByText('Create draft: nothing was due').waitFor();
});
