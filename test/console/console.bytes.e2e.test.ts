import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newPage, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { openStage } from '../support/console.scene.ts';
import { countTransferred, largest } from '../support/transferred.ts';

/** What the first pages cost a browser with an empty cache, and what a page at rest costs. */

const skip = await whyNoBrowser();
const KB = 1_000;
const SIGN_IN_MAX = 144 * KB;
/** German words are longer. */
const OVERVIEW_MAX = { 'en-GB': 238 * KB, 'de-DE': 242 * KB };
const IDLE_MS = 90_000;
const IDLE_MAX = 20 * KB;

test('the sign-in and the overview transfer few bytes, and a page at rest almost none', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const { page: outside } = await newPage(browser, stage.listening);
  const signIn = await countTransferred(outside);
  await outside.goto('/console/sign-in');
  await outside.getByRole('button', { name: 'Continue' }).waitFor();
  await ready(outside, 'Sign in');
  t.diagnostic(`the sign-in: ${signIn.bytes} bytes in ${signIn.answers.length} answers`);
  assert.ok(signIn.bytes <= SIGN_IN_MAX, `the sign-in transfers ${largest(signIn)}`);

  const open = async (locale: keyof typeof OVERVIEW_MAX) => {
    const { page } = await pageOf(browser, stage.listening, stage.owner.browser, { locale });
    await page.clock.install({ time: stage.listening.clock.now() });
    const inside = await countTransferred(page);
    await page.goto('/console/');
    await ready(page);
    await page.locator('figure.chart svg').first().waitFor();
    await ready(page);
    t.diagnostic(`the overview, ${locale}: ${inside.bytes} bytes in ${inside.answers.length} answers`);
    assert.ok(inside.bytes <= OVERVIEW_MAX[locale], `the overview, ${locale}, transfers ${largest(inside)}`);
    return { page, inside };
  };
  const { page: german } = await open('de-DE');
  await german.close();
  const { page, inside } = await open('en-GB');

  const before = { bytes: inside.bytes, answers: inside.answers.length };
  // The timers of the page pass a minute and a half at once.
  await page.clock.runFor(IDLE_MS);
  await ready(page, 'Overview');
  const [bytes, answers] = [inside.bytes - before.bytes, inside.answers.length - before.answers];
  t.diagnostic(`at rest: ${bytes} bytes in ${answers} answers`);
  assert.ok(answers > 0, 'the timers of the page ran');
  assert.ok(bytes <= IDLE_MAX, `a page at rest transfers ${bytes} bytes in ${IDLE_MS / 1_000} s`);
});
