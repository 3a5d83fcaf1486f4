import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { Page, Route } from 'playwright-core';
import { getDocumentProxy } from 'unpdf';
import { drawQr } from '../../print/symbols.ts';
import { sql } from '../../src/db/sql.ts';
import { PASSWORD } from '../support/browser.ts';
import { arrive, inaccessible, openBrowser, pageOf, ready, whyNoBrowser } from '../support/chromium.ts';
import { openStage, type Somebody, type Stage } from '../support/console.scene.ts';
import { Till } from '../support/till.ts';
import { openWay } from '../support/way.ts';

/** The till in the browser: at a queue, without a mouse, and with connections that break. */

const skip = await whyNoBrowser();

/** Redemptions while connections are cut: a few in each run, 500 with SCRIP_TILL_SALES=500. */
const SALES = Number(process.env['SCRIP_TILL_SALES'] ?? 12);

/** The till of a person, as its scanner and its keyboard use it. */
async function openTill(t: TestContext, { listening }: Pick<Stage, 'listening'>, somebody: Somebody) {
  const open = await pageOf(openBrowser(t), listening, somebody.browser);
  await open.page.goto('/portal/till');
  await ready(open.page, 'Till');
  return open;
}

async function types(page: Page, text: string): Promise<void> {
  await page.keyboard.type(text);
  await page.keyboard.press('Enter');
}

/** Scans a card, and redeems an amount. */
async function sells(page: Page, card: string, amount: string): Promise<void> {
  await types(page, card);
  await page.getByLabel('Amount').waitFor();
  await types(page, amount);
}

/** Corrects or refunds the sale of the receipt. */
async function changes(page: Page, button: 'Correct' | 'Refund', amount: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: button, exact: true }).click();
  await dialog.getByLabel('Amount').fill(amount);
  await dialog.getByRole('button', { name: button }).click();
}

const shows = (page: Page, text: string) => page.getByText(text, { exact: false }).first().waitFor();

/** What a page keeps: its address, its history, and what it stores. */
const kept = (page: Page) =>
  page.evaluate<string>(
    'location.href + JSON.stringify([history.state, { ...localStorage }, { ...sessionStorage }])',
  );

/** A stage with a cashier, and with a card of 19.90 as scanners and lists show it. */
type AtTill = Stage & { readonly cashier: Somebody; readonly card: string; readonly masked: string };

async function sellsByKeyboard(t: TestContext, stage: AtTill): Promise<void> {
  const { card, masked, cashier, sold } = stage;
  const { page, sent, faults } = await openTill(t, stage, cashier);
  // A code of another system, and a text.
  await types(page, '4006381333931');
  await shows(page, 'it has 13 digits');
  await types(page, 'https://example.com');
  await shows(page, 'a card has digits only');
  await types(page, '10000000064');
  await shows(page, 'This is the serial number of a card');
  // The bar code has no PIN.
  await types(page, sold.code);
  await types(page, sold.pin);
  await page.getByLabel('Amount').waitFor();
  await types(page, '25');
  await shows(page, 'Insufficient balance');
  await page.keyboard.press('Control+a');
  await types(page, '5');
  await shows(page, 'Redemption USD 5.00');
  await shows(page, 'Remaining balance: USD 14.90');
  await page.evaluate('window.print = () => { window.prints = (window.prints ?? 0) + 1; }');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate('window.prints'), 1, 'one key after the amount books, one more prints');
  for (const [paper, width] of [
    ['80 mm', 227],
    ['A4', 595],
  ] as const) {
    await page.getByText(paper, { exact: true }).click();
    const pdf = await getDocumentProxy(new Uint8Array(await page.pdf({ preferCSSPageSize: true })));
    const { view } = await pdf.getPage(1);
    assert.deepEqual([pdf.numPages, Math.round(view[2] ?? 0)], [1, width]);
  }
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.getByRole('heading', { level: 1 }).isVisible(), false);
  assert.equal(await page.getByRole('article').getByText(masked).isVisible(), true);
  await page.emulateMedia({ media: 'screen' });
  assert.deepEqual(await inaccessible(page), []);
  // A double Enter, and a scan while the focus is on a button.
  await types(page, card);
  await page.getByLabel('Amount').waitFor();
  await page.keyboard.type('1');
  await Promise.all([page.keyboard.press('Enter'), page.keyboard.press('Enter')]);
  await shows(page, 'Remaining balance: USD 13.90');
  assert.equal(sent.filter((each) => each.includes('/till/redeem')).length, 3);
  assert.ok(!sent.some((each) => each.split(' ')[1]?.includes(sold.code)), 'a code in an address');
  const texts = await kept(page);
  assert.ok(texts.includes(masked));
  assert.doesNotMatch(texts, new RegExp(`${sold.code}|"${sold.pin}"`));
  await changes(page, 'Refund', '0.5');
  await shows(page, 'Remaining balance: USD 14.40');
  await page.getByRole('article').getByText('Refund', { exact: true }).waitFor();
  await sells(page, card, '0.5');
  await shows(page, 'Remaining balance: USD 13.90');
  await changes(page, 'Correct', '2');
  await shows(page, 'Remaining balance: USD 12.40');
  // A part of what the correction left.
  await changes(page, 'Refund', '0.5');
  await shows(page, 'Remaining balance: USD 12.90');
  // The browser notes the refusal.
  assert.deepEqual(
    faults.filter((each) => !each.includes('409 (Conflict)')),
    [],
  );
}

