import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import type { Context } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { newId } from '../../src/ledger/id.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { isoDay } from '../../src/time.ts';
import { flushDeclines, insertDeclines, recordDecline } from '../../src/vouchers/declines.ts';
import { operatorApi } from '../support/operator.api.ts';
import { type Made, makeVouchers } from '../support/operator.ts';
import { asOwner } from '../support/owner.ts';

const api = operatorApi();
let merchantId: string;
let context: Context;
let vouchers: Made[];

before(async () => {
  const merchant = await api.testService.createMerchant();
  merchantId = String(merchant.id);
  context = (await authenticate(api.testService.service, merchant.authorization)).context;
  vouchers = await makeVouchers(context, 'support-1', 10);
});

type ListAnswer = {
  status: number;
  body: { items: { serialNumber: string }[]; nextCursor: string | null };
};

/** The context of the merchant at the current time. */
const now = (): Context => ({ ...context, now: api.testService.clock.now() });
const first = () => vouchers[0] as Made;
const serialOf = ({ serialNumber }: Made) => String(serialNumber);

async function find(body: object, headers?: Record<string, string>) {
  const { status, body: answer } = await api.post('/vouchers/find', body, headers);
  assert.equal(status, 200, JSON.stringify(answer));
  return answer.items.map((each: { serialNumber: string }) => each.serialNumber);
}

