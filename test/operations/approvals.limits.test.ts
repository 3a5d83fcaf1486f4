import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sweepExpired } from '../../src/books/sweep.ts';
import { hashSecret } from '../../src/credentials.ts';
import { sql } from '../../src/db/sql.ts';
import { topUp as topUpFloat } from '../../src/merchants/floats.ts';
import { newToken } from '../../src/people/tokens.ts';
import { createProduct, productDefaults } from '../../src/products/products.ts';
import { type Browser, enrolled, type Person, signIn } from '../support/browser.ts';
import { asOperator, type ListeningService, startListening } from '../support/harness.ts';
import { Operator } from '../support/operator.ts';

/** What one person may move by hand in 24 hours. Each test has a currency of its own. */

let listening: ListeningService;
let fiona: Browser;
let ben: Browser;
let ada: Browser;
let owner: Person;
let financier: Person;
let kiosk: Awaited<ReturnType<ListeningService['createMerchant']>>;

before(async () => {
  listening = await startListening();
  const finance = await enrolled(listening, { email: 'fiona@example.com', roles: ['finance'] });
  [fiona, financier] = [finance.browser, finance.person];
  ben = (await enrolled(listening, { email: 'ben@example.com', roles: ['finance'] })).browser;
  const owning = await enrolled(listening, { email: 'ada@example.com' });
  [ada, owner] = [owning.browser, owning.person];
  kiosk = await listening.createMerchant();
});

after(() => listening?.stop());

const merchant = async () => String((await listening.createMerchant()).id);

async function topUp(by: Browser, currency: string, amount: number, more: object = {}, headers = {}) {
  const body = { merchantId: String(kiosk.id), amount, currency, ...more };
  return by.post('/floats/top-up', body, headers);
}

const statuses = async (...answers: Promise<{ status: number }>[]) =>
  (await Promise.all(answers)).map(({ status }) => status);

/** A voucher with a value, in a currency that no other test uses. */
async function sold(
  currency: string,
  value: number,
  of = kiosk,
  activation: 'immediate' | 'on-activation' = 'immediate',
) {
  const code = `P-${currency}-${activation}`;
  const operator = asOperator(listening.service);
  await createProduct(operator, {
    ...productDefaults(currency, 2),
    activation,
    maxValue: 10_000_000n,
    code,
    name: code,
  });
  await topUpFloat(operator, { merchantId: of.id, currency, amountMinor: BigInt(value) * 100n });
  const body = { reference: randomUUID(), productCode: code, quantity: 1, amount: value };
  const made = await listening.request(of, { method: 'POST', path: '/merchant-client/v2/vouchers', body });
  assert.equal(made.statusCode, '00', JSON.stringify(made.body));
  return made.data.vouchers[0];
}

const voucher = async (currency: string, value: number) => String((await sold(currency, value)).serialNumber);

/** A redemption of a new voucher of 9,000. */
async function redeemedOf(currency: string, amount: number, of = kiosk) {
  const { code, pin, serialNumber } = await sold(currency, 9_000, of);
  const body = { code, pin, amount, reference: `sale ${serialNumber}` };
  const { data } = await listening.request(of, { method: 'POST', path: '/merchant-client/v2/redeem', body });
  return { id: data.transactionId, serialNumber };
}

test('eleven top-ups below the limit are not performed by one person alone', async () => {
  assert.deepEqual((await topUp(fiona, 'EUR', 9_999)).status, 200);
  assert.deepEqual((await topUp(fiona, 'EUR', 1)).status, 200);
  const more = await topUp(fiona, 'EUR', 0.01);
  assert.equal(more.status, 202, more.text);
  assert.equal(more.body.approval.effect[0].action, 'float.top-up');
});

test('ten requests at the same moment do not pass the limit together', async () => {
  const sent = Array.from({ length: 10 }, () => topUp(fiona, 'GBP', 4_000));
  assert.deepEqual((await statuses(...sent)).sort(), [200, 200, ...Array(8).fill(202)]);
});

test('a person counts with all of their tokens, and a subject counts whoever moves it', async () => {
  const other = await merchant();
  const token = newToken(listening.service);
  const now = listening.clock.now();
  await listening.service.db.query(sql`
insert into operator_tokens (name, token_hash, prefix, roles, step_up, created_by, user_id, expires_at,
  created_at)
values ('export', ${hashSecret(token)}, 'scrop_test', '{finance}', true, 'fiona', ${financier.id},
  ${now}::timestamptz + interval '1 hour', ${now})`);
  const asToken = { authorization: `Bearer ${token}`, cookie: undefined };
  assert.equal((await topUp(fiona, 'CHF', 6_000, {}, asToken)).status, 200);
  // Another person, the same float.
  assert.equal((await topUp(ben, 'CHF', 4_001)).status, 202);
  // The same person, another float.
  assert.equal((await topUp(fiona, 'CHF', 4_001, { merchantId: other })).status, 202);
  assert.equal((await topUp(ben, 'CHF', 4_000, { merchantId: other })).status, 200);
});

