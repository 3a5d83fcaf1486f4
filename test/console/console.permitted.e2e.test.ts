import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { labels } from '../../console/src/i18n/en.labels.ts';
import { wordsOf } from '../../console/src/ui/words-of.ts';
import { sql } from '../../src/db/sql.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { sell, spend } from '../support/books.ts';
import { openBrowser, pageOf, whyNoBrowser } from '../support/chromium.ts';
import { goes, openStage, type Stage } from '../support/console.scene.ts';
import { asOperator } from '../support/harness.ts';

/**
 * What a page offers on a thing, in each state of it: no button that the service can only refuse, and none
 * missing that it would accept.
 */

const skip = await whyNoBrowser();
const words = wordsOf(labels);
const operationOf = (name: string) =>
  OPERATIONS.find((each) => each.name === name) ?? assert.fail(`there is no operation ${name}`);

const REASON = { reason: 'a test' };

type Given = Readonly<Record<string, unknown>>;
/** A thing in a state. */
type Thing = {
  readonly page: string;
  readonly given: Given;
  /** What the menu of its row is called after, if it is a row. */
  readonly row?: string;
};
type Kind = {
  /** Makes a thing in each state. */
  readonly states: Readonly<Record<string, () => Promise<Thing>>>;
  /** The operations on it, with the rest of their input. */
  readonly operations: Readonly<Record<string, Given>>;
  /** What the service accepts although it changes nothing, or what is left to another page. */
  readonly hidden?: readonly string[];
};

let made = 0;

/** Runs an operation as the command line does, without a second person. */
async function runs({ listening }: Stage, name: string, input: Given): Promise<Given> {
  const operator = asOperator(listening.service);
  const caller = { ...operator, actor: { ...operator.actor, ...REASON } };
  return (await operationOf(name).run(caller as never, input as never)) as Given;
}

/** Sends an operation as the owner. @returns why it is refused, if it is */
async function refusal({ owner }: Stage, name: string, given: Given): Promise<string | undefined> {
  const { method = 'POST', path, input: schema } = operationOf(name);
  const known = Object.entries({ reference: `reference ${++made}`, ...REASON, ...given });
  const input: Record<string, unknown> = Object.fromEntries(
    known.filter(([field]) => field in schema.properties),
  );
  const address = path.replace(/:(\w+)/g, (_, field: string) => {
    const value = String(input[field]);
    delete input[field];
    return value;
  });
  const { status, body } = await owner.browser.send(method, address, input);
  return status < 400 ? undefined : `${status} ${body?.detail ?? body?.title}`;
}

/** The owner shows the second factor again. */
async function confirms({ owner: { person, browser }, listening: { clock }, scene }: Stage): Promise<void> {
  clock.advance(30_000);
  await scene.ledger.at(clock.now());
  const { status, text } = await browser.post('/session/step-up', { totp: person.code(clock.now()) });
  assert.equal(status, 200, text);
}

/** The operations that the page of a thing offers, or its row. */
async function offeredOn(page: Page, { page: path, row }: Thing, names: readonly string[]) {
  await goes(page, path);
  const main = page.getByRole('main');
  const menu = main.getByRole('button', { name: row ? `Actions: ${row}` : 'Actions', exact: true });
  const part = row ? main.getByRole('row').filter({ hasText: row }) : main;
  const shown = (await part.getByRole('button').allInnerTexts()).map((text) => text.trim());
  if ((await menu.count()) > 0) {
    await menu.click();
    await page.getByRole('menu').waitFor();
    shown.push(...(await page.getByRole('menuitem').allInnerTexts()));
    await page.keyboard.press('Escape');
  }
  return names.filter((name) => shown.includes(words.action(name)));
}

/** Compares what is offered in each state with what the service accepts. */
async function compare(stage: Stage, browser: Browser, { states, operations, hidden = [] }: Kind) {
  const wrong: string[] = [];
  const all = Object.keys(operations);
  for (const [state, make] of Object.entries(states)) {
    await confirms(stage);
    let thing = await make();
    // The session has changed with the second factor.
    const { page } = await pageOf(browser, stage.listening, stage.owner.browser);
    const offered = await offeredOn(page, thing, all);
    assert.ok(offered.length > 0 || /ed$/.test(state), `nothing is offered on one that is ${state}`);
    for (const name of all) {
      const refused = await refusal(stage, name, { ...thing.given, ...operations[name] });
      // What was accepted has changed it.
      if (refused === undefined) thing = await make();
      if (offered.includes(name) && refused)
        wrong.push(`${state}: ${name} is offered, and refused: ${refused}`);
      if (!offered.includes(name) && !refused && !hidden.includes(name))
        wrong.push(`${state}: ${name} is not offered`);
    }
  }
  assert.deepEqual(wrong, []);
}

