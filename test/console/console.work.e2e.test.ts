import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inaccessible, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, opens, type Stage } from '../support/console.scene.ts';

/** What each role works on, what waits for a person, and the end of a month. */

const skip = await whyNoBrowser();

/** Proposes a top-up, which another person has to approve. */
async function propose({ ask, join, merchantId }: Stage) {
  const maker = await join('finance');
  const wanted = { merchantId, amount: 200_000, reference: 'large' };
  const { approval } = (await ask(maker, '/floats/top-up', wanted)) as { approval: { id: string } };
  return { maker, path: `/approvals/${approval.id}` };
}

test('the overview of each role begins with what the role works on', { skip }, async (t) => {
  const stage = await openStage(t);
  for (const [role, list, hasBooks] of [
    ['owner', 'Latest transactions', true],
    ['finance', 'To be paid', true],
    ['operations', 'Latest batches', true],
    ['support', 'Declined', false],
  ] as const) {
    const somebody = await stage.join(role);
    const { page, faults } = await opens(openBrowser(t), stage, somebody, '/');
    await page.getByRole('region', { name: list, exact: true }).waitFor();
    await page.getByRole('region', { name: 'Declined today' }).waitFor();
    assert.equal(
      await page.getByRole('region', { name: 'Outstanding', exact: true }).count(),
      Number(hasBooks),
    );
    assert.deepEqual([...faults, ...(await inaccessible(page))], [], role);
    await page.context().close();
  }
});

test('the overview compares the movements of today with those of the day before', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page } = await opens(openBrowser(t), stage, stage.owner, '/');
  const redeemed = page.getByRole('region', { name: 'Redeemed today' });
  // The shop took 100.10 on the day that is closed.
  await redeemed.getByText('USD 0.00').waitFor();
  await redeemed.getByText('The day before: USD 100.10').waitFor();
});

test('the bell leads to a proposal that waits, and shows its maker the decision, until it was read', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { maker, path } = await propose(stage);
  const browser = openBrowser(t);
  const { page, faults } = await opens(browser, stage, stage.owner, '/merchants');
  const bell = page.getByRole('button', { name: 'Inbox: 1 new or waiting' });
  await bell.click();
  const menu = page.getByRole('menu');
  assert.deepEqual(await inaccessible(page), []);
  await menu.getByRole('menuitem', { name: 'Waiting for your approval' }).click();
  await page.waitForURL(`**/console${path}`);
  await page.getByRole('main').getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Inbox', exact: true }).waitFor();

  const { page: theirs } = await opens(browser, stage, maker, '/merchants');
  await theirs.getByRole('button', { name: 'Inbox: 1 new or waiting' }).click();
  await theirs.getByRole('menuitem', { name: 'Your proposals that were decided' }).click();
  await theirs.waitForURL(`**/console${path}`);
  await goes(theirs, '/merchants');
  await theirs.getByRole('button', { name: 'Inbox', exact: true }).waitFor();
  assert.deepEqual(faults, []);
});

test('the end of a month says what is left, and compares it with the month before', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page, faults } = await opens(openBrowser(t), stage, stage.owner, '/books?tab=month-end');
  await page.getByText('Every day is closed').waitFor();
  const compared = page.getByRole('region', { name: 'Beside the month before · USD' });
  const redeemed = compared.getByRole('row').filter({ hasText: 'Redeemed' });
  await redeemed.waitFor();
  // In the month before, in the month, and the change.
  const [, ...sums] = await redeemed.getByRole('cell').allInnerTexts();
  assert.deepEqual(sums, ['–', '100.10', '+USD\u00a0100.10']);
  assert.deepEqual(await inaccessible(page), []);
  await page.getByRole('link', { name: 'Trial balance' }).click();
  await ready(page, 'Trial balance');
  assert.equal(new URL(page.url()).search, '?from=2026-03-01&to=2026-03-03');
  assert.deepEqual(faults, []);
});

test('two people set the account for pay-ins, which the portal shows with its holder', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const sent = await stage.owner.browser.send('PATCH', '/settings/letterhead', { sender: 'Example Ltd' });
  assert.equal(sent.status, 200, sent.text);
  const iban = 'DE89370400440532013000';
  const { approval } = (await stage.ask(stage.owner, '/bank/pay-in/EUR', { iban })) as {
    approval: { id: string };
  };
  const merchant = await stage.join('owner', true);
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, merchant.browser);
  await page.goto('/portal/float');
  await page.getByText('the account that your operator has given you').waitFor();
  const second = await stage.join('owner');
  await stage.ask(second, `/approvals/${approval.id}/approve`, {});
  await page.reload();
  await page.getByText('DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000').waitFor();
  await page.getByText('Example Ltd').first().waitFor();
  await page.getByText(`FLOAT ${stage.merchantId}`).waitFor();
  await page.getByRole('img', { name: 'Scan it with the app of your bank' }).waitFor();
  assert.deepEqual([...faults, ...(await inaccessible(page))], []);
});
