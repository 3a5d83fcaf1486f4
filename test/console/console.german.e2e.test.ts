import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { help } from '../../console/generated/help.ts';
import { labels as german } from '../../console/src/i18n/de.labels.ts';
import { de } from '../../console/src/i18n/de.ts';
import { labels as english } from '../../console/src/i18n/en.labels.ts';
import { en } from '../../console/src/i18n/en.ts';
import { openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { findPages, furnish, openStage, type Somebody, type Stage } from '../support/console.scene.ts';
import { walk } from '../support/console.walk.ts';

/** Every page, tab, menu and dialog, for somebody who reads only German, or hears the page read out. */

const skip = await whyNoBrowser();

/** All texts in a catalogue. */
function textsOf(of: unknown): string[] {
  if (typeof of === 'string') return [of];
  return typeof of === 'object' && of !== null ? Object.values(of).flatMap(textsOf) : [];
}

const GERMAN = new Set(textsOf([de, german]));
const ENGLISH = new Set(textsOf([en, english, help]).filter((text) => !GERMAN.has(text)));
// The standard product has this name, in every language.
ENGLISH.delete('Voucher');
/** Words that no German sentence has. */
const WORDS = /\b(the|of|and|with|this|that|from|has|have|been|is|are|not|your|you|which|its|it|to|be|or)\b/i;
const isEnglish = (text: string) =>
  ENGLISH.has(text) || WORDS.test(text.replaceAll(/\(docs\/\S+\)/g, '')) || text.startsWith('en: ');

/** What somebody reads or hears, but commands and what people have typed. English that says so is marked. */
const READ = `(() => {
  const found = new Set([document.title]);
  const add = (text, element) => {
    if (!text?.trim() || !element.checkVisibility() || element.closest('pre, code, .mono, bdi')) return;
    const isOwnName = element.closest('[role=menuitem]');
    found.add((element.closest('[lang]').lang === 'en' && !isOwnName ? 'en: ' : '') + text.trim());
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) add(walker.currentNode.data, walker.currentNode.parentElement);
  for (const element of document.querySelectorAll('body *'))
    for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-description'])
      add(element.getAttribute(name), element);
  return [...found];
})()`;

/** Sends a form that lacks a required field, which the service therefore refuses. */
const REFUSE = `(() => {
  const form = document.querySelector('[role=dialog] form');
  const isEmpty = (input) => input.value === '';
  if (!form || ![...form.querySelectorAll('[required]')].some(isEmpty)) return false;
  form.noValidate = true;
  form.requestSubmit();
  return true;
})()`;

/** What a screen reader does not say of a form that was refused. */
const UNSAID = `(() => {
  const dialog = document.querySelector('[role=dialog]');
  const wrong = [...dialog.querySelectorAll('[aria-invalid=true]')];
  const says = (id) => document.getElementById(id)?.textContent;
  const isSaid = (input) => (input.getAttribute('aria-describedby') ?? '').split(' ').some(says);
  return [
    !dialog.querySelector('[role=alert]') && 'no alert',
    wrong.length === 0 && 'no field is wrong',
    ...wrong.map((input) => !isSaid(input) && 'the fault of a field is not its description'),
    document.activeElement !== wrong[0] && 'the focus is not in the first field that is wrong',
  ].filter(Boolean);
})()`;

/** A line of the tree of a screen reader for something without a name. */
const NAMELESS =
  /^\s*- (button|link|textbox|combobox|checkbox|radio|spinbutton|searchbox|tab|tablist|table|menuitem|dialog|region|group)(?=:|$| \[)/;

async function listen(page: Page, place: string): Promise<string[]> {
  const tree = await page.locator('body').ariaSnapshot();
  const nameless = tree.split('\n').filter((line) => NAMELESS.test(line));
  if (!(await page.evaluate<boolean>(REFUSE))) return nameless.map((line) => `${place}: ${line}`);
  await ready(page);
  return [...nameless, ...(await page.evaluate<string[]>(UNSAID))].map((each) => `${place}: ${each}`);
}

async function tour(
  t: { diagnostic(text: string): void },
  stage: Stage,
  door: 'console' | 'portal',
  somebody: Somebody,
  paths: readonly string[],
) {
  const locale = { locale: 'de-DE' };
  const { page } = await pageOf(openBrowser(t as never), stage.listening, somebody.browser, locale);
  await page.goto(`/${door}/account`);
  await ready(page);
  const english = new Map<string, string>();
  const unsaid: string[] = [];
  let places = 0;
  const read = async (place: string) => {
    for (const text of await page.evaluate<string[]>(READ))
      if (isEnglish(text) && !english.has(text)) english.set(text, place);
  };
  await walk(page, door, paths, async (place) => {
    places++;
    await read(place);
    unsaid.push(...(await listen(page, place)));
    await read(`${place}, refused`);
  });
  t.diagnostic(`${door}: ${places} pages, tabs, menus and dialogs`);
  assert.deepEqual([...[...english].map(([text, place]) => `${place}: ${text}`), ...unsaid], []);
}

test('nothing is English for a reader of German, and nothing has no name for a screen reader', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const shown = await furnish(stage);
  const paths = [...new Set(await findPages('console', shown))];
  await t.test('the console', (sub) => tour(sub, stage, 'console', stage.owner, paths));
  const merchant = await stage.join('owner', true);
  const { merchantId } = stage;
  await stage.ask(stage.owner, '/floats/top-up', { merchantId, amount: 100, reference: 'paid in' });
  const hook = await stage.ask(merchant, '/webhooks', { url: 'https://93.184.216.34/own' });
  const own = await stage.ask(merchant, '/batches', { quantity: 2, value: 10 });
  const inPortal = {
    ...shown,
    '/webhooks/$id': `/webhooks/${hook['id']}`,
    '/batches/$transactionId': `/batches/${own['transactionId']}`,
    '/approvals/$id': '/approvals',
    '/settlements/$id': '/settlements',
  };
  const ofPortal = [...new Set(await findPages('portal', inPortal))];
  await t.test('the portal', (sub) => tour(sub, stage, 'portal', merchant, ofPortal));
});
