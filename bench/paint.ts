import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchChromium } from '../test/support/chromium.ts';
import { startDemo } from '../test/support/demo.process.ts';
import { median, print } from './figures.ts';

const TURNS = 12;
const PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime";

/**
 * The first page of the console in a Chromium with an empty cache, on a demo of its own: the time until the
 * first paint, until the numbers and until the chart are there.
 */
export async function run(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'scrip-paint-'));
  const demo = await startDemo(folder);
  const browser = await launchChromium();
  try {
    const { origin } = new URL(demo.link);
    const first = await browser.newContext({ baseURL: origin });
    const page = await first.newPage();
    await page.goto(demo.link);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    const cookies = await first.cookies();
    await first.close();
    const times: Record<string, number[]> = { 'first paint': [], numbers: [], chart: [] };
    for (let turn = 0; turn < TURNS; turn++) {
      // A new profile has an empty cache.
      const context = await browser.newContext({ baseURL: origin });
      await context.addCookies(cookies);
      const fresh = await context.newPage();
      const since = performance.now();
      await fresh.goto('/console/', { waitUntil: 'commit' });
      await fresh.locator('.stat-line').first().waitFor();
      times['numbers']?.push(performance.now() - since);
      await fresh.locator('figure.chart svg').first().waitFor();
      times['chart']?.push(performance.now() - since);
      times['first paint']?.push(await fresh.evaluate<number>(PAINT));
      await context.close();
    }
    for (const [name, all] of Object.entries(times))
      print(`${name}: median ${median(all).toFixed(0)} ms, most ${Math.max(...all).toFixed(0)} ms`);
  } finally {
    await browser.close();
    await demo.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
