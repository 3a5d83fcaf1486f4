import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fields } from '../../console/src/i18n/de.fields.ts';
import { openBrowser, whyNoBrowser } from '../support/chromium.ts';
import { furnish, openStage, opens, type Stage } from '../support/console.scene.ts';

/** Changes as the page of the audit shows them: with labels, names, units and currencies. */

const skip = await whyNoBrowser();

type Entry = {
  readonly sequence: string;
  readonly action: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
};

const IBAN = 'DE89370400440532013000';

/** Makes changes of each kind: of terms, limits, floats, keys, people, vouchers, the bank and the books. */
async function change({ ask, owner, join, merchantId, sold }: Stage): Promise<void> {
  const send = async (method: 'PATCH' | 'DELETE', path: string, body: object) => {
    const { status, text } = await owner.browser.send(method, path, body);
    assert.ok(status < 300, `${path}: ${text}`);
  };
  await send('PATCH', '/products/DEFAULT', { maxValue: 600, cashOutBelow: 12.5, validityDays: 400 });
  await ask(owner, '/products', { code: 'EURO', name: 'Euro card', currency: 'EUR', maxValue: 500 });
  await send('PATCH', `/merchants/${merchantId}`, { product: 'EURO', language: 'de', opaque: true });
  await ask(owner, '/floats/top-up', { merchantId, amount: 1_234.5, reference: 'one' });
  await ask(owner, '/floats/warn', { merchantId, below: 7.25 });
  await ask(owner, '/daily-limits', { merchantId, flow: 'redeem', amount: 2_000 });
  await ask(owner, '/settings/network/USD', { amount: 3_000_000 });
  await send('PATCH', '/settings/letterhead', { sender: 'Example Ltd', addressLines: ['1 High Street'] });
  await ask(owner, '/bank/accounts', { name: 'House', currency: 'USD', own: 5_000.5, iban: IBAN });
  await ask(owner, '/books/breakage-rate', { product: 'DEFAULT', percent: 12.5, reason: 'last year' });
  const { keyId } = await ask(owner, '/api-keys', { merchantId, name: 'Till 3', scopes: ['redeem'] });
  await ask(owner, `/api-keys/${keyId}/limit`, { perSecond: 5 });
  await ask(owner, `/api-keys/${keyId}/rotate`, { overlap: '1h' });
  await ask(owner, '/users', { email: 'new@example.com', roles: ['support'] });
  await ask(owner, '/tokens', { name: 'nightly', roles: ['auditor'] });
  const serial = String(sold.serial);
  for (const verb of ['block', 'unblock']) await ask(owner, `/vouchers/${serial}/${verb}`, {});
  await ask(owner, `/vouchers/${serial}/extend`, { expiry: '2030-01-31' });
  await ask(owner, `/vouchers/${serial}/adjust`, { amount: 5, reference: 'gift', reason: 'goodwill' });
  // What two people agree on.
  const proposals = [
    ['/settings/limits/USD', { amount: 20_000 }],
    ['/bank/pay-in/USD', { iban: IBAN }],
    ['/settlement-terms', { merchantId, from: '2026-03-09', commission: 2.5, minPayout: 25 }],
    ['/floats/refund', { merchantId, amount: 34.5, reference: 'back' }],
  ] as const;
  const second = await join('owner');
  for (const [path, body] of proposals) {
    const { approval } = (await ask(owner, path, body)) as { approval: { id: string } };
    await ask(second, `/approvals/${approval.id}/approve`, {});
  }
}

test('the page of the audit shows each change with labels, names, units and currencies', {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  await furnish(stage);
  await change(stage);
  const { items } = (await stage.ask(stage.owner, '/audit?limit=200')) as { items: Entry[] };
  const actions = new Set(items.map(({ action }) => action));
  assert.ok(actions.size >= 30, [...actions].join());
  const names = new Set(items.flatMap(({ before, after }) => Object.keys({ ...before, ...after })));
  const nameless = [...names].map((name) => name.replace(/Ppm$/, '')).filter((name) => !(name in fields));
  assert.deepEqual(nameless, [], 'fields without a German label');
  const locale = 'de-DE';
  const { page, faults } = await opens(openBrowser(t), stage, stage.owner, '/audit', { locale });
  const more = page.getByRole('button', { name: 'Mehr laden' });
  const rows = page.locator('main tbody tr');
  for (let shown = 50; shown < items.length; shown += 50) {
    await more.click();
    await rows.nth(Math.min(items.length, shown + 50) - 1).waitFor();
  }
  const texts = await rows.allInnerTexts();
  const wrong = texts.flatMap((text) => [
    ...(/[A-Z]{3} -?\d/.test(text) ? [`an amount that is not written in German: ${text}`] : []),
    ...(/\b[a-z]+[A-Z]\w*: /.test(text) ? [`a field without a label: ${text}`] : []),
    ...(/[0-9a-f]{8}-[0-9a-f]{4}-/.test(text) ? [`an id: ${text}`] : []),
    ...(/(Nr\.|Händler|Produkt|Benutzer): \d/.test(text) ? [`a number instead of a name: ${text}`] : []),
    ...(/[[{]"/.test(text) ? [`JSON: ${text}`] : []),
    ...(/\b(true|false|null)\b/.test(text) ? [`a word of JSON: ${text}`] : []),
  ]);
  assert.deepEqual(wrong, []);
  const all = texts.join('\n');
  const whole = (text: string) => text.replaceAll(' ', '\u00a0');
  for (const text of [
    '600,00 USD',
    '500,00 EUR',
    '1.234,50 EUR',
    '7,25 EUR',
    '5.000,50 USD',
    '20.000,00 USD',
  ])
    assert.ok(all.includes(whole(text)), `${text} in ${all}`);
  assert.deepEqual(faults, []);
});