function vouchers(stage: Stage): Kind {
  const { issuer, shop } = stage.scene;
  const sold = async (value: number | undefined, change?: string, input: Given = {}) => {
    const [one] = await sell(issuer, 1, value);
    const given = { serialNumber: String(one.serial) };
    if (change) await runs(stage, change, { ...given, ...input });
    return { one, thing: { page: `/vouchers/${one.serial}`, given } };
  };
  return {
    states: {
      active: async () => (await sold(60)).thing,
      'not active': async () => (await sold(undefined)).thing,
      blocked: async () => (await sold(60, 'voucher.block')).thing,
      redeemed: async () => {
        const { one, thing } = await sold(60);
        await spend(shop, one, 60, `all of it ${++made}`);
        return thing;
      },
      replaced: async () => (await sold(60, 'voucher.replace')).thing,
      canceled: async () => (await sold(60, 'voucher.cancel', REASON)).thing,
    },
    operations: {
      'voucher.block': {},
      'voucher.unblock': {},
      'voucher.unlock-pin': {},
      'voucher.extend': { expiry: '2029-12-31' },
      'voucher.replace': {},
      'voucher.adjust': { amount: 1 },
      'voucher.cash-out': {},
      'voucher.escheat': {},
      'voucher.cancel': {},
    },
    hidden: ['voucher.block', 'voucher.unblock', 'voucher.unlock-pin'],
  };
}

function keys(stage: Stage): Kind {
  const merchantId = stage.merchantId;
  const key = async (change?: string) => {
    const { keyId } = await runs(stage, 'api-key.create', { merchantId });
    if (change) await runs(stage, change, { keyId });
    return { page: `/merchants/${merchantId}?tab=keys`, given: { keyId }, row: String(keyId) };
  };
  return {
    states: {
      active: () => key(),
      rotated: () => key('api-key.rotate'),
      revoked: () => key('api-key.revoke'),
    },
    operations: {
      'api-key.rotate': {},
      'api-key.rename': { name: 'till 1' },
      'api-key.limit': { perSecond: 5 },
      'api-key.pardon': {},
      'api-key.revoke': {},
    },
    hidden: ['api-key.pardon', 'api-key.revoke', 'api-key.rename', 'api-key.limit'],
  };
}

function tokens(stage: Stage): Kind {
  const token = async (change?: string) => {
    const name = `nightly ${++made}`;
    const { id } = await stage.ask(stage.owner, '/tokens', { name, roles: ['auditor'] });
    if (change) await runs(stage, change, { id });
    return { page: '/tokens', given: { id }, row: name };
  };
  return {
    states: { active: () => token(), revoked: () => token('token.revoke') },
    operations: { 'token.revoke': {} },
    hidden: ['token.revoke'],
  };
}

function webhooks(stage: Stage): Kind {
  const hook = async (how: Given, change?: string) => {
    const { id } = await stage.ask(stage.owner, '/webhooks', { merchantId: stage.merchantId, ...how });
    if (change)
      await stage.listening.service.db.query(sql`
update webhook_endpoints set disabled_at = now(), disabled_reason = 'test' where id = ${Number(id)}`);
    return { page: `/webhooks/${id}`, given: { id } };
  };
  const url = 'https://93.184.216.34/events';
  return {
    states: {
      enabled: () => hook({ url }),
      disabled: () => hook({ url }, 'disable'),
      pulled: () => hook({ pull: true }),
    },
    operations: {
      'webhook.enable': {},
      'webhook.resend': { failedSince: '2026-03-01T00:00:00Z' },
      'webhook.rotate': {},
      'webhook.remove': {},
    },
    hidden: ['webhook.enable'],
  };
}

function products(stage: Stage): Kind {
  const product = async (change?: string) => {
    const code = `P${++made}`;
    await runs(stage, 'product.create', { code, name: 'Gift card' });
    if (change) await runs(stage, change, { code });
    return { page: `/products/${code}`, given: { code } };
  };
  return {
    states: { 'on sale': () => product(), 'off sale': () => product('product.off-sale') },
    operations: { 'product.set': { name: 'Other' }, 'product.on-sale': {}, 'product.off-sale': {} },
    hidden: ['product.on-sale', 'product.off-sale'],
  };
}

function merchants(stage: Stage): Kind {
  const merchant = async (change?: string, float?: number) => {
    const { id } = await runs(stage, 'merchant.create', { name: `Kiosk ${++made}`, ...(float && { float }) });
    if (change) await runs(stage, change, { id: String(id) });
    return { page: `/merchants/${id}`, given: { id: String(id), merchantId: String(id) } };
  };
  return {
    states: {
      active: () => merchant(undefined, 100),
      'without a float': () => merchant(),
      suspended: () => merchant('merchant.suspend'),
    },
    operations: {
      'float.top-up': { amount: 1 },
      'merchant.set': { name: 'Other' },
      'float.warn': { below: 1 },
      'float.refund': { amount: 1 },
      'merchant.suspend': {},
      'merchant.resume': {},
    },
    hidden: ['merchant.suspend', 'merchant.resume'],
  };
}

