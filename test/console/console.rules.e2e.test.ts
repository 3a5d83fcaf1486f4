import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { openBrowser, pageOf, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, opens } from '../support/console.scene.ts';

/** The rules of the books: each form sends what was typed, and the page shows it. */

const skip = await whyNoBrowser();

type Form = {
  readonly path: string;
  readonly button: string;
  readonly chosen: Readonly<Record<string, string>>;
  readonly typed: Readonly<Record<string, string>>;
  readonly sent: object;
  /** Texts of the row. */
  readonly shown: readonly string[];
};

const FORMS: readonly Form[] = [
  {
    path: '/books/breakage-rate',
    button: 'Estimate',
    chosen: { Product: '(DEFAULT)' },
    typed: { Percent: '2.5', Reason: 'the last three years' },
    sent: { product: 'DEFAULT', percent: 2.5, reason: 'the last three years' },
    shown: ['Voucher', 'the last three years', '2.5%'],
  },
  {
    path: '/books/dormancy',
    button: 'Add a rule',
    chosen: { By: 'The last use' },
    typed: { Name: 'Delaware', Months: '60' },
    sent: { name: 'Delaware', months: 60, basis: 'last-use' },
    shown: ['Delaware', 'Every product', 'The last use', '60'],
  },
  {
    path: '/books/vat',
    button: 'Set the treatment',
    chosen: { Product: '(DEFAULT)', Treatment: 'Single-purpose' },
    typed: { From: '2026-04-01', Country: 'DE', Rate: '19' },
    sent: { product: 'DEFAULT', from: '2026-04-01', treatment: 'single', country: 'DE', rate: 19 },
    shown: ['Voucher', '1 Apr 2026', 'Single-purpose', 'DE', '19%'],
  },
  {
    path: '/books/accounts',
    button: 'Set a number',
    chosen: { Type: 'Fees' },
    typed: { Number: '4400', 'Tax code': 'V19' },
    sent: { kind: 'FEES', number: '4400', taxCode: 'V19' },
    shown: ['Fees', 'Every product', 'V19', '4400'],
  },
];

async function fill(page: Page, { button, chosen, typed }: Form) {
  await page.getByRole('main').getByRole('button', { name: button, exact: true }).click();
  const dialog = page.getByRole('dialog');
  for (const [label, text] of Object.entries(chosen)) {
    await dialog.getByRole('combobox', { name: label }).click();
    await page.getByRole('option', { name: text }).click();
  }
  for (const [label, text] of Object.entries(typed))
    await dialog.getByLabel(new RegExp(`^${label}`)).fill(text);
  await dialog.getByRole('button', { name: button, exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
}

test('the forms of the rules send what they say, and the page shows it', { skip }, async (t) => {
  const stage = await openStage(t);
  const browser = openBrowser(t);
  const { page, faults, sent } = await pageOf(browser, stage.listening, stage.owner.browser);
  await goes(page, '/books?tab=rules');
  for (const form of FORMS) {
    await fill(page, form);
    const [body, ...more] = sent.filter((each) => each.startsWith('POST ') && each.includes(`${form.path} `));
    assert.deepEqual(more, [], form.path);
    assert.deepEqual(JSON.parse((body ?? '').slice((body ?? '').indexOf('{'))), form.sent);
    const row = form.shown.reduce((rows, text) => rows.filter({ hasText: text }), page.getByRole('row'));
    await row.first().waitFor();
  }
  assert.deepEqual(faults, []);
});

test('the overview shows how near the payments of a limited network are, in German', { skip }, async (t) => {
  const stage = await openStage(t);
  // The shop has taken 100.10.
  await stage.ask(stage.owner, '/settings/network/USD', { amount: 125 });
  const { page, faults } = await opens(openBrowser(t), stage, stage.owner, '/', { locale: 'de-DE' });
  await page.getByText('Begrenztes Netz: nahe an der Meldeschwelle').waitFor();
  await page.getByText('100,10\u00a0USD von 125,00\u00a0USD (80 %)').waitFor();
  assert.deepEqual(faults, []);
});
