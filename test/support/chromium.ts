import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import packed from '@sparticuz/chromium';
import axe from 'axe-core';
import {
  type Browser,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Request,
  type Route,
} from 'playwright-core';
import { DEMO_OWNER, inviteDemoPerson } from '../../src/people/demo.ts';
import { asOperator, type ListeningService } from './harness.ts';
import { PATIENCE_MS } from './until.ts';

/** Opens the console in a Chromium, and records its errors. */

const SYSTEM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
/** The platform that the packed browser is a program for. */
const PACKED_FOR = 'linux x64';

/** The policy of the page forbids what tests inject as a script; an evaluation is not one. */
const LISTEN = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`;

const UNPACKING_MS = 60_000;
const PAUSE_MS = 200;

/** The file of the browser; undefined if none is installed for this platform. */
async function findChromium(): Promise<string | undefined> {
  const found = SYSTEM.find((path) => existsSync(path));
  if (found !== undefined) return found;
  return `${process.platform} ${process.arch}` === PACKED_FOR ? packed.executablePath() : undefined;
}

function cannotStart(executablePath: string, error: unknown): Error {
  const message = String(error);
  const [library] = /\S+: cannot open shared object file/.exec(message) ?? [];
  const advice = library
    ? 'Install its libraries, as root: npx playwright-core install-deps chromium'
    : `Install a Chromium at ${SYSTEM[0]}, such as with: apt-get install chromium`;
  const [reason] = message.split('\n');
  return new Error(`the browser ${executablePath} cannot start: ${library ?? reason}\n${advice}`);
}

/** @throws with what to install, if the browser cannot start */
export async function launchChromium(path?: string): Promise<Browser> {
  const executablePath = path ?? (await findChromium()) ?? assert.fail(noBrowser());
  const launch = () =>
    chromium.launch({ executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu'] });
  // The first of several processes unpacks the browser. Until then, the system refuses to run the file.
  for (const until = Date.now() + UNPACKING_MS; ; await setTimeout(PAUSE_MS)) {
    try {
      return await launch();
    } catch (error) {
      if (!String(error).includes('ETXTBSY') || Date.now() > until) throw cannotStart(executablePath, error);
    }
  }
}

function noBrowser(): string {
  return `no browser is installed for ${process.platform} ${process.arch}: put a Chromium at ${SYSTEM[0]}`;
}

let started: Browser | undefined;

/**
 * Starts the browser of a test file, which ends with the file. It is called outside of the tests.
 * A browser that is installed but cannot start fails the file.
 * @returns the reason why the tests are skipped, if no browser is installed for this platform, or false
 */
export async function whyNoBrowser(find = findChromium): Promise<string | false> {
  const path = await find();
  if (path === undefined) return noBrowser();
  const browser = await launchChromium(path);
  after(() => browser.close());
  started = browser;
  return false;
}

export type OpenPage = {
  readonly page: Page;
  /** Errors of the console of the browser, of scripts, and of the policy, with the address. */
  readonly faults: string[];
  /** The requests sent: method, address and body. */
  readonly sent: string[];
};

/** The browser of this file. The profiles that a test opens in it end with the test. */
export function openBrowser(t: TestContext): Browser {
  const browser = started ?? assert.fail('no browser is started');
  t.after(() => Promise.all(browser.contexts().map((context) => context.close())));
  return browser;
}

/** The requests of a page that have not been answered yet. */
const unanswered = new WeakMap<Page, Set<Request>>();

function count(page: Page): void {
  const requests = new Set<Request>();
  page.on('request', (request) => requests.add(request));
  page.on('requestfinished', (request) => requests.delete(request));
  page.on('requestfailed', (request) => requests.delete(request));
  unanswered.set(page, requests);
}

/** A page of a new profile. */
export async function newPage(
  browser: Browser,
  { baseUrl }: Pick<ListeningService, 'baseUrl'>,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({ baseURL: baseUrl, locale: 'en-GB', ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  count(page);
  const faults: string[] = [];
  const sent: string[] = [];
  await page.addInitScript(LISTEN);
  page.on('pageerror', (error) => faults.push(`${page.url()}: ${error.message}`));
  page.on('console', (message) => {
    const { url } = message.location();
    if (message.type() !== 'error') return;
    // Before the sign-in there is no session.
    if (message.text().includes('401') && /\/v1\/session$/.test(url)) return;
    faults.push(`${page.url()}: ${message.text()} (${url})`);
  });
  page.on('request', (request) =>
    sent.push(`${request.method()} ${request.url()} ${request.postData() ?? ''}`),
  );
  return { page, faults, sent };
}

/** A page of a new profile, signed in as the owner by a link. */
export async function signedIn(
  browser: Browser,
  listening: ListeningService,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const open = await newPage(browser, listening, options);
  const token = await inviteDemoPerson(asOperator(listening.service), DEMO_OWNER);
  await open.page.goto(`/console/sign-in#${token}`);
  await ready(open.page, 'Overview');
  return open;
}

