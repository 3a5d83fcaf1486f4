import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import type { Voucher } from '../support/dialects.ts';
import { A, B, update } from '../support/dialects.ts';
import { makeToken, operatorApi } from '../support/operator.api.ts';
import { countCodes, Till, UNKNOWN, withWrongPin } from '../support/till.ts';

/** The till of a merchant's own people. */

const api = operatorApi();

type Answer = Awaited<ReturnType<typeof api.call>>;

/** A merchant with its till over the merchant API, and with a cashier in its portal. */
async function open(wanted: Parameters<typeof Till.open>[1] = {}) {
  const till = await Till.another(api.testService, wanted);
  const token = await api.token(['cashier'], till.merchant.id);
  const ask = (verb: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
    api.call('POST', `/portal/v1/till/${verb}`, body, { authorization: `Bearer ${token}`, ...headers });
  const done = async (verb: string, body: object) => {
    const answer = await ask(verb, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  const refused = async (code: string, verb: string, body: object) =>
    assert.equal((await ask(verb, body)).body.code, code);
  return { till, token, ask, done, refused };
}

const spend = ({ code, pin }: Voucher, amount: number, reference: string) => ({
  code,
  pin,
  amount,
  reference,
});
const masked = ({ code }: Voucher) => `${code.slice(0, 4)}****${code.slice(8)}`;

/** The outcome of a redemption at any door, in the words of the merchant API. */
const outcomeOf = ({ status, body }: Answer) => ({
  statusCode: status === 200 ? '00' : (body.code as string),
  transactionId: body.transaction?.transactionId as string,
});

describe('the till in the portal', () => {
  test('redeems, activates and corrects, and answers each with the balance after it', async () => {
    const { till, ask, done, token } = await open();
    const [card, blank] = [await till.voucher(25), await till.voucher(null)];
    const redeemed = await done('redeem', spend(card, 17.5, 'order-1'));
    const shown = await api.call(
      'GET',
      `/portal/v1/transactions/${redeemed.transaction.transactionId}`,
      undefined,
      {
        authorization: `Bearer ${await api.token(['owner'], till.merchant.id)}`,
      },
    );
    assert.deepEqual(shown.body, redeemed.transaction);
    assert.deepEqual([shown.body.refundable, shown.body.correctedBy], [17.5, null]);
    assert.deepEqual(redeemed, {
      transaction: redeemed.transaction,
      voucherCode: masked(card),
      serialNumber: String(card.serialNumber),
      currency: 'USD',
      balance: 7.5,
      replayed: false,
    });
    assert.deepEqual(
      [shown.body.kind, shown.body.amount, shown.body.reference, shown.body.keyId],
      ['REDEMPTION', 17.5, 'order-1', null],
    );
    const corrected = await done('correct', { reference: 'order-1', amount: 10 });
    assert.deepEqual(
      [corrected.transaction.kind, corrected.transaction.amount, corrected.balance, corrected.replayed],
      ['REDEMPTION', 10, 15, false],
    );
    const serialNumber = String(blank.serialNumber);
    const activated = await done('activate', { serialNumber, value: 12, reference: 'sold-1' });
    assert.deepEqual(
      [activated.transaction.kind, activated.balance, activated.voucherCode],
      ['ACTIVATION', 12, masked(blank)],
    );
    await done('redeem', spend(blank, 12, 'order-2'));
    // A repetition has the balance of its time, whatever has happened since.
    const { headers, body: again } = await ask('redeem', spend(card, 17.5, 'order-1'));
    assert.deepEqual(
      [again.balance, again.replayed, headers.get('idempotent-replayed'), again.transaction.refundStatus],
      [7.5, true, 'true', 'CANCELLED'],
    );
    assert.deepEqual(await done('activate', { serialNumber, value: 12, reference: 'sold-1' }), {
      ...activated,
      replayed: true,
    });
    assert.deepEqual(await done('correct', { reference: 'order-1', amount: 10 }), {
      ...corrected,
      replayed: true,
    });
    const reversed = await done('correct', { reference: 'order-2', amount: 0 });
    assert.deepEqual([reversed.transaction.kind, reversed.balance], ['REDEMPTION_REVERSAL', 12]);
    await till.reconciles();
    const viewer = await api.token(['viewer', 'finance', 'operations', 'developer'], till.merchant.id);
    for (const as of [viewer, token])
      for (const verb of ['redeem', 'activate', 'correct']) {
        const { status } = await api.call(
          'POST',
          `/portal/v1/till/${verb}`,
          {},
          { authorization: `Bearer ${as}` },
        );
        assert.equal(status, as === viewer ? 403 : 400);
      }
  });

  test('shows the owner and the operator who stood there, and no name at what a program booked', async () => {
    const { till, done } = await open();
    const card = await till.voucher(25);
    const cashier = async (name: string) => {
      const authorization = `Bearer ${await makeToken(api.testService, ['cashier'], till.merchant.id, name)}`;
      return async (verb: string, body: object) =>
        (await api.call('POST', `/portal/v1/till/${verb}`, body, { authorization })).body.transaction;
    };
    const [carla, dave] = [await cashier('Carla'), await cashier('Dave')];
    assert.equal((await carla('redeem', spend(card, 5, 'hers'))).bookedBy, 'Carla');
    assert.equal(
      (await dave('redeem', spend(card, 5, 'hers'))).bookedBy,
      'Carla',
      'a repetition books nothing',
    );
    assert.equal((await dave('correct', { reference: 'hers', amount: 4 })).bookedBy, 'Dave');
    const { data } = await till.done(A.redeem(card, 3, 'by a program'));
    assert.ok(!('bookedBy' in data));
    const replayed = await done('redeem', spend(card, 3, 'by a program'));
    assert.deepEqual([replayed.replayed, replayed.transaction.bookedBy], [true, null]);
    const owner = { authorization: `Bearer ${await api.token(['owner'], till.merchant.id)}` };
    const listed = await api.call('GET', `/portal/v1/transactions`, undefined, owner);
    const shown = await api.get(`/vouchers/${card.serialNumber}`);
    type Line = { kind: string; what: string; bookedBy: string; actor: string };
    assert.deepEqual(
      listed.body.items.map(({ kind, bookedBy }: Line) => [kind, bookedBy]),
      [
        ['REDEMPTION', null],
        ['REDEMPTION', 'Dave'],
        ['REDEMPTION_REVERSAL', 'Dave'],
        ['REDEMPTION', 'Carla'],
      ],
    );
    assert.deepEqual(
      shown.body.timeline.map(({ what, actor }: Line) => [what, actor]),
      [...listed.body.items.map(({ kind, bookedBy }: Line) => [kind, bookedBy]), ['ACTIVATION', null]],
    );
  });

  test('books a reference once over the portal and both variants, whichever comes first', async () => {
    const { till, ask, refused } = await open();
    const doors = [
      (card: Voucher, reference: string) => till.ask(A.redeem(card, 5, reference)).then(ofTill),
      (card: Voucher, reference: string) => till.ask(B.redeem(card, 5, reference)).then(ofTill),
      async (card: Voucher, reference: string) => {
        const answer = await ask('redeem', spend(card, 5, reference));
        return { ...outcomeOf(answer), replayed: answer.body.replayed };
      },
    ] as const;
    const ofTill = (answer: Awaited<ReturnType<typeof till.ask>>) => ({
      statusCode: answer.statusCode,
      transactionId: answer.data.transactionId as string,
      replayed: answer.replayed,
    });
    const card = await till.voucher(25);
    for (const [first] of doors.entries()) {
      const reference = `order-${first} 7/ä👩‍🍳`;
      const answers: (Awaited<ReturnType<(typeof doors)[0]>> | undefined)[] = [];
      for (const [at] of doors.entries()) answers.push(await doors[(first + at) % 3]?.(card, reference));
      assert.deepEqual(
        answers.map((each) => [each?.statusCode, each?.replayed, each?.transactionId]),
        [false, true, true].map((replayed) => ['00', replayed, answers[0]?.transactionId]),
      );
      await refused('94', 'redeem', spend(card, 6, reference));
      await till.refused(A, '94', A.redeem(await till.voucher(), 5, reference));
    }
    const copies = await Promise.all(Array.from({ length: 20 }, (_, at) => doors[at % 3]?.(card, 'at-once')));
    assert.deepEqual(countCodes(copies as { statusCode: string }[]), { '00': 20 });
    assert.equal(new Set(copies.map((each) => each?.transactionId)).size, 1);
    assert.equal(copies.filter((each) => !each?.replayed).length, 1);
    assert.equal(await till.balanceOf(card), 5);
    const [one, other] = await till.vouchers(2, null);
    await till.done(A.activate(one, 'sold-1'));
    const { code, pin } = one;
    assert.equal((await ask('activate', { code, pin, reference: 'sold-1' })).body.replayed, true);
    const serialNumber = String(one.serialNumber);
    assert.equal((await ask('activate', { serialNumber, reference: 'sold-1' })).body.replayed, true);
    await refused('94', 'activate', { serialNumber: String(other.serialNumber), reference: 'sold-1' });
    await till.done(update('order-0 7/ä👩‍🍳', 3));
    await refused('58', 'correct', { reference: 'order-0 7/ä👩‍🍳', amount: 4 });
    await till.reconciles();
  });

  test('counts wrong PINs, also under a used reference and an Idempotency-Key, and stops who guesses', async () => {
    const { till, ask, done, refused } = await open();
    const card = await till.voucher(25);
    const right = spend(card, 5, 'order-1');
    const key = { 'idempotency-key': 'key-1' };
    assert.equal((await ask('redeem', right, key)).status, 200);
    // The key would answer with its first answer, or tell another PIN apart from the right one.
    assert.equal((await ask('redeem', withWrongPin(right), key)).body.code, '55');
    assert.equal((await ask('redeem', right, key)).body.replayed, true);
    for (let tries = 0; tries < 5; tries++) await refused('55', 'redeem', withWrongPin(right));
    await refused('75', 'redeem', right);
    await till.refused(B, '75', B.redeem(card, 5, 'order-1'));
    const other = await till.voucher();
    await done('redeem', spend(other, 1, 'order-2'));
    for (let tries = 0; tries < 45; tries++) await refused('14', 'redeem', spend(UNKNOWN, 1, 'order-3'));
    const stopped = await ask('redeem', spend(other, 1, 'order-4'));
    assert.deepEqual([stopped.status, stopped.body.code], [429, '97']);
    await refused('97', 'activate', { code: other.code, pin: other.pin });
    assert.equal(await till.balanceOf(other), 24);
  });

  test('obeys permissions and suspension, and refuses amounts and references as the merchant API does', async () => {
    const { till, refused } = await open({ permit: [], forbid: ['redeem', 'activate'] });
    const card = UNKNOWN;
    await refused('03', 'redeem', spend(card, 5, 'order-1'));
    await refused('03', 'activate', { code: card.code, pin: card.pin });
    await refused('03', 'correct', { reference: 'order-1', amount: 0 });
    await api.post(`/merchants/${till.merchant.id}/suspend`, {});
    await refused('04', 'redeem', spend(card, 5, 'order-1'));
    const able = await open();
    for (const amount of [0, -1, 1.001, 1e17])
      await able.refused('13', 'redeem', spend(card, amount, 'order-1'));
    for (const reference of ['NEW-1', 'CANCEL-1', 'a\nb', 'x'.repeat(101)])
      await able.refused('18', 'redeem', spend(card, 5, reference));
    await able.refused('60', 'correct', { reference: 'none', amount: 0 });
    for (const wrong of [
      {},
      { code: card.code },
      { serialNumber: '1', code: card.code },
      { ...card, value: 5 },
    ])
      await able.refused('invalid', 'activate', wrong);
    await able.refused('14', 'activate', { serialNumber: '999999999999999' });
    await able.refused('14', 'activate', {
      serialNumber: String((await (await open()).till.voucher()).serialNumber),
      value: 5,
    });
  });

  test('voids an activation that the merchant paid for, once, within 24 hours and before any use', async () => {
    const { till, done, refused } = await open();
    const floatOf = async () =>
      (await api.get(`/merchants/${till.merchant.id}`)).body.floats[0].balance as number;
    const before = await floatOf();
    const [card, used, late, blocked, gone] = await till.vouchers(5, null);
    for (const [at, each] of [card, used, late, blocked, gone].entries())
      await till.done(B.activate(each, `sold-${at}`));
    const voids = await Promise.all(Array.from({ length: 20 }, () => done('void', { reference: 'sold-0' })));
    const [first] = voids.filter(({ replayed }) => !replayed);
    for (const each of voids) assert.deepEqual({ ...each, replayed: false }, first);
    assert.equal(voids.filter(({ replayed }) => !replayed).length, 1);
    const { transaction, balance, voucherCode } = first;
    const { kind, amount, merchantId, originalTransactionId } = transaction;
    assert.deepEqual(
      [kind, amount, merchantId, balance, voucherCode],
      ['CANCELLATION', 5000, String(till.merchant.id), 0, masked(card)],
    );
    assert.equal((await till.done(A.activate(card, 'sold-0'))).data.transactionId, originalTransactionId);
    assert.equal(await floatOf(), before - 4 * 5000);
    await refused('44', 'redeem', spend(card, 1, 'order-1'));
    // A redemption that was reversed is a use, too.
    await done('redeem', spend(used, 1, 'order-2'));
    await done('correct', { reference: 'order-2', amount: 0 });
    await refused('42', 'void', { reference: 'sold-1' });
    const { service } = till.testService;
    const [{ id }] = (await service.db.query<{ id: string }>(sql`
select id from claims where operation = 'activate' and reference = 'sold-2'
  and merchant_id = ${till.merchant.id}`)) as [{ id: string }];
    const decide = async (ms: number) => {
      const now = new Date(service.clock().getTime() + ms);
      const serial = BigInt(late.serialNumber);
      const bucket = service.buckets.ofSerial(serial);
      const [row] = await service.db.query<{ outcome: string }>(sql`
select outcome from decide_void(${bucket}, ${serial}, ${id}, ${till.merchant.id}, ${now})`);
      return row?.outcome;
    };
    assert.deepEqual([await decide(86_300_000), await decide(86_400_001)], ['ok', '41']);
    await api.post(`/vouchers/${blocked.serialNumber}/block`, {});
    await refused('43', 'void', { reference: 'sold-3' });
    await api.post(`/vouchers/${gone.serialNumber}/cancel`, {});
    await refused('44', 'void', { reference: 'sold-4' });
    await refused('60', 'void', { reference: 'order-2' });
    await refused('18', 'void', { reference: 'NEW-1' });
    const other = await open();
    await other.refused('60', 'void', { reference: 'sold-2' });
    await other.refused('60', 'void', { reference: id });
    await till.reconciles();
  });

  test('voids no activation that another merchant paid for, and none of a generation', async () => {
    const [issuer, seller] = [await open(), await open()];
    await issuer.till.product('PAID', { activation: 'on-activation' });
    const body = { reference: 'batch-1', quantity: 1, amount: 10, productCode: 'PAID' };
    const made = await issuer.till.done({ method: 'POST', path: '/merchant-client/v2/vouchers', body });
    const [{ code, pin }] = made.data.vouchers;
    const { transaction } = await seller.done('activate', { code, pin });
    await seller.refused('47', 'void', { reference: transaction.transactionId });
    const { body: batch } = await api.get(`/vouchers/${(await issuer.till.voucher(5)).serialNumber}`);
    await issuer.refused('60', 'void', { reference: batch.timeline.at(-1).transactionId });
    const own = await issuer.till.voucher(null);
    const activated = await issuer.done('activate', { serialNumber: String(own.serialNumber), value: 7 });
    const voided = await issuer.done('void', { reference: activated.transaction.transactionId });
    assert.deepEqual([voided.transaction.amount, voided.balance], [7, 0]);
    await issuer.till.reconciles();
  });

  test('activates by a scan only what has the GTIN of the product', async () => {
    const { till, ask, done, refused } = await open();
    const card = await till.voucher(null);
    const scan = (gtin: string) => ({ serialNumber: String(card.serialNumber), gtin, value: 5 });
    const product = (gtin: string | null) => api.call('PATCH', '/operator/v1/products/DEFAULT', { gtin });
    // A medicine has a serial number, too.
    await refused('invalid', 'activate', scan('09506000134352'));
    const unsound = await product('9506000134353');
    assert.deepEqual([unsound.status, unsound.body.errors[0].field], [400, 'gtin'], JSON.stringify(unsound));
    assert.equal((await product('9506000134352')).body.gtin, '9506000134352');
    await refused('invalid', 'activate', scan('04006381333931'));
    await refused('invalid', 'activate', { gtin: '9506000134352', code: card.code, pin: card.pin });
    const other = await open();
    await other.refused('14', 'activate', { ...scan('09506000134352'), serialNumber: '99999999999' });
    await other.refused('14', 'activate', scan('09506000134352'));
    assert.equal((await done('activate', scan('09506000134352'))).balance, 5);
    assert.equal((await ask('activate', { ...scan('x'), gtin: '' })).status, 400);
    await product(null);
  });

  test('pays out a low balance in cash, where the product allows it, once', async () => {
    const { till, ask, done, refused } = await open();
    const card = await till.voucher(25);
    const pay = ({ code, pin }: Voucher, reference: string) => ({ code, pin, reference });
    await refused('61', 'cash-out', pay(card, 'cash-1'));
    const product = (change: object) => api.call('PATCH', '/operator/v1/products/DEFAULT', change);
    const set = await product({ cashOutBelow: 15 });
    assert.equal(set.body.cashOutBelow, 15, JSON.stringify(set.body));
    assert.equal((await product({ cashOutBelow: 1.001 })).body.code, 'invalid');
    await done('redeem', spend(card, 10, 'order-1'));
    const limit = await ask('cash-out', pay(card, 'cash-1'));
    assert.deepEqual([limit.body.code, /below USD 15\.00/.test(limit.body.detail)], ['61', true]);
    await done('redeem', spend(card, 0.01, 'order-2'));
    await refused('55', 'cash-out', withWrongPin(pay(card, 'cash-1')));
    const paid = await Promise.all(Array.from({ length: 20 }, () => done('cash-out', pay(card, 'cash-1'))));
    const [first] = paid.filter(({ replayed }) => !replayed);
    for (const each of paid) assert.deepEqual({ ...each, replayed: false }, first);
    assert.equal(paid.filter(({ replayed }) => !replayed).length, 1);
    assert.deepEqual(
      [first.transaction.kind, first.transaction.amount, first.transaction.merchantId, first.balance],
      ['CASH_OUT', 14.99, String(till.merchant.id), 0],
    );
    await refused('42', 'cash-out', pay(card, 'cash-2'));
    await refused('94', 'cash-out', pay(await till.voucher(5), 'cash-1'));
    await refused('14', 'cash-out', pay(UNKNOWN, 'cash-3'));
    await refused('40', 'cash-out', pay(await till.voucher(null), 'cash-3'));
    const without = await open({ forbid: ['redeem'] });
    await without.refused('03', 'cash-out', pay(card, 'cash-1'));
    const stranger = await open();
    await till.product('OWN', { scope: 'issuer', cashOutBelow: 1500n });
    const body = { reference: 'batch-1', quantity: 1, amount: 10, productCode: 'OWN' };
    const made = await till.done({ method: 'POST', path: '/merchant-client/v2/vouchers', body });
    await stranger.refused('47', 'cash-out', pay(made.data.vouchers[0], 'cash-1'));
    await done('cash-out', pay(made.data.vouchers[0], 'cash-4'));
    assert.equal((await product({ cashOutBelow: null })).body.cashOutBelow, null);
    await till.reconciles();
  });

  test('keeps codes and PINs out of stored answers, of the audit and of problems', async () => {
    const { till, ask, done } = await open();
    const card = await till.voucher(25);
    const key = { 'idempotency-key': 'key-2' };
    await ask('redeem', spend(card, 5, 'order-1'), key);
    const wrong = await ask('redeem', spend(card, 500, 'order-2'), key);
    assert.deepEqual([wrong.status, wrong.body.code], [409, '51']);
    await done('correct', { reference: 'order-1', amount: 4 });
    const rows = await till.testService.service.db.query<{ text: string }>(sql`
select r::text as text from operator_requests r union all select a::text from audit a`);
    const text = JSON.stringify([rows, wrong.body]);
    for (const secret of [card.code, `"${card.pin}"`]) assert.ok(!text.includes(secret));
    const recorded = await api.get(`/audit?subject=merchant ${till.merchant.id}&action=till.correct`);
    assert.deepEqual(
      recorded.body.items.map(({ after }: { after: object }) => after),
      [{ reference: 'order-1' }],
    );
  });
});
