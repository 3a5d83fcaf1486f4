import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildServer } from '../../src/http/server.ts';
import { inaccessible, openBrowser, whyNoBrowser } from '../support/chromium.ts';
import { serviceWithoutDatabase } from '../support/harness.ts';
import { PATIENCE_MS } from '../support/until.ts';

/** The documentation site in a browser. */

const skip = await whyNoBrowser();

test('the documentation site finds a page by its words, and is accessible in light and dark', {
  skip,
}, async (t) => {
  const service = serviceWithoutDatabase();
  const app = buildServer(service);
  t.after(() => app.close().then(() => service.db.close()));
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const browser = openBrowser(t);
  for (const [colorScheme, width] of [
    ['light', 1440],
    ['dark', 360],
  ] as const) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('pageerror', ({ message }) => faults.push(message));
    page.on('request', (request) => {
      if (!request.url().startsWith(address)) faults.push(`it loads ${request.url()}`);
    });
    await page.goto(`${address}/docs/guides/reference/settings.html`);
    await page.keyboard.press('/');
    await page.keyboard.type('restore to a point in time');
    await page.locator('#results a').first().waitFor();
    if (colorScheme === 'light') faults.push(...(await inaccessible(page)));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/back-up\.html/);
    if (colorScheme === 'dark') faults.push(...(await inaccessible(page)));
    const isWider = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
    assert.equal(isWider, false, `${width}: the page is wider than the screen`);
    assert.deepEqual(faults, []);
  }
});
