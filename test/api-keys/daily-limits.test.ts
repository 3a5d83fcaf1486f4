import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { dailyLimits } from '../../src/api-keys/daily-limits.ts';
import { apiKeys } from '../../src/api-keys/keys.ts';
import type { Service } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { Problem } from '../../src/problem.ts';
import { DAY_MS } from '../../src/time.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { assertDescribed } from '../support/described.ts';
import { type ApiRequest, DIALECTS, update } from '../support/dialects.ts';
import { asOperator, basic, COMMAND_LINE } from '../support/harness.ts';
import { countCodes, Till, UNKNOWN, withWrongPin } from '../support/till.ts';

type Limit = { readonly flow: 'issue' | 'redeem'; readonly amount: number | null; readonly keyId?: string };

/** Sets a limit of a merchant. It applies at once: what processes remember of it is a second old. */
async function limit({ testService, merchant }: Till, wanted: Limit): Promise<void> {
  await dailyLimits.set.run(asOperator(testService.service), { merchantId: String(merchant.id), ...wanted });
  testService.clock.advance(1_000);
}

const listed = async ({ testService: { service }, merchant }: Till, reached = false) =>
  (await dailyLimits.list.run(asOperator(service), { merchantId: String(merchant.id), reached })).items;

async function eventsOf(service: Service, merchantId: number) {
  const events = await service.db.query<{ data: object }>(sql`
select d.data from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
where e.merchant_id = ${merchantId} and d.type = 'limit.reached' order by d.event_id`);
  for (const { data } of events) assertDescribed({ type: 'limit.reached', data });
  return events;
}

/** Adds a pull endpoint. */
const listen = ({ testService: { service }, merchant }: Till) =>
  addEndpoint(asOperator(service), { merchantId: merchant.id, url: null, events: null, full: false }, false);

async function messageOf(till: Till, request: ApiRequest): Promise<string> {
  return (await till.ask(request)).body.message;
}

for (const dialect of DIALECTS) {
  describe(`a daily limit by ${dialect.name}`, () => {
    test('refuses what exceeds it, and neither a retry nor the other merchants', async (t) => {
      const till = await Till.open(t);
      const { service, clock } = till.testService;
      await listen(till);
      const [first, second] = await till.vouchers(2, 100);
      await limit(till, { flow: 'redeem', amount: 60 });
      const booked = dialect.redeem(first, 60, 'sale');
      const { data } = await till.done(booked);
      const refused = dialect.redeem(second, 0.01, 'more');
      await till.refused(dialect, '03', refused);
      assert.equal(
        await messageOf(till, refused),
        'Access denied: the daily limit of this merchant for redemptions is reached',
      );
      const again = await till.done(booked);
      assert.deepEqual([again.replayed, again.data.transactionId], [true, data.transactionId]);
      await till.refused(dialect, '94', dialect.redeem(second, 1, 'sale'));
      // It does not show which codes exist, and wrong PINs count.
      await till.refused(dialect, '14', dialect.redeem(UNKNOWN, 1, 'more'));
      await till.refused(dialect, '55', dialect.redeem(withWrongPin(second), 1, 'more'));
      const other = await Till.another(till.testService);
      await other.done(dialect.redeem(second, 10, 'sale'));
      assert.deepEqual(await eventsOf(service, till.merchant.id), [
        { data: { flow: 'redeem', keyId: null, currency: 'USD', limit: 60 } },
      ]);
      assert.equal((await listed(till, true)).length, 1);
      clock.advance(DAY_MS);
      assert.deepEqual(await listed(till, true), []);
      await till.done(refused);
      const [today] = await listed(till);
      assert.deepEqual([today?.used, today?.refusedAt], [0.01, null]);
      await till.reconciles();
    });

    test('counts what generations and activations take from the float', async (t) => {
      const till = await Till.open(t);
      await listen(till);
      const inactive = await till.vouchers(2, null);
      await limit(till, { flow: 'issue', amount: 10_000 });
      await till.done(dialect.generate('batch', 4, 1_250));
      // An activation of 5,000.
      await till.done(dialect.activate(inactive[0], 'card'));
      await till.refused(dialect, '03', dialect.activate(inactive[1], 'other'));
      for (const reference of ['more', 'again'])
        await till.refused(dialect, '03', dialect.generate(reference, 1, 0.01));
      assert.ok((await till.done(dialect.generate('batch', 4, 1_250))).replayed);
      assert.ok((await till.done(dialect.activate(inactive[0], 'card'))).replayed);
      assert.equal((await eventsOf(till.testService.service, till.merchant.id)).length, 1);
      await limit(till, { flow: 'issue', amount: null });
      await till.done(dialect.generate('more', 1, 0.01));
      await till.done(dialect.activate(inactive[1], 'other'));
      await till.reconciles();
    });
  });
}