async function losesAnswers(t: TestContext, stage: AtTill): Promise<void> {
  const { card, masked, cashier } = stage;
  const { page } = await openTill(t, stage, cashier);
  const at = '**/till/redeem';
  let original = '';
  const lose = (route: Route) => {
    original = route.request().postData() ?? '';
    return route.abort();
  };
  // The answer of the first copy is lost.
  await page.route(at, (route) => arrive(route).then(() => route.abort()), { times: 1 });
  await sells(page, card, '1');
  await shows(page, 'It was booked before');
  await shows(page, 'Remaining balance: USD 11.90');
  // The browser is closed between the request and its answer.
  const answered = Promise.withResolvers<void>();
  await page.route(at, (route) => arrive(route).then(() => answered.resolve()), { times: 1 });
  await sells(page, card, '1');
  await answered.promise;
  const other = await page.context().newPage();
  await other.goto('/portal/till');
  await shows(other, 'Another tab is sending it');
  await page.close();
  await other.getByText('Open sales').waitFor({ state: 'hidden' });
  // No copy arrives, and the page is loaded again.
  await other.route(at, lose);
  await sells(other, card, '1');
  await shows(other, 'No answer.');
  await other.reload();
  await shows(other, 'Not booked so far.');
  await types(other, card);
  await shows(other, `The outcome of a sale with ${masked} is unknown`);
  await other.getByRole('button', { name: 'Send again' }).click();
  await types(other, `9999${card.slice(4)}`);
  await shows(other, `This is another card than ${masked}`);
  await other.unroute(at);
  await types(other, card);
  await shows(other, 'Remaining balance: USD 9.90');
  // One is set aside and given up: a late copy is refused.
  await other.route(at, lose);
  await sells(other, card, '1');
  await other.getByRole('button', { name: 'Set aside' }).click();
  await other.getByRole('button', { name: 'Give up' }).click();
  await shows(other, 'Given up');
  const late = await cashier.browser.post('/till/redeem', JSON.parse(original));
  assert.equal(late.body.code, '94');
  await other.unroute(at);
  await sells(other, card, '1');
  await shows(other, 'Remaining balance: USD 8.90');
}

async function findsDamaged(t: TestContext, stage: AtTill): Promise<void> {
  const { page } = await openTill(t, stage, stage.cashier);
  const key = JSON.stringify(`scrip.till.${stage.merchantId}.till-damaged`);
  await page.evaluate(`localStorage.setItem(${key}, '{"reference":')`);
  await page.reload();
  await shows(page, 'Redemption, ?');
  await page.getByRole('button', { name: 'Give up' }).click();
  await shows(page, 'Given up');
}

async function endsSession(t: TestContext, stage: AtTill): Promise<void> {
  const { card, cashier } = stage;
  const { page } = await openTill(t, stage, cashier);
  await types(page, card);
  await page.getByLabel('Amount').waitFor();
  await stage.ask(stage.owner, `/users/${cashier.person.id}/end-sessions`, {});
  await types(page, '1');
  const again = page.getByRole('dialog', { name: /session has ended/ });
  await again.getByLabel('Password', { exact: false }).first().fill(PASSWORD);
  await page.keyboard.press('Enter');
  await again.getByLabel('Six digits').fill(cashier.person.code(stage.listening.clock.now()));
  await page.keyboard.press('Enter');
  await shows(page, 'Remaining balance: USD 7.90');
}

