/**
 * `npm run docs:screenshots`: takes the pictures of the documentation from a demo of its own, in a Chromium.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launchChromium, newPage, ready } from '../test/support/chromium.ts';
import { startDemo } from '../test/support/demo.process.ts';

const FOLDER = fileURLToPath(new URL('./images/', import.meta.url));

/** The name of the picture, its page, and how the page is shown. */
const PICTURES = [
  { name: 'overview', path: '/', dark: false },
  { name: 'charts', path: '/books?tab=charts', dark: false },
  { name: 'settlement', path: '/settlements/14', dark: true },
] as const;

const VIEWPORT = { width: 1280, height: 800 };

const folder = await mkdtemp(join(tmpdir(), 'scrip-screenshots-'));
const demo = await startDemo(folder);
const browser = await launchChromium();
try {
  await mkdir(FOLDER, { recursive: true });
  const { origin } = new URL(demo.link);
  const { page } = await newPage(browser, { baseUrl: origin }, { viewport: VIEWPORT });
  await page.goto(demo.link);
  await ready(page, 'Overview');
  for (const { name, path, dark } of PICTURES) {
    await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
    await page.goto(`/console${path}`);
    await ready(page);
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    console.log(`docs/images/${name}.png`);
  }
} finally {
  await browser.close();
  await demo.stop();
  await rm(folder, { recursive: true, force: true });
}
