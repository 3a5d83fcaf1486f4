import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { agreements } from '../../console/src/i18n/de.agreements.ts';
import { createKey } from '../../src/api-keys/keys.ts';
import { topUp } from '../../src/merchants/floats.ts';
import type { AnyOperation, Caller, Fields } from '../../src/operation.ts';
import { previewEffect } from '../../src/operations/effect.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { actorOf, type Principal } from '../../src/principal.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { product, type Sold, sell, spend } from '../support/books.ts';
import { invited } from '../support/browser.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { ofFile } from '../support/scope.ts';
import { close, openScene, type Scene, tradedDay } from '../support/settlements.ts';

/** A second person sees in words what it approves: whom it concerns, how much, and where to look. */

const NAMED = OPERATIONS.filter(({ approval }) => approval?.people === 2);
const t = ofFile();
let scene: Scene;
let caller: Caller;
/** A voucher of 19.90, another one that was spent in part, and one that expired with its money unclaimed. */
let card: Sold;
let lapsed: Sold;
let made: Readonly<
  Record<'keyId' | 'topUp' | 'sale' | 'batch' | 'replaced' | 'user' | 'merchantUser' | 'draft', string>
>;

before(async () => {
  scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  const { service } = ledger.started;
  const { operator } = ledger;
  const productCode = await product(operator, 'SHORT', 'unclaimed');
  [lapsed] = (await sell(issuer, 1, 30, { productCode })) as [Sold];
  const [old] = (await sell(issuer, 1, 15)) as [Sold];
  card = await tradedDay(scene);
  await ledger.at('2026-03-05T08:00:00Z');
  await close(ledger);
  await replaceVoucher(operator, old.serial);
  const { transactionId: sale } = await spend(shop, card, 5, 'sale 3');
  const funded = await topUp(operator, {
    ...{ merchantId: issuer.merchant.id, currency: 'USD', amountMinor: 4_000n, reference: 'paid in' },
  });
  const [row] = await ledger.sql<{ id: string }>(
    'select transaction_id as id from scrip.batches order by id offset 2 limit 1',
  );
  const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id, lastDay: '2026-03-01' });
  const owner = await invited(service, { email: 'ada@example.com' });
  const user = await invited(service, { email: 'vic@example.com', roles: ['auditor'] });
  const cashier = { email: 'kim@shop.example', roles: ['viewer'], merchantId: shop.merchant.id };
  const merchantUser = await invited(service, cashier);
  await ledger.sql(
    `update scrip.users set enrolled_at = now(), invitation_hash = null, invitation_expires_at = null where email in ('ada@example.com', 'vic@example.com')`,
  );
  await ledger.sql(`update scrip.users set confirmed_at = null where email = 'vic@example.com'`);
  const { keyId } = await createKey(operator, issuer.merchant.id);
  made = {
    ...{ topUp: funded.transactionId, sale, batch: String(row?.id), replaced: String(old.serial) },
    keyId,
    ...{ user: String(user.userId), merchantUser: String(merchantUser.userId), draft: String(draft?.id) },
  };
  const person = { kind: 'user', id: String(owner.userId), userId: owner.userId, name: 'ada@example.com' };
  const principal = { ...COMMAND_LINE, ...person } as Principal;
  caller = { service, principal, actor: actorOf(principal, 'as agreed'), isAgreed: true };
});

const shopId = () => String(scene.shop.merchant.id);
const issuerId = () => String(scene.issuer.merchant.id);
const paid = { reference: 'payout', bankReference: 'B 1', valueDate: '2026-03-05' };

type Case = () => Fields | Promise<Fields>;