describe('the operator API for support', () => {
  test('finds a voucher by code, masked code, reference, transaction and batch', async () => {
    const { code, pin } = first();
    const done = await redeem(now(), { code, pin, amount: 5, reference: 'sale 👩‍🍳 1' });
    const { transactionId } = done.transaction;
    const own = [serialOf(first())];
    assert.deepEqual(await find({ code }), own);
    assert.ok((await find({ masked: `${code.slice(0, 4)}****${code.slice(-4)}` })).includes(own[0]));
    assert.deepEqual(await find({ reference: 'sale 👩‍🍳 1', merchantId }), own);
    assert.deepEqual(await find({ transactionId }), own);
    assert.equal((await find({ reference: 'support-1', merchantId })).length, 10);
    const { body } = await api.get(`/vouchers/${own[0]}`);
    assert.equal((await find({ batch: body.batch })).length, 10);
    assert.equal((await find({ transactionId: body.batch })).length, 10);
    assert.equal((await find({ batch: body.batch, state: 'BLOCKED' })).length, 0);
    const shown = await api.get(`/transactions/${transactionId}`);
    assert.deepEqual(
      [shown.body.amount, shown.body.kind, shown.body.reference],
      [5, 'REDEMPTION', 'sale 👩‍🍳 1'],
    );
    const named = await api.post('/transactions/find', { reference: 'sale 👩‍🍳 1', merchantId });
    assert.deepEqual(named.body, shown.body);
  });

  test('finds what a reference names without its merchant', async () => {
    const search = async (reference: string) =>
      (await api.post('/transactions/search', { reference })).body.items;
    const [named, ...others] = await search('sale 👩‍🍳 1');
    assert.deepEqual(others, []);
    assert.deepEqual(
      [named.operation, named.merchantId, named.serialNumber],
      ['redeem', merchantId, serialOf(first())],
    );
    const shown = await api.get(`/transactions/${named.transactionId}`);
    assert.equal(shown.body.reference, 'sale 👩‍🍳 1');
    const [ordered] = await search('support-1');
    const { body: batch } = await api.get(`/batches/${ordered.transactionId}`);
    assert.deepEqual([ordered.operation, batch.reference], ['generate', 'support-1']);
    assert.deepEqual(await search('nothing has this reference'), []);
  });

  test('lists the vouchers of a batch by pages without a gap, and those in one state', async () => {
    await api.post(`/vouchers/${serialOf(vouchers[9] as Made)}/block`, {});
    const { body } = await api.get(`/vouchers/${serialOf(first())}`);
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const page = await api.get(`/vouchers?batch=${body.batch}&limit=3${more}`);
      seen.push(...page.body.items.map((each: { serialNumber: string }) => each.serialNumber));
      cursor = page.body.nextCursor;
    }
    assert.deepEqual(seen, vouchers.map(serialOf).reverse());
    const blocked = await api.get(`/vouchers?batch=${body.batch}&state=BLOCKED`);
    assert.deepEqual(
      blocked.body.items.map((each: { serialNumber: string }) => each.serialNumber),
      [serialOf(vouchers[9] as Made)],
    );
  });

  test('lists vouchers of several batches, newest first, by merchant, product and balance', async () => {
    const other = await api.testService.createMerchant();
    const { context: till } = await authenticate(api.testService.service, other.authorization);
    const made: Made[] = [];
    for (const [index, count] of [2, 4, 1].entries())
      made.push(...(await makeVouchers(till, `listed-${index}`, count)));
    const { code, pin } = made[6] as Made;
    await redeem({ ...till, now: api.testService.clock.now() }, { code, pin, amount: 12.5 });
    const list = async (filters: string, limit = 50) => {
      const path = `/vouchers?merchantId=${other.id}&limit=${limit}${filters}`;
      const seen: string[][] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { status, body }: ListAnswer = await api.get(cursor ? `${path}&cursor=${cursor}` : path);
        assert.equal(status, 200, JSON.stringify(body));
        seen.push(body.items.map((each) => each.serialNumber));
        cursor = body.nextCursor;
      }
      return seen;
    };
    const all = [...made.slice(6), ...made.slice(2, 6).reverse(), ...made.slice(0, 2).reverse()].map(
      serialOf,
    );
    assert.deepEqual(await list(''), [all]);
    assert.deepEqual(await list('', 3), [all.slice(0, 3), all.slice(3, 6), all.slice(6)]);
    assert.deepEqual(await list('&product=DEFAULT&state=ACTIVE', 6), [all.slice(0, 6), all.slice(6)]);
    assert.deepEqual(await list('&product=NONE'), [[]]);
    assert.deepEqual(await list('&balanceMax=17.5'), [[all[0]]]);
    assert.deepEqual(await list('&balanceMin=17.51'), [all.slice(1)]);
    assert.deepEqual(await list('&balanceMin=17.5&balanceMax=29.99'), [[all[0]]]);
    const { expiresAt } = (await api.get(`/vouchers/${all[2]}`)).body;
    const day = expiresAt.slice(0, 10);
    const expiry = new Date(Date.parse(expiresAt) + 86_400_000).toISOString();
    const extended = await api.post(`/vouchers/${all[2]}/extend`, { expiry });
    assert.equal(extended.status, 200, JSON.stringify(extended.body));
    assert.deepEqual(await list(`&expiresTo=${day}`), [all.filter((each) => each !== all[2])]);
    assert.deepEqual(await list(`&expiresFrom=${expiry.slice(0, 10)}`), [[all[2]]]);
    assert.deepEqual(await list(`&expiresFrom=${day}&expiresTo=${day}&balanceMax=17.5`), [[all[0]]]);
    // A page that looks through as many vouchers as it may, and finds none, is followed by those after them.
    await asOwner(
      api.testService.url,
      `insert into scrip.vouchers (serial_number, bucket, batch_id, code_key, pin_key, sealed, expires_at)
       select nextval('scrip.voucher_numbers') * 64 + serial_number % 64, bucket, batch_id, gen_random_uuid(),
         gen_random_uuid(), '', '2040-01-01'
       from scrip.vouchers, generate_series(1, 5000) where serial_number = ${all.at(-1)}`,
    );
    await api.post(`/vouchers/${all.at(-1)}/block`, {});
    assert.deepEqual(await list('&state=BLOCKED'), [[], [all.at(-1)]]);
  });

  test('tells a movement of an operator once, with its author and what it adds', async () => {
    const serial = serialOf(vouchers[8] as Made);
    const adjustment = { amount: -2, reference: 'complaint 7', reason: 'charged twice' };
    const adjusted = await api.post(`/vouchers/${serial}/adjust`, adjustment);
    assert.equal(adjusted.status, 200, JSON.stringify(adjusted.body));
    const { body } = await api.get(`/vouchers/${serial}`);
    const [first, ...rest] = body.timeline;
    assert.deepEqual(
      [first.kind, first.what, first.amount, first.reason],
      ['money', 'ADJUSTMENT', -2, 'charged twice'],
    );
    assert.equal(typeof first.actor, 'string');
    assert.deepEqual(
      rest.map((each: { what: string; amount: number }) => [each.what, each.amount]),
      [['ACTIVATION', 30]],
    );
  });

  test('shows declines in the timeline of a voucher, and stores no code or PIN', async () => {
    const voucher = vouchers[1] as Made;
    const { code, pin } = voucher;
    const wrong = pin === '0000' ? '0001' : '0000';
    const tries = [
      [{ code, pin: wrong, amount: 5 }, '55'],
      [{ code, pin, amount: 500, reference: 'too-much' }, '51'],
    ] as const;
    // The clock was ahead, and has been set back.
    newId(new Date(now().now.getTime() + 300_000));
    for (const [wanted, refusal] of tries) await assert.rejects(redeem(now(), wanted), { code: refusal });
    await api.post(`/vouchers/${serialOf(voucher)}/block`, { reason: 'card was lost' });
    await assert.rejects(redeem(now(), { code, pin, amount: 1 }), { code: '43' });
    await assert.rejects(redeem(now(), { code: '100000000001', pin, amount: 1 }), { code: '14' });
    await flushDeclines(api.testService.service);
    const { body } = await api.get(`/vouchers/${serialOf(voucher)}`);
    const shown = body.timeline.map((each: { kind: string; what: string; code: string | null }) =>
      [each.kind, each.what, each.code].filter(Boolean).join(' '),
    );
    assert.deepEqual(shown, [
      'decline redeem 43',
      'change voucher.block',
      'decline redeem 51',
      'decline redeem 55',
      'money ACTIVATION',
    ]);
    assert.equal(body.timeline[1].reason, 'card was lost');
    const listed = await api.get(`/declines?merchantId=${merchantId}`);
    assert.deepEqual(
      listed.body.items.map((each: Record<string, unknown>) => [
        each['code'],
        each['serialNumber'],
        each['amount'],
        each['currency'],
      ]),
      [
        ['14', null, 1, null],
        ['43', serialOf(voucher), 1, 'USD'],
        ['51', serialOf(voucher), 500, 'USD'],
        ['55', serialOf(voucher), 5, 'USD'],
      ],
    );
    const counted = await api.get('/declines/count');
    assert.deepEqual(
      counted.body.items,
      ['14', '43', '51', '55'].map((code) => ({ code, declines: 1 })),
    );
    const since = isoDay(Date.now() + 86_400_000);
    assert.deepEqual((await api.get(`/declines/count?from=${since}&to=${since}`)).body.items, []);
    const rows = await api.testService.service.db.query<{ text: string }>(
      sql`select d::text as text from declines d`,
    );
    for (const { text } of rows) assert.ok(!text.includes(code) && !text.includes(`,${wrong},`));
  });

  test('counts the declines that are not kept because there are too many', async () => {
    const request = { operation: 'redeem', amountUnits: null, reference: null } as const;
    const kept = 5_000;
    for (let n = 0; n <= kept; n++) recordDecline(now(), request, '75', { serialNumber: 10000000064n });
    // As the timer of the service does it: the next one waits for it.
    void flushDeclines(api.testService.service);
    await flushDeclines(api.testService.service);
    const { body } = await api.get('/declines/count');
    assert.deepEqual(body.items[0], { code: '75', declines: kept + 1 });
    const [row] = await api.testService.service.db.query<{ rows: bigint }>(
      sql`select count(*) as rows from declines where code = '75'`,
    );
    assert.equal(row?.rows, BigInt(kept));
  });

  test('corrects a redemption once, and requires a reason', async () => {
    const { code, pin } = vouchers[2] as Made;
    const { transaction } = await redeem(now(), { code, pin, amount: 10, reference: 'wrong-amount' });
    const path = `/redemptions/${transaction.transactionId}/correct`;
    const without = await api.post(path, { amount: 7.5 });
    assert.deepEqual([without.status, without.body.errors[0].field], [400, 'reason']);
    const corrected = await api.post(path, { amount: 7.5, reason: 'mistyped' }, { 'idempotency-key': 'c-1' });
    assert.equal(corrected.status, 200);
    assert.deepEqual(
      [
        corrected.body.original.refundStatus,
        corrected.body.reversal.amount,
        corrected.body.replacement.amount,
      ],
      ['CANCELLED', -10, 7.5],
    );
    const replay = await api.post(path, { amount: 7.5, reason: 'mistyped' }, { 'idempotency-key': 'c-1' });
    assert.deepEqual(replay.body, corrected.body);
    const again = await api.post(path, { amount: 1, reason: 'mistyped' });
    assert.deepEqual([again.status, again.body.code], [409, '58']);
    assert.equal((await api.get(`/vouchers/${serialOf(vouchers[2] as Made)}`)).body.balance, 22.5);
  });

  test('stops a caller that tries codes', async () => {
    const as = { authorization: `Bearer ${await api.token(['support'])}` };
    const code = '999999999999';
    for (let at = 0; at < 30; at++) assert.deepEqual(await find({ code }, as), []);
    const { status, body } = await api.post('/vouchers/find', { code }, as);
    assert.deepEqual([status, body.code], [429, 'too-many-requests']);
  });

  test('refuses an invalid search with the name of the field, without its value', async () => {
    // Another code than the example of the schema, which the message names.
    for (const [body, field] of [
      [{}, 'code'],
      [{ code: '5930' }, 'code'],
      [{ code: '5930241687520731' }, 'code'],
      [{ reference: 'x' }, 'merchantId'],
      [{ masked: '5930****87' }, 'masked'],
      [{ code: '593024168752', masked: '5930****8752' }, 'code'],
    ] as const) {
      const answer = await api.post('/vouchers/find', body);
      assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [400, field], JSON.stringify(body));
      assert.ok(!JSON.stringify(answer.body).includes('593024168752'));
    }
  });

  test('keeps a decline once where both keys of its code are those of a voucher', async () => {
    const { db } = api.testService.service;
    const [current, older] = await db.query<{ code_key: string; serial_number: bigint }>(
      sql`select code_key, serial_number from vouchers order by serial_number limit 2`,
    );
    assert.ok(current && older);
    const id = newId(new Date());
    const columns = { ids: `{${id}}`, serials: '{null}', merchants: `{${merchantId}}`, keyIds: '{key}' };
    const asked = { operations: '{redeem}', codes: '{42}', amounts: '{null}', references: '{null}' };
    const keys = { codeKeys: `{${current.code_key}}`, olderKeys: `{${older.code_key}}` };
    await db.query(insertDeclines({ ...columns, ...asked, ...keys }));
    const kept = await db.query(sql`select serial_number from declines where id = ${id}`);
    assert.deepEqual(kept, [{ serial_number: current.serial_number }]);
  });
});