test('a limit of a key leaves the other keys alone, and a rotation takes it over', async (t) => {
  const till = await Till.open(t);
  const { service, clock } = till.testService;
  const operator = asOperator(service);
  const { id, keyId } = till.merchant;
  const voucher = await till.voucher(100);
  await limit(till, { flow: 'redeem', amount: 10, keyId });
  const [dialect] = DIALECTS;
  await till.done(dialect.redeem(voucher, 10, 'one'));
  const refused = dialect.redeem(voucher, 1, 'two');
  assert.equal(
    await messageOf(till, refused),
    'Access denied: the daily limit of this key for redemptions is reached',
  );
  const heir = await apiKeys.rotate.run(operator, { keyId });
  const other = await apiKeys.create.run({ ...operator, isAgreed: true }, { merchantId: String(id) });
  clock.advance(1_000);
  const by = (key: typeof other) => ({
    ...till.merchant,
    authorization: basic(key.keyId, String(key.secret)),
  });
  const codes = [];
  for (const key of [heir, other]) codes.push((await till.testService.request(by(key), refused)).statusCode);
  assert.deepEqual(codes, ['03', '00']);
});

test('of twenty redemptions at once, two processes book as many as the limit allows', async (t) => {
  const one = await Till.open(t);
  const tills = [one, await one.elsewhere(t)];
  await limit(one, { flow: 'redeem', amount: 75 });
  const vouchers = await one.vouchers(10, 20);
  const answers = await Promise.all(
    [0, 1].flatMap((round) =>
      vouchers.map((voucher, at) =>
        (tills[(at + round) % 2] as Till).ask(
          (DIALECTS[at % 2] as (typeof DIALECTS)[0]).redeem(voucher, 10, `sale-${at}-${round}`),
        ),
      ),
    ),
  );
  assert.deepEqual(countCodes(answers), { '00': 7, '03': 13 });
  assert.deepEqual(
    (await listed(one)).map(({ used }) => used),
    [70],
  );
  await one.reconciles();
});

test('an update counts what it adds, and gives nothing back', async (t) => {
  const till = await Till.open(t);
  const [dialect] = DIALECTS;
  const voucher = await till.voucher(100);
  await limit(till, { flow: 'redeem', amount: 50 });
  for (const [reference, amount] of [
    ['one', 20],
    ['two', 20],
    ['three', 2],
  ] as const)
    await till.done(dialect.redeem(voucher, amount, reference));
  await till.refused(dialect, '03', update('one', 28.01));
  await till.done(update('one', 28));
  await till.done(update('two', 0));
  await till.refused(dialect, '03', dialect.redeem(voucher, 0.01, 'four'));
  await till.reconciles();
});

test('a merchant lowers the limits of its keys, and does not raise them', async (t) => {
  const till = await Till.open(t);
  const { id, keyId } = till.merchant;
  const caller = asOperator(till.testService.service);
  const merchant = { ...caller, principal: { ...COMMAND_LINE, merchantId: id, roles: ['owner' as const] } };
  const set = (by: typeof caller, amount: number | null) =>
    dailyLimits.set.run(by, { merchantId: String(id), keyId, flow: 'issue', amount });
  await set(merchant, 100);
  await set(merchant, 50);
  for (const amount of [51, null])
    await assert.rejects(
      set(merchant, amount),
      (error) => error instanceof Problem && error.code === 'forbidden',
    );
  await set(caller, 200);
  assert.equal((await listed(till))[0]?.amount, 200);
});

test('in the portal, a limit is of a key, which has to be named', () => {
  const own = PORTAL_OPERATIONS.find(({ name }) => name === 'daily-limit.set');
  assert.ok(own?.input.required?.includes('keyId'));
});