/** A page of a new profile with the session of a person. */
export async function pageOf(
  browser: Browser,
  listening: ListeningService,
  { cookies }: { readonly cookies: ReadonlyMap<string, string> },
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const open = await newPage(browser, listening, options);
  // The page has the time of the service.
  await open.page.clock.setFixedTime(listening.clock.now());
  const { hostname: domain } = new URL(listening.baseUrl);
  const attributes = { domain, path: '/', secure: true, httpOnly: true, sameSite: 'Strict' } as const;
  await open.page.context().addCookies([...cookies].map(([name, value]) => ({ name, value, ...attributes })));
  return open;
}

/**
 * Sends a request of a page on, and returns the answer, which the page does not get. The service refuses
 * requests without the header that browsers add.
 */
export const arrive = (route: Route) =>
  route.fetch({ headers: { ...route.request().headers(), 'sec-fetch-site': 'same-origin' } });

/** Two frames: a page has drawn what it received, and sent what that asks for. */
const DRAWN = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve())))`;

/** Waits until a page of `newPage` has its heading, and nothing in it is still loading. */
export async function ready(page: Page, title?: string): Promise<void> {
  await page.getByRole('heading', { level: 1, ...(title && { name: title }) }).waitFor();
  const loading = page.locator('main [role=status]');
  const requests = unanswered.get(page) ?? assert.fail('the page is not one of newPage');
  const until = Date.now() + PATIENCE_MS;
  for (let drawn = 0; drawn < 2; ) {
    await page.evaluate(DRAWN);
    const isLoading = requests.size > 0 || (await loading.count()) > 0;
    drawn = isLoading ? 0 : drawn + 1;
    assert.ok(Date.now() < until, `${page.url()} waits for ${[...requests].map((each) => each.url())}`);
  }
}

type Finding = {
  readonly id: string;
  readonly nodes: readonly { readonly target: readonly string[]; readonly html: string }[];
};

/** Ends transitions, and waits until a theme that was just chosen is drawn. */
const STILL = `new Promise((resolve) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('*, ::before, ::after { transition: none !important }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
})`;

/** The findings of axe in a page: all, of the contrast only, or all others. */
export async function inaccessible(
  page: Page,
  contrast: 'also' | 'only' | 'not' = 'also',
): Promise<string[]> {
  // Colors that are still changing are no finding.
  await page.evaluate(STILL);
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(axe.source);
  const options = {
    resultTypes: ['violations'],
    ...(contrast === 'only' && { runOnly: ['color-contrast'] }),
    ...(contrast === 'not' && { rules: { 'color-contrast': { enabled: false } } }),
  };
  const found = await page.evaluate<Finding[]>(
    `axe.run(${JSON.stringify(options)}).then(({ violations }) => violations)`,
  );
  const isOpened = ({ id, nodes }: Finding) =>
    id === 'region' && nodes.every(({ html }) => html.includes('role="menu"'));
  // A menu that is open is over the page, and in none of its landmarks.
  return found
    .filter((each) => !isOpened(each))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`);
}