function users(stage: Stage): Kind {
  const user = async (change?: string) => {
    const { id, email } = (await stage.join('support')).person;
    if (change) await runs(stage, change, { id: String(id) });
    return { page: '/users', given: { id: String(id) }, row: email };
  };
  const invited = async () => {
    const email = `invited-${++made}@example.com`;
    const { id } = await runs(stage, 'user.invite', { email, roles: ['support'] });
    return { page: '/users', given: { id: String(id) }, row: email };
  };
  return {
    states: { invited, active: () => user(), disabled: () => user('user.disable') },
    operations: {
      'user.set-roles': { roles: ['operations'] },
      'user.remove': {},
      'user.end-sessions': {},
      'user.reset-2fa': {},
      'user.enable': {},
      'user.erase': {},
      'user.disable': {},
    },
    // Who has not enrolled gets another link by a new invitation.
    hidden: ['user.disable', 'user.enable', 'user.end-sessions', 'user.reset-2fa', 'user.set-roles'],
  };
}

function batches(stage: Stage): Kind {
  const batch = async (change?: string) => {
    const [one] = await sell(stage.scene.issuer, 1, 60);
    const { batch: transactionId } = await stage.ask(stage.owner, `/vouchers/${one.serial}`);
    if (change) await runs(stage, change, { serialNumber: String(one.serial), ...REASON });
    return { page: `/batches/${transactionId}`, given: { transactionId } };
  };
  return {
    states: { completed: () => batch(), canceled: () => batch('voucher.cancel') },
    operations: { 'batch.cancel': {}, 'sheets.order': {} },
  };
}

function transactions(stage: Stage): Kind {
  const { issuer, shop } = stage.scene;
  const redeemed = async (change?: string, amount = 5) => {
    const [one] = await sell(issuer, 1, 60);
    const { transactionId } = await spend(shop, one, 5, `sale ${++made} of a state`);
    const given = { transactionId };
    const reference = `change ${++made}`;
    if (change) await runs(stage, change, { ...given, amount, reference, ...REASON });
    return { page: `/transactions/${transactionId}`, given };
  };
  // One that was corrected is not told apart: that would read the rows of its merchant since then.
  const toppedUp = async () => {
    const merchantId = String(issuer.merchant.id);
    const { transactionId } = await runs(stage, 'float.top-up', { merchantId, amount: 5 });
    return { page: `/transactions/${transactionId}`, given: { transactionId } };
  };
  return {
    states: {
      redeemed: () => redeemed(),
      'partly refunded': () => redeemed('redemption.refund', 2),
      refunded: () => redeemed('redemption.refund'),
      corrected: () => redeemed('redemption.correct', 3),
      reversed: () => redeemed('redemption.correct', 0),
      'topped up': toppedUp,
    },
    operations: {
      'redemption.refund': { amount: 1 },
      // At least what was refunded.
      'redemption.correct': { amount: 4 },
      'float.correct': {},
    },
  };
}

/** What is on a settlement is proposed, and leaves its state. */
function settlements(stage: Stage): Kind {
  let id: string | undefined;
  const settlement = async (change?: string) => {
    const { merchantId } = stage;
    id ??= String(((await runs(stage, 'settlement.draft', { merchantId }))['items'] as Given[])[0]?.['id']);
    const { state } = await stage.ask(stage.owner, `/settlements/${id}`);
    const references = { reference: `payout ${++made}`, bankReference: `bank ${made}` };
    const isBefore = state === (change === 'settlement.approve' ? 'DRAFT' : 'APPROVED');
    if (change && isBefore) await runs(stage, change, { id, ...references });
    return { page: `/settlements/${id}`, given: { id } };
  };
  return {
    states: {
      draft: () => settlement(),
      approved: () => settlement('settlement.approve'),
      paid: () => settlement('settlement.pay'),
    },
    operations: {
      'settlement.approve': {},
      'settlement.pay': { bankReference: 'bank' },
      'settlement.returned': { bankReference: 'bank' },
    },
    hidden: ['settlement.approve'],
  };
}

const KINDS = {
  ...{ vouchers, keys, tokens, webhooks, products, merchants },
  ...{ users, batches, transactions, settlements },
};

for (const [noun, kind] of Object.entries(KINDS))
  test(`of ${noun}, the page offers what the service accepts in each state`, { skip }, async (t) => {
    const stage = await openStage(t);
    await compare(stage, openBrowser(t), kind(stage));
  });
