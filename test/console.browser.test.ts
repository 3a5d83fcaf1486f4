import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { inaccessible, openBrowser, settled, signedIn, whyNoBrowser } from './chromium.ts';
import { Till } from './till.ts';

const skip = await whyNoBrowser();

/** The pages behind the sign-in, as the router has them; what a page shows stands in its address. */
async function findPages(shown: Readonly<Record<string, string>>): Promise<string[]> {
  const text = await readFile(new URL('../console/src/console.tsx', import.meta.url), 'utf8');
  const paths = [...text.matchAll(/\bpage\('([^']+)'/g)].map(([, path = '']) => path);
  assert.ok(paths.length > 20);
  return paths.map((path) => shown[path] ?? path).filter((path) => !LATER.has(path));
}

/** Pages of one thing that takes long to make: their lists are visited. */
const LATER = new Set(['/settlements/$id', '/webhooks/$id']);

for (const colorScheme of ['light', 'dark'] as const) {
  test(`every page is accessible and without a fault, ${colorScheme}`, { skip }, async (t) => {
    const till = await Till.open(t);
    const [voucher] = await till.vouchers(2, 20);
    const { page, faults } = await signedIn(await openBrowser(t), till.testService, { colorScheme });
    const { service } = till.testService;
    const idOf = async (text: string) =>
      (await service.db.query<{ id: string }>({ text, values: [] }))[0]?.id;
    const batch = await idOf('select transaction_id as id from batches limit 1');
    const entry = await idOf('select id from journal limit 1');
    const paths = await findPages({
      '/vouchers/$serialNumber': `/vouchers/${voucher?.serialNumber}`,
      '/transactions/$id': `/transactions/${entry}`,
      '/batches/$transactionId': `/batches/${batch}`,
      '/merchants/$id': `/merchants/${till.merchant.id}`,
      '/products/$code': '/products/DEFAULT',
      '/books/reports/$report': '/books/reports/trial-balance',
    });
    const found: string[] = [];
    for (const path of paths) {
      await page.goto(`/console${path}`);
      await settled(page);
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        for (const each of await inaccessible(page)) found.push(`${path} at ${width}: ${each}`);
      }
    }
    assert.deepEqual([...found, ...faults], []);
  });
}
