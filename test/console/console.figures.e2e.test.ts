import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { reports } from '../../console/generated/reports.ts';
import { openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { findPages, furnish, openStage, type Somebody, type Stage, visit } from '../support/console.scene.ts';

/** Every figure of the console and the portal is a link to entries that add up to it. */

const skip = await whyNoBrowser();

type Door = 'console' | 'portal';
type Found = { readonly value: string; readonly text: string; readonly href: string | null };
type Listed = { readonly total: { readonly rows: number; readonly amount: number } };

const FIGURES = `[...document.querySelectorAll('main [data-figure]')].map((each) => ({
  value: each.dataset.figure, text: each.textContent, href: each.getAttribute('href'),
}))`;

/** Opens every figure of the pages. @returns how many figures there are */
async function walk(t: TestContext, stage: Stage, door: Door, who: Somebody, paths: readonly string[]) {
  const { page, faults } = await pageOf(openBrowser(t), stage.listening, who.browser);
  await page.goto(`/${door}/account`);
  await ready(page);
  const sums = new Map<string, Listed['total']>();
  let figures = 0;
  for (const path of paths) {
    // One report after another keeps the heading of the page.
    if (path.startsWith('/books/reports/')) await visit(page, door, '/audit');
    await visit(page, door, path);
    const found = await page.evaluate<Found[]>(FIGURES);
    figures += found.length;
    for (const { value, text, href } of found) {
      const [place, query] = href?.split('?') ?? [];
      if (place !== `/${door}/books/entries`) continue;
      const api = `/${door === 'console' ? 'operator' : 'portal'}/v1/books/entries?${query}&limit=1`;
      const read = `fetch(${JSON.stringify(api)}, { headers: { 'x-scrip-request': 'person' } })
        .then((answer) => answer.json())`;
      const total = sums.get(api) ?? (await page.evaluate<Listed>(read)).total;
      assert.ok(total, `${path}: ${text} opens into ${api}`);
      sums.set(api, total);
      // A figure of entries is their number or their sum.
      assert.ok(
        [total.amount, total.rows].includes(Number(value)),
        `${path}: ${text} is not the sum of ${api}`,
      );
    }
    if (!found.some(({ href }) => href?.includes('/books/entries'))) continue;
    // The page itself says the same.
    const link = page.locator('main a[data-figure][href*="/books/entries"]:visible').first();
    const value = await link.getAttribute('data-figure');
    await link.click();
    const sum = page.locator('main [data-sum]');
    await sum.waitFor();
    const [amount, text] = [await sum.getAttribute('data-sum'), await sum.textContent()];
    assert.ok(Number(amount) === Number(value) || text?.startsWith(`${Number(value)} `), `${path}: ${text}`);
  }
  assert.deepEqual(faults, []);
  t.diagnostic(`${figures} figures of the ${door}, ${sums.size} sums`);
  return sums.size;
}

test('every figure opens into entries that add up to it', { skip }, async (t) => {
  const stage = await openStage(t);
  const shown = await furnish(stage);
  const { merchantId } = stage;
  // The general ledger needs account numbers, and is not made of entries.
  const others = reports.filter(({ name }) => name !== 'general-ledger');
  const made = others.map(({ name, ofMerchant }) =>
    ofMerchant ? `/books/reports/${name}?merchantId=${merchantId}` : `/books/reports/${name}`,
  );
  const pages = [...(await findPages('console', shown)), ...made].filter((path) => path !== '/books/entries');
  assert.ok((await walk(t, stage, 'console', stage.owner, pages)) > 50);
  const merchant = await stage.join('owner', true);
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 100, reference: 'paid in' });
  assert.ok((await walk(t, stage, 'portal', merchant, ['/', '/float'])) > 0);
});
