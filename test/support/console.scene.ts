import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { TestContext } from 'node:test';
import type { BrowserContextOptions, Browser as Chromium, Page } from 'playwright-core';
import type { Sold } from './books.ts';
import { type Browser, enrolled, type Person } from './browser.ts';
import { openBrowser, pageOf, ready } from './chromium.ts';
import { type ListeningService, testService } from './harness.ts';
import type { Scope } from './scope.ts';
import { close, openScene, type Scene, tradedDay } from './settlements.ts';

/** A service with data for every page of the console, and with people of each role. */

/** A person with an authenticator app, and the browser in which the person is signed in. */
export type Somebody = { readonly person: Person; readonly browser: Browser };

export type Stage = {
  readonly scene: Scene;
  /** The shop, which is settled. */
  readonly merchantId: string;
  /** A voucher with a balance of 19.90. */
  readonly sold: Sold;
  readonly listening: ListeningService;
  readonly owner: Somebody;
  /** Enrolls a person of the operator, or of a merchant: if none is named, the one that is settled. */
  join(role: string, isMerchants?: boolean, merchantId?: number): Promise<Somebody>;
  /** Sends a request that must succeed. @returns the body of the answer */
  ask(who: Somebody, path: string, body?: object): Promise<Record<string, unknown>>;
};

/** A shop took 100.10 on a day that is closed, or that has ended and is due. */
export async function openStage(t: Scope, { isClosed = true } = {}): Promise<Stage> {
  const scene = await openScene(t);
  const sold = await tradedDay(scene);
  if (isClosed) await close(scene.ledger);
  const listening = await testService(t, scene.ledger.started);
  let people = 0;
  const join = async (role: string, isMerchants = false, merchantId = scene.shop.merchant.id) => {
    const joined = await enrolled(listening, {
      email: `${role}-${++people}@example.com`,
      roles: [role],
      ...(isMerchants && { merchantId }),
    });
    // Each code of an authenticator moves the clock on: the database follows.
    await scene.ledger.at(listening.clock.now());
    return joined;
  };
  const ask = async ({ browser }: Somebody, path: string, body?: object) => {
    const answer = body === undefined ? await browser.get(path) : await browser.post(path, body);
    assert.ok(answer.status < 300, `${path}: ${answer.text}`);
    return answer.body;
  };
  const owner = await join('owner');
  // With a second person, two have to agree.
  await join('owner');
  return { scene, merchantId: String(scene.shop.merchant.id), sold, listening, owner, join, ask };
}

export async function goes(page: Page, path: string): Promise<void> {
  await page.goto(`/console${path}`);
  await ready(page);
}

/** A page of the console in a profile with the session of a person. */
export async function opens(
  browser: Chromium,
  stage: Stage,
  { browser: cookies }: Somebody,
  path: string,
  options?: BrowserContextOptions,
) {
  const open = await pageOf(browser, stage.listening, cookies, options);
  await goes(open.page, path);
  return open;
}

/** A page of the console, with the session of the owner, on a stage of its own. */
export async function opened(
  t: TestContext,
  path: string | ((stage: Stage) => string),
  options?: BrowserContextOptions,
) {
  const stage = await openStage(t);
  const at = typeof path === 'string' ? path : path(stage);
  return { stage, ...(await opens(openBrowser(t), stage, stage.owner, at, options)) };
}

export type Shown = Readonly<Record<string, string>>;

/** The pages behind the sign-in, as the router has them; what a page shows stands in its address. */
export async function findPages(door: 'console' | 'portal', shown: Shown): Promise<string[]> {
  const text = await readFile(new URL(`../../console/src/${door}.tsx`, import.meta.url), 'utf8');
  const paths = [...text.matchAll(/^ {4}'(\/[^']*)': \(\) =>/gm)].map(([, path = '']) => path);
  assert.ok(paths.length > 14);
  return paths.map((path) => shown[path] ?? path);
}

/** Goes to another page as a link does, without a reload: axe, which takes long to load, stays loaded. */
export async function visit(page: Page, door: 'console' | 'portal', path: string): Promise<void> {
  await page.evaluate(`document.querySelector('main h1').setAttribute('data-left', '')
    history.pushState({}, '', '/${door}${path}')`);
  await page.locator('main h1:not([data-left])').waitFor();
  await ready(page);
}

/** Makes one of each thing that a page shows. @returns their addresses by the pattern of their page */
export async function furnish({ scene, merchantId, owner, ask }: Stage): Promise<Shown> {
  const { issuer } = scene;
  const idOf = async (path: string, name = 'id') => {
    const { items } = (await ask(owner, path)) as { items: Record<string, unknown>[] };
    return String(items[0]?.[name]);
  };
  const hook = { merchantId, url: 'https://93.184.216.34/events' };
  const webhook = await ask(owner, '/webhooks', hook);
  const { items } = (await ask(owner, '/batches')) as { items: { transactionId: string }[] };
  const batch = items[0]?.transactionId;
  await ask(owner, '/tokens', { name: 'nightly', roles: ['auditor'] });
  const settlement = await ask(owner, '/settlements', { merchantId });
  const drafts = (settlement['items'] ?? [settlement]) as { id: string }[];
  const draft = drafts[0]?.id;
  const proposed = (await ask(owner, `/settlements/${draft}/approve`, {})) as { approval: { id: string } };
  const job = await ask(owner, '/reconcile', {});
  const serial = await idOf('/vouchers', 'serialNumber');
  return {
    '/vouchers/$serialNumber': `/vouchers/${serial}`,
    '/transactions/$id': `/transactions/${await idOf(`/transactions?merchantId=${merchantId}`, 'transactionId')}`,
    '/batches/$transactionId': `/batches/${batch}`,
    '/merchants/$id': `/merchants/${issuer.merchant.id}`,
    '/products/$code': '/products/DEFAULT',
    '/books/reports/$report': '/books/reports/trial-balance',
    '/settlements/$id': `/settlements/${draft}`,
    '/approvals/$id': `/approvals/${proposed.approval.id}`,
    '/webhooks/$id': `/webhooks/${webhook['id']}`,
    '/jobs/$id': `/jobs/${job['id']}`,
  };
}

/**
 * A person of a merchant asks for the download of a batch, after the choice that another one approves it.
 * @returns the id of the proposal
 */
export async function releaseOf({ ask }: Stage, by: Somebody, batch: string): Promise<string> {
  await ask(by, '/merchant/download-approval', { downloadApproval: true });
  const asked = (await ask(by, `/batches/${batch}/release`, {})) as { approval: { id: string } };
  return asked.approval.id;
}