test('a till in the browser', { skip }, async (t) => {
  const stage = await openStage(t);
  const { code, pin } = stage.sold;
  const masked = `${code.slice(0, 4)}****${code.slice(8)}`;
  const till = { ...stage, cashier: await stage.join('cashier', true), card: code + pin, masked };
  await t.test('a cashier works with the keyboard alone, and no code or PIN is kept', (sub) =>
    sellsByKeyboard(sub, till),
  );
  await t.test('a lost answer books once, and a reload says what happened', (sub) => losesAnswers(sub, till));
  await t.test('a damaged entry of the store is not forgotten', (sub) => findsDamaged(sub, till));
  await t.test('a session that ends in the middle keeps the sale', (sub) => endsSession(sub, till));
});

test('a cashier activates a card, voids it, and pays out what is left on another', { skip }, async (t) => {
  const stage = await openStage(t);
  const shop = await Till.another(stage.listening);
  const [blank, other] = [await shop.voucher(null), await shop.voucher(10)];
  const changed = await stage.owner.browser.send('PATCH', '/products/DEFAULT', {
    cashOutBelow: 15,
    gtin: '9506000134352',
  });
  assert.equal(changed.status, 200, changed.text);
  const { page, faults } = await openTill(t, stage, await stage.join('cashier', true, shop.merchant.id));
  await page.getByText('Activate', { exact: true }).click();
  // The bar code of a card of a product with a GTIN.
  await types(page, `010950600013435221${blank.serialNumber}`);
  await page.getByLabel('Value').waitFor();
  await types(page, '12');
  await shows(page, 'Activation USD 12.00');
  await page.getByText('Redeem', { exact: true }).first().click();
  await types(page, other.code + other.pin);
  await page.getByRole('button', { name: 'Pay out in cash' }).click();
  await page.getByRole('dialog').getByText('Pay out USD 10.00 in cash?').waitFor();
  // A dialog takes the focus after it has appeared.
  await page.locator('[role=dialog] button:focus').waitFor();
  await page.keyboard.press('Enter');
  await shows(page, 'Cash-out USD 10.00');
  await shows(page, 'Remaining balance: USD 0.00');
  // The receipt of an earlier sale is found by its reference.
  const latest = page.getByRole('region', { name: 'Latest sales' });
  await latest.getByRole('button', { name: /^Activation/ }).click();
  await page.getByRole('button', { name: 'Void' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Void' }).click();
  await shows(page, 'Cancellation USD 12.00');
  await latest.getByRole('button', { name: /^Cash-out/ }).click();
  await shows(page, 'Cash-out USD 10.00');
  assert.deepEqual(faults, []);
  await page.setViewportSize({ width: 360, height: 740 });
  await page.evaluate("localStorage.setItem('scrip.language', 'de')");
  await page.reload();
  await ready(page, 'Kasse');
  await page.getByRole('button', { name: /^Barauszahlung/ }).click();
  await shows(page, 'Restguthaben');
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
});

test('the camera reads a QR code, and says if it may not', { skip }, async (t) => {
  const stage = await openStage(t);
  const { code, pin } = stage.sold;
  const { page } = await openTill(t, stage, await stage.join('owner', true));
  const refuse = (name: string) =>
    `navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', '${name}'); }`;
  const camera = page.getByRole('button', { name: 'Camera' });
  await page.evaluate(refuse('NotAllowedError'));
  await camera.click();
  await shows(page, 'The camera is not permitted');
  await page.keyboard.press('Escape');
  await page.evaluate(refuse('NotFoundError'));
  await camera.click();
  await shows(page, 'There is no camera');
  await page.keyboard.press('Escape');
  // The QR code as it is printed on a card.
  const areas: number[][] = [];
  const skip = () => undefined;
  const pen = { save: skip, restore: skip, translate: skip, scale: skip, fill: skip };
  drawQr({ ...pen, rect: (...area) => areas.push(area) }, code + pin, 0, 0, 1);
  await page.evaluate(`navigator.mediaDevices.getUserMedia = async () => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 290, height: 290 });
    const context = canvas.getContext('2d');
    setInterval(() => {
      context.fillStyle = '#fff';
      context.fillRect(0, 0, 290, 290);
      context.fillStyle = '#000';
      for (const area of ${JSON.stringify(areas)})
        context.fillRect(40 + area[0] * 10, 40 + area[1] * 10, area[2] * 10, area[3] * 10);
    }, 50);
    return canvas.captureStream();
  }`);
  await camera.click();
  await shows(page, 'USD 19.90');
});

/** What the till of a browser knows of a sale. */
type Known = { readonly reference: string; readonly state: string };

const knownBy = async (page: Page): Promise<Known[]> => {
  const stored = await page.evaluate<string[]>(
    "Object.keys(localStorage).filter((key) => key.startsWith('scrip.till.')).map((key) => localStorage[key])",
  );
  return stored.map((text) => JSON.parse(text));
};

/** Decides the sales of a till that was closed in the middle: gives up what is not booked. */
async function decides(page: Page): Promise<void> {
  for (;;) {
    if (!(await knownBy(page)).some(({ state }) => state === 'sent')) return;
    const giveUp = page.getByRole('button', { name: 'Give up' });
    if (await giveUp.isEnabled({ timeout: 1 }).catch(() => false)) await giveUp.click();
    await setTimeout(20);
  }
}

test(`each of ${SALES} redemptions is booked once, or known not to be, while connections are cut`, {
  skip,
}, async (t) => {
  const stage = await openStage(t);
  const { sold, listening } = stage;
  const way = await openWay(listening.baseUrl);
  t.after(way.close);
  const { origin: baseUrl } = new URL(way.url);
  const cashier = await stage.join('cashier', true);
  const { page, sent } = await openTill(t, { listening: { ...listening, baseUrl } }, cashier);
  const known = new Map<string, string>();
  const code = page.getByLabel('Code');
  let cuts = 0;
  // At a random moment before, during or after the booking. The service takes some milliseconds for it.
  let cutting = Promise.resolve();
  let isLoading = false;
  page.on('request', (request) => {
    if (!request.url().endsWith('/till/redeem')) return;
    cutting = setTimeout(Math.random() * 30).then(() => {
      if (isLoading) return;
      cuts++;
      way.cut();
    });
  });
  for (let sale = 1; sale <= SALES; sale++) {
    // The till keeps the latest sales: their times have to differ.
    await page.clock.setFixedTime(listening.clock.now().getTime() + sale * 1_000);
    await types(page, sold.code + sold.pin);
    await page.getByLabel('Amount').waitFor();
    await page.keyboard.type('0.01');
    await page.keyboard.press('Enter');
    // Sometimes the browser is closed in the middle.
    if (sale % 5 === 0) {
      await setTimeout(Math.random() * 30);
      isLoading = true;
      await page.reload();
      await ready(page);
      isLoading = false;
      await decides(page);
    }
    await code.waitFor();
    await cutting;
    for (const { reference, state } of await knownBy(page)) known.set(reference, state);
  }
  const references = [...known.keys()];
  const tried = sent.flatMap((each) => /"reference":"(till-[^"]+)"/.exec(each)?.[1] ?? []);
  assert.deepEqual(new Set(references), new Set(tried), 'the till knows all that it has sent');
  const rows = await listening.service.db.query<{ reference: string; booked: number; reversed: number }>(sql`
select reference, count(*)::integer as booked, count(u.original_id)::integer as reversed
from journal j left join redemption_updates u on u.original_id = j.id
where kind = 'REDEMPTION' and reference = any (${references}::text[]) group by reference`);
  const inForce = new Set(rows.flatMap(({ reference, reversed }) => (reversed === 0 ? [reference] : [])));
  assert.ok(
    rows.every(({ booked }) => booked === 1),
    'none is booked twice',
  );
  for (const [reference, state] of known) assert.equal(state, inForce.has(reference) ? 'booked' : 'given-up');
  const left = 19.9 - inForce.size / 100;
  await types(page, sold.code + sold.pin);
  await shows(page, `USD ${left.toFixed(2)}`);
  t.diagnostic(`${cuts} cuts, ${tried.length} attempts, ${rows.length} booked, ${inForce.size} in force`);
});
