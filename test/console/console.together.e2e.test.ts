import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBrowser, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, opens } from '../support/console.scene.ts';

/** Several people or tabs, and the way back: nothing is done twice, and each page says what happened. */

const skip = await whyNoBrowser();

test('the second of two people who decide one proposal reads what the first one has decided', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { merchantId } = stage;
  const maker = await stage.join('finance');
  const wanted = { merchantId, amount: 200_000, reference: 'large' };
  const { approval } = (await stage.ask(maker, '/floats/top-up', wanted)) as { approval: { id: string } };
  const [one, other] = [stage.owner, await stage.join('owner')];
  const path = `/approvals/${approval.id}`;
  const browser = openBrowser(t);
  const { page: first } = await opens(browser, stage, one, path);
  const { page: second } = await opens(browser, stage, other, path);
  for (const page of [first, second]) {
    await page.getByRole('main').getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('dialog').getByLabel('Comment').fill('as agreed by telephone');
  }
  await first.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await first.getByRole('dialog').waitFor({ state: 'hidden' });
  const dialog = second.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await dialog.getByText('this was approved already').waitFor();
  assert.equal(await dialog.getByLabel('Comment').inputValue(), 'as agreed by telephone');
  // The page behind the dialog says who has decided.
  await second.getByRole('main').getByText(one.person.email).waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'hidden' });
  assert.equal(await second.getByRole('main').getByRole('button', { name: 'Approve' }).count(), 0);
  await goes(second, `/merchants/${merchantId}`);
  await second.getByRole('region', { name: 'Float' }).getByText('USD 200,000.00').waitFor();
});

test('the same form in two tabs: the second one says what the first one has changed', { skip }, async (t) => {
  const stage = await openStage(t);
  const { page: first } = await opens(openBrowser(t), stage, stage.owner, '/products/DEFAULT');
  const second = await first.context().newPage();
  await second.clock.setFixedTime(stage.listening.clock.now());
  await second.goto('/console/products/DEFAULT');
  const edit = async (page: typeof first, days: string) => {
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('dialog').getByLabel('Valid for').fill(days);
  };
  await edit(first, '400');
  await edit(second, '500');
  const save = (page: typeof first) => page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await save(first);
  await first.getByRole('dialog').waitFor({ state: 'hidden' });
  await save(second);
  const dialog = second.getByRole('dialog');
  await dialog.getByText('Somebody else has changed this').waitFor();
  assert.equal(await dialog.getByLabel('Valid for').inputValue(), '500');
  await save(second);
  await second.getByRole('main').getByText('500', { exact: true }).waitFor();
});

test('the way back after a change leads to the list with its filter, which shows the change', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const serial = String(stage.sold.serial);
  const { page, sent, faults } = await opens(openBrowser(t), stage, stage.owner, '/vouchers?state=ACTIVE');
  const row = page.getByRole('row').filter({ hasText: serial });
  // At the edge of the row: in its middle is the link to the product.
  await row
    .getByRole('link')
    .first()
    .click({ position: { x: 4, y: 4 } });
  await page.waitForURL(`**/vouchers/${serial}`);
  await page.getByRole('button', { name: 'Block' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click();
  await page.getByText('Block: done').waitFor();
  await page.goBack();
  await ready(page, 'Vouchers');
  assert.equal(new URL(page.url()).search, '?state=ACTIVE');
  await row.waitFor({ state: 'detached' });
  await page.goForward();
  await page.getByRole('main').getByText('Blocked', { exact: true }).first().waitFor();
  // Neither way sends the change again.
  const blocks = sent.filter((each) => each.includes(`POST `) && each.includes('/block'));
  assert.equal(blocks.length, 1);
  assert.deepEqual(faults, []);
});

test('the way back closes a dialog, after a question if something was typed', { skip }, async (t) => {
  const stage = await openStage(t);
  const path = `/merchants/${stage.merchantId}`;
  const { page } = await opens(openBrowser(t), stage, stage.owner, '/merchants');
  // At the beginning of the row: its product is a link of its own.
  await page.locator(`.row-link[href$="${path}"]`).click({ position: { x: 5, y: 5 } });
  await page.waitForURL(`**${path}`);
  await page.getByRole('button', { name: 'Top up' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Amount').fill('12.5');
  const asked: string[] = [];
  page.on('dialog', (question) => {
    asked.push(question.message());
    void (asked.length === 1 ? question.dismiss() : question.accept());
  });
  await page.evaluate('history.back()');
  await dialog.waitFor();
  await page.waitForURL(`**${path}`);
  assert.equal(await dialog.getByLabel('Amount').inputValue(), '12.5');
  await page.evaluate('history.back()');
  await ready(page, 'Merchants');
  assert.equal(asked.length, 2);
  assert.match(asked[0] ?? '', /What you typed is lost/);
});
