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

type Picture = {
  readonly name: string;
  readonly path: string;
  readonly dark: boolean;
  /** What the picture begins with. */
  readonly below?: string;
  /** The row of a list whose page is shown. */
  readonly row?: string;
};

/** The pictures, and how their pages are shown. */
const PICTURES: readonly Picture[] = [
  { name: 'overview', path: '/', dark: false, below: '.stats' },
  { name: 'charts', path: '/books?tab=charts', dark: false },
  { name: 'settlement', path: '/settlements', dark: true, row: '.row-link' },
];

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
  for (const { name, path, dark, below, row } of PICTURES) {
    await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' });
    await page.goto(`/console${path}`);
    await ready(page);
    if (row) {
      await page.locator(row).first().click();
      await page.waitForURL(`**${path}/*`);
      await ready(page);
    }
    if (below) await page.evaluate(`scrollTo(0, document.querySelector('${below}').offsetTop - 80)`);
    await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    console.log(`docs/images/${name}.png`);
  }
} finally {
  await browser.close();
  await demo.stop();
  await rm(folder, { recursive: true, force: true });
}