/** An input of each operation that needs two people, or of which two people may have to agree. */
const CASES: Readonly<Record<string, Case>> = {
  'merchant.create': () => ({ name: 'Corner shop', float: 20_000 }),
  'api-key.create': () => ({ merchantId: shopId(), scopes: ['generate', 'download'] }),
  'api-key.rotate': () => ({ keyId: made.keyId }),
  'float.top-up': () => ({ merchantId: issuerId(), amount: 20_000 }),
  'float.refund': () => ({ merchantId: issuerId(), amount: 5, reference: 'back' }),
  'float.correct': () => ({ transactionId: made.topUp, reference: 'wrong' }),
  'voucher.adjust': () => ({ serialNumber: String(card.serial), amount: 5, reference: 'more' }),
  'voucher.cash-out': () => ({ serialNumber: String(card.serial), merchantId: shopId(), reference: 'cash' }),
  'voucher.escheat': () => ({ serialNumber: String(card.serial), reference: 'state' }),
  'voucher.extend': () => ({ serialNumber: String(lapsed.serial), expiry: '2026-06-30' }),
  'voucher.cancel': () => ({ serialNumber: String(card.serial) }),
  'voucher.bulk': () => ({ action: 'unblock', batch: made.batch }),
  'voucher.bulk-cancel': () => ({ serialNumbers: [String(card.serial)] }),
  'redemption.correct': () => ({ transactionId: made.sale, amount: 2, reason: 'as agreed' }),
  'redemption.refund': () => ({ transactionId: made.sale, amount: 2, reference: 'part', reason: 'returned' }),
  'sheets.order': () => ({ transactionId: made.batch }),
  'sheets.order-card': () => ({ serialNumber: made.replaced }),
  'webhook.add': () => ({ merchantId: shopId(), url: 'https://93.184.216.34/events', full: true }),
  'token.create': () => ({ roles: ['auditor'], for: 'vic@example.com', stepUp: true }),
  'user.invite': () => ({ email: 'new@shop.example', roles: ['viewer'], merchantId: shopId() }),
  'user.set-roles': () => ({ id: made.merchantUser, roles: ['cashier'] }),
  'user.reset-2fa': () => ({ id: made.merchantUser }),
  'user.confirm': () => ({ id: made.user }),
  'settings.set': () => ({ approvalVouchers: 5 }),
  'settings.limit': () => ({ currency: 'USD', amount: 5 }),
  'bank.set-pay-in': () => ({ currency: 'USD', iban: 'DE89370400440532013000' }),
  'books.transfer': () => ({ account: 'goodwill', amount: 5, currency: 'USD', reference: 'own' }),
  'books.escheat': () => ({ serialNumbers: [String(lapsed.serial)], currency: 'USD', reference: 'state' }),
  'settlement.terms': () => ({ merchantId: issuerId(), from: '2026-03-06', commission: 2.5, payee: 'House' }),
  'settlement.approve': () => ({ id: made.draft }),
  async 'settlement.pay'() {
    await approve(scene.ledger.operator, Number(made.draft));
    return { id: made.draft, ...paid };
  },
  async 'settlement.returned'() {
    await pay(scene.ledger.operator, { settlementId: Number(made.draft), ...paid });
    return { id: made.draft, ...paid, reference: 'came back' };
  },
  // The last one, since it needs books without a closed day.
  async 'books.opening'() {
    await scene.ledger.sql('delete from scrip.book_closings');
    const merchantId = String(scene.shop.merchant.id);
    return { account: 'settlement', merchantId, amount: 480, currency: 'USD', reference: 'takeover' };
  },
};

/** Operations that concern no merchant. */
const OF_OPERATOR = [
  'token.create',
  'user.confirm',
  'settings.set',
  'settings.limit',
  'bank.set-pay-in',
  'books.transfer',
  'books.escheat',
];
const MONEY = /\b[A-Z]{3} -?\d+(\.\d+)?\b/;
/** The pages of the console. */
const PAGES = [...readFileSync('console/src/console.tsx', 'utf8').matchAll(/'(\/[^']*)': \(\) =>/g)].map(
  ([, path = '']) => new RegExp(`^${path.replace(/\$\w+/g, '[^/]+')}$`),
);

test('each operation of two people is tried below', () => {
  assert.deepEqual(Object.keys(CASES).sort(), NAMED.map(({ name }) => name).sort());
});

for (const [name, input] of Object.entries(CASES))
  test(`what two people agree on with ${name} names the merchant, the money and a page`, async () => {
    const operation = NAMED.find((each) => each.name === name) as AnyOperation;
    const { effect, statement } = await previewEffect(operation, caller, await input());
    assert.ok(statement);
    const { text, sentence, values, link } = statement;
    const parts = [...sentence.matchAll(/\{(\w+)\}/g)].map(([, part = '']) => part);
    const shown = Object.keys(values);
    for (const part of parts) assert.ok(shown.includes(part) && values[part] !== '', `${part} in ${text}`);
    assert.match(text, /^[A-Z][^{}]+$/);
    if (!OF_OPERATOR.includes(name)) {
      const names = [scene.issuer, scene.shop].map(({ merchant }) => merchant.name);
      assert.ok(
        [...names, 'Corner shop'].some((each) => text.includes(each)),
        text,
      );
    }
    // What the audit will name as money is in the sentence.
    if (MONEY.test(JSON.stringify(effect))) assert.match(text, MONEY);
    const [path = ''] = link.split('?');
    assert.ok(
      PAGES.some((page) => page.test(path)),
      link,
    );
    const german = agreements[name] ?? '';
    assert.deepEqual([...german.matchAll(/\{(\w+)\}/g)].map(([, part = '']) => part).sort(), parts.sort());
  });