test('each currency has a limit of its own, which fits its number of decimals', async () => {
  assert.deepEqual(await statuses(topUp(fiona, 'KWD', 3_000)), [200]);
  assert.deepEqual(await statuses(topUp(ben, 'BHD', 10_000)), [202]);
  assert.deepEqual(await statuses(topUp(fiona, 'JPY', 1_000_000)), [200]);
  assert.deepEqual(await statuses(topUp(fiona, 'JPY', 1)), [202]);
});

test('a limit is set for a currency by two people, and holds at once', async () => {
  const proposed = await ada.post('/settings/limits/SEK', { amount: 50 });
  assert.equal(proposed.status, 202, proposed.text);
  const [{ before: old, after: now }] = proposed.body.approval.effect;
  assert.deepEqual([old, now], [{ amount: 'SEK 10000.00' }, { amount: 'SEK 50.00' }]);
  const second = (await enrolled(listening, { email: 'olga@example.com' })).browser;
  const { status, text } = await second.post(`/approvals/${proposed.body.approval.id}/approve`);
  assert.equal(status, 200, text);
  const { limits } = (await ada.get('/settings')).body;
  assert.deepEqual(limits.find(isOf('SEK')), { currency: 'SEK', amount: 50, isDefault: false });
  assert.deepEqual(await statuses(topUp(ben, 'SEK', 50)), [200]);
  assert.deepEqual(await statuses(topUp(ben, 'SEK', 1)), [202]);
});

const isOf = (currency: string) => (each: { currency: string }) => each.currency === currency;

test('adjustments, cash-outs, corrections and cancellations count together', async () => {
  const serialNumber = await voucher('NOK', 9_000);
  const change = (path: string, body: object) => fiona.post(`/vouchers/${serialNumber}/${path}`, body);
  const adjusted = await change('adjust', { amount: -6_000, reference: 'a', reason: 'r' });
  assert.equal(adjusted.status, 200, adjusted.text);
  const out = await change('cash-out', { amount: 3_000, reference: 'b' });
  assert.equal(out.status, 200, out.text);
  const more = await change('adjust', { amount: 1_001, reference: 'c', reason: 'r' });
  assert.equal(more.status, 202, more.text);
  const small = await voucher('NOK', 10);
  assert.deepEqual(await statuses(ada.post(`/vouchers/${small}/cancel`, {})), [200]);
});

test('a correction counts what it moves in either direction, for the person and for the merchant', async () => {
  const other = await listening.createMerchant();
  const redeemed = (amount: number, of = kiosk) => redeemedOf('MXN', amount, of);
  const correct = (by: Browser, { id }: { id: string }, amount: number) =>
    by.post(`/redemptions/${id}/correct`, { amount, reason: 'mistyped' });
  const [first, second] = [await redeemed(9_000), await redeemed(9_000)];
  const [raised, ofOther] = [await redeemed(1_000, other), await redeemed(9_000, other)];
  assert.deepEqual(await statuses(correct(fiona, first, 0)), [200]);
  assert.deepEqual(await statuses(correct(fiona, raised, 3_000)), [202]);
  assert.deepEqual(await statuses(correct(ben, second, 0)), [202]);
  assert.deepEqual(await statuses(correct(ben, ofOther, 0)), [200]);
  const subjects = await listening.service.db.query<{ subject: string }>(sql`
select subject from audit where action = 'redemption.correct' order by sequence`);
  const expected = [first, ofOther].map(({ serialNumber }) => `voucher ${serialNumber}`);
  assert.deepEqual(
    subjects.map(({ subject }) => subject),
    expected,
  );
});

test('refunds count for the person, and one above the limit is proposed', async () => {
  const [first, second] = [await redeemedOf('NZD', 9_000), await redeemedOf('NZD', 9_000)];
  const refund = ({ id }: { id: string }, amount: number) => {
    const body = { amount, reference: randomUUID(), reason: 'goods returned' };
    return fiona.post(`/redemptions/${id}/refund`, body);
  };
  assert.deepEqual(await statuses(refund(first, 9_000)), [200]);
  const more = await refund(second, 1_001);
  assert.equal(more.status, 202, more.text);
  assert.equal(more.body.approval.effect[0].action, 'redemption.refund');
  assert.deepEqual(await statuses(refund(second, 1_000)), [200]);
});

