import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { inaccessible, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, opens } from '../support/console.scene.ts';

/** Pages as they were at a time of the past, which somebody types in the zone of the browser. */

const skip = await whyNoBrowser();

/** The vouchers were issued at 09:00 UTC and redeemed at 10:00, when it was 11:00 in Berlin. */
const BETWEEN = '2026-03-01T10:30';
const ADDRESS = /\?(.*&)?at=2026-03-01T09%3A30%3A00\.000Z(&|$)/;
const options = { timezoneId: 'Europe/Berlin' };

async function look(page: Page): Promise<void> {
  await page.getByLabel('As it was at').fill(BETWEEN);
  await page.keyboard.press('Enter');
  await page.waitForURL(ADDRESS);
  await ready(page);
}

const back = (page: Page) => page.getByRole('button', { name: 'Now', exact: true }).click();

test('a voucher, a float and the liability are shown as they were at a time', { skip }, async (t) => {
  const stage = await openStage(t);
  const { issuer } = stage.scene;
  const merchantId = issuer.merchant.id;
  const { items } = (await stage.ask(stage.owner, `/floats?merchantId=${merchantId}`)) as {
    items: { balance: number }[];
  };
  const before = items[0]?.balance ?? assert.fail('the issuer has no float');
  const paidIn = { merchantId: String(merchantId), amount: 1_000, reference: 'later' };
  await stage.ask(stage.owner, '/floats/top-up', paidIn);
  const amount = (balance: number) =>
    balance.toLocaleString('en-GB', { style: 'currency', currency: 'USD', currencyDisplay: 'code' });
  const browser = openBrowser(t);

  const serialNumber = String(stage.sold.serial);
  const { page, faults } = await opens(browser, stage, stage.owner, `/vouchers/${serialNumber}`, options);
  const shown = page.locator('.stat');
  assert.equal(await shown.innerText(), amount(19.9));
  await page.getByRole('button', { name: 'Block' }).waitFor();
  await look(page);
  assert.equal(await shown.innerText(), amount(60));
  // What it was then cannot be changed.
  assert.equal(await page.getByRole('button', { name: 'Block' }).count(), 0);
  assert.deepEqual(await inaccessible(page), []);
  await page.reload();
  await ready(page);
  assert.equal(await page.getByLabel('As it was at').inputValue(), BETWEEN);
  assert.equal(await shown.innerText(), amount(60));
  await back(page);
  await shown.getByText(amount(19.9)).waitFor();

  await goes(page, `/merchants/${merchantId}`);
  await page
    .locator('.stat')
    .getByText(amount(before + 1_000))
    .waitFor();
  await look(page);
  await page.locator('.stat').getByText(amount(before)).waitFor();
  await back(page);
  await page
    .locator('.stat')
    .getByText(amount(before + 1_000))
    .waitFor();

  await goes(page, '/books/reports/liability?from=2026-03-01&to=2026-03-02');
  const redeemed = page.getByText('100.10', { exact: true });
  await redeemed.first().waitFor();
  await look(page);
  await redeemed.first().waitFor({ state: 'detached' });
  await page.getByText('120.00', { exact: true }).first().waitFor();
  await back(page);
  await redeemed.first().waitFor();
  assert.deepEqual(faults, []);

  const merchant = await stage.join('owner', true, merchantId);
  const portal = await pageOf(browser, stage.listening, merchant.browser, options);
  await portal.page.goto('/portal/float');
  await portal.page
    .locator('.stat')
    .getByText(amount(before + 1_000))
    .waitFor();
  await look(portal.page);
  await portal.page.locator('.stat').getByText(amount(before)).waitFor();
  assert.deepEqual(portal.faults, []);
});
