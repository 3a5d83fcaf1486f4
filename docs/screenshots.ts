/**
 * `npm run docs:screenshots`: takes the pictures of the documentation from a demo of its own, in a Chromium.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { launchChromium, ready } from '../test/chromium.ts';

const FOLDER = fileURLToPath(new URL('./images/', import.meta.url));
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

/** The name of the picture, its page, and how the page is shown. */
const PICTURES = [
  { name: 'overview', path: '/', dark: false },
  { name: 'charts', path: '/books?tab=charts', dark: false },
  { name: 'settlement', path: '/settlements/14', dark: true },
] as const;

const VIEWPORT = { width: 1280, height: 800 };

/** Starts a demo. @returns its one-time link, and how to end it */
async function startDemo(folder: string) {
  const settings = { SCRIP_DATA_DIR: folder, SCRIP_PORT: '0', SCRIP_LOG_LEVEL: 'warn' };
  const env = { ...process.env, ...settings, SCRIP_DATABASE_URL: undefined };
  const child = spawn(process.execPath, [MAIN, 'serve', '--demo'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const [link] = /http:\/\/localhost:\d+\/console\/sign-in#\S+/.exec(line) ?? [];
    if (!link) continue;
    // What it logs from now on is not read, and must not fill the pipe.
    child.stdout.resume();
    return { link, stop };
  }
  throw new Error('the demo ended before it printed its link');
}

const folder = await mkdtemp(join(tmpdir(), 'scrip-screenshots-'));
const demo = await startDemo(folder);
const browser = await launchChromium();
try {
  await mkdir(FOLDER, { recursive: true });
  const { origin } = new URL(demo.link);
  const context = await browser.newContext({ baseURL: origin, locale: 'en-GB', viewport: VIEWPORT });
  const page = await context.newPage();
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