test('a bulk change counts all its vouchers when it is ordered', async () => {
  const serials = [await voucher('DKK', 6_000), await voucher('DKK', 5_000)];
  const cancel = (serialNumbers: string[]) => ada.post('/vouchers/bulk/cancel', { serialNumbers });
  // One that is not active yet counts with its price.
  const stock = await sold('DKK', 6_000, kiosk, 'on-activation');
  for (const list of [serials, [String(stock.serialNumber), serials[1] ?? '']]) {
    const both = await cancel(list);
    assert.ok(both.body.approval, both.text);
  }
  const [one, other] = [await cancel(serials.slice(0, 1)), await cancel(serials.slice(1))];
  assert.deepEqual([one.body.state, other.body.approval === undefined], ['WAITING', false], other.text);
});

test('what two people agreed on does not count, and neither does a proposal', async () => {
  const { body } = await topUp(fiona, 'PLN', 20_000);
  assert.equal((await ben.post(`/approvals/${body.approval.id}/approve`)).status, 200);
  assert.deepEqual(await statuses(topUp(fiona, 'PLN', 30_000)), [202]);
  assert.deepEqual(await statuses(topUp(fiona, 'PLN', 10_000)), [200]);
});

test('every movement by hand asks for a second factor, but a proposal does not', async () => {
  await fiona.get('/session');
  const step = 5 * 60_000 + 1;
  listening.clock.advance(step);
  const small = await topUp(fiona, 'CZK', 5);
  assert.deepEqual([small.status, small.body.code], [403, 'step-up-required'], small.text);
  assert.equal((await topUp(fiona, 'CZK', 10_001)).status, 202);
  fiona = await signIn(listening, financier);
  assert.equal((await topUp(fiona, 'CZK', 5)).status, 200);
});

test('the command line counts as one, once two people could approve', async () => {
  const operator = Operator.at(listening, {});
  const put = (amount: string, ...more: string[]) =>
    operator.run`float top-up --merchant ${kiosk.id} --currency HUF --amount ${amount} ${more}`;
  assert.equal((await put('10000')).status, 0);
  assert.match((await put('1')).err, /--break-glass and --reason/);
  assert.equal((await put('1', '--break-glass', '--reason', 'nobody is there')).status, 0);
  // It does not use up what people may move.
  assert.deepEqual(await statuses(topUp(ada, 'HUF', 10_000)), [403]);
  ada = await signIn(listening, owner);
  assert.deepEqual(await statuses(topUp(ada, 'HUF', 10_000)), [200]);
});

test('what was moved more than 24 hours ago does not count any more', async () => {
  fiona = await signIn(listening, financier);
  assert.deepEqual(await statuses(topUp(fiona, 'RON', 10_000)), [200]);
  listening.clock.advance(24 * 3_600_000 - 60_000);
  fiona = await signIn(listening, financier);
  assert.deepEqual(await statuses(topUp(fiona, 'RON', 1)), [202]);
  listening.clock.advance(60_000);
  assert.deepEqual(await statuses(topUp(fiona, 'RON', 10_000)), [200]);
});

test('an extension that gives expired money back is approved by two people, alone and in a bulk change', async () => {
  ada = await signIn(listening, owner);
  const serials = [await voucher('NZD', 5), await voucher('NZD', 7)];
  const valid = await voucher('AUD', 5);
  const extend = (serial: string, expiry: string) => ada.post(`/vouchers/${serial}/extend`, { expiry });
  assert.deepEqual(await statuses(extend(valid, '2099-01-31')), [200]);
  listening.clock.advance(366 * 24 * 3_600_000);
  await sweepExpired(listening.service);
  ada = await signIn(listening, owner);
  const [one = ''] = serials;
  assert.deepEqual(await statuses(extend(valid, '2099-02-28')), [200]);
  const single = await extend(one, '2099-01-31');
  assert.equal(single.status, 202, single.text);
  assert.equal(single.body.approval.effect[0].after.amount, 'NZD 5.00');
  const bulk = await ada.post('/vouchers/bulk', {
    action: 'extend',
    serialNumbers: serials,
    expiry: '2099-01-31',
  });
  assert.ok(bulk.body.approval, bulk.text);
});
