import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batches } from '../../src/batches/batches.ts';
import { sql } from '../../src/db/sql.ts';
import { perform } from '../../src/operations/perform.ts';
import { products } from '../../src/products/products.ts';
import { OverLimit } from '../../src/refusal.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { assertDescribed } from '../support/described.ts';
import { A, B, DIALECTS, update } from '../support/dialects.ts';
import { asOperator, COMMAND_LINE } from '../support/harness.ts';
import { ownerOf, waitForLocks } from '../support/owner.ts';
import { countCodes, Till } from '../support/till.ts';

/** The most that the vouchers of a product may hold together. */

const MESSAGE = 'Access denied: the limit of this product for outstanding vouchers is reached';

/** Sets the most outstanding of the product DEFAULT, and moves the clock past the first minute. */
async function limit(
  { testService: { service, clock } }: Till,
  outstandingMax: number | null,
): Promise<void> {
  await products.set.run(asOperator(service), { code: 'DEFAULT', outstandingMax });
  clock.advance(60_000);
}

/** What leaves the vouchers counts as free after ten seconds. */
const wait = ({ testService: { clock } }: Till) => clock.advance(10_000);

/** What the product holds, as it is counted and as the vouchers add up. */
async function held({ testService: { service } }: Till): Promise<[counted: number, vouchers: number]> {
  const [row] = await service.db.query<{ counted: bigint; vouchers: bigint }>(sql`
select h.held_minor as counted, (select sum(v.balance_minor) from vouchers v)::bigint as vouchers
from product_holdings h`);
  return [Number(row?.counted ?? 0) / 100, Number(row?.vouchers ?? 0) / 100];
}

async function eventsOf(till: Till): Promise<object[]> {
  const events = await till.testService.service.db.query<{ data: object }>(sql`
select d.data from webhook_deliveries d where d.type = 'limit.reached' order by d.event_id`);
  for (const { data } of events) assertDescribed({ type: 'limit.reached', data });
  return events.map(({ data }) => data);
}

for (const dialect of DIALECTS) {
  test(`generations and activations by ${dialect.name} stop at the most outstanding of a product`, async (t) => {
    const till = await Till.open(t);
    const { service, clock } = till.testService;
    const operator = asOperator(service);
    const { id } = till.merchant;
    await addEndpoint(operator, { merchantId: id, url: null, events: null, full: false }, false);
    const [sold] = await till.vouchers(2, 50);
    const [blank, other] = await till.vouchers(2, null);
    await limit(till, 10_000);
    await till.done(dialect.activate(blank, 'card')); // 5,000, with the 100 of the first batch
    await till.refused(dialect, '03', dialect.activate(other, 'more'));
    await till.refused(dialect, '03', dialect.generate('batch', 1, 4_900.01));
    assert.equal((await till.ask(dialect.generate('batch', 1, 4_900.01))).body.message, MESSAGE);
    await till.done(dialect.generate('batch', 1, 4_900));
    assert.ok((await till.done(dialect.generate('batch', 1, 4_900))).replayed);
    assert.ok((await till.done(dialect.activate(blank, 'card'))).replayed);
    assert.deepEqual(await eventsOf(till), [
      { flow: 'outstanding', keyId: null, product: 'DEFAULT', currency: 'USD', limit: 10_000 },
    ]);
    const reached = { reached: true };
    assert.equal((await products.list.run(operator, reached)).items.length, 1);
    // A redemption makes room, for every merchant.
    await till.done(dialect.redeem(sold, 50, 'sale'));
    wait(till);
    const second = await Till.another(till.testService);
    await second.done(dialect.generate('batch', 1, 50));
    await second.refused(dialect, '03', dialect.generate('more', 1, 0.01));
    // A correction goes above it, and its money takes the next room.
    await till.done(update('sale', 10));
    assert.deepEqual(await held(till), [10_040, 10_040]);
    await limit(till, 10_040);
    await till.refused(dialect, '03', dialect.generate('more', 1, 0.01));
    await limit(till, null);
    await till.done(dialect.generate('more', 1, 0.01));
    clock.advance(86_400_000);
    assert.equal((await products.list.run(operator, reached)).items.length, 0);
    await till.reconciles();
  });
}

test('two processes issue exactly as much at once as the most outstanding allows', async (t) => {
  const one = await Till.open(t);
  const two = await one.elsewhere(t);
  const blanks = await one.vouchers(10, null);
  await limit(one, 65_000);
  const answers = await Promise.all(
    blanks.flatMap((voucher, at) => [
      one.ask(A.activate(voucher, `card-${at}`)),
      two.ask(B.generate(`batch-${at}`, 2, 2_500)),
    ]),
  );
  assert.deepEqual(countCodes(answers), { '00': 13, '03': 7 });
  assert.deepEqual(await held(one), [65_000, 65_000]);
  // What comes back while others ask for room is never sold twice.
  const [active] = blanks;
  assert.ok(active);
  await limit(one, 100_000);
  await one.done(A.redeem(active, 4_000, 'sale'));
  await limit(one, 66_000);
  const back = one.ask(update('sale', 0));
  await Promise.all(['a', 'b', 'c'].map((reference) => two.ask(A.generate(reference, 1, 2_500))));
  await back;
  const [counted, vouchers] = await held(one);
  assert.ok(counted >= vouchers && vouchers <= 70_000, `${counted} ${vouchers}`);
  await one.reconciles();
});

test('an order that waits while the most outstanding is set or removed gets the answer that it then has', async (t) => {
  const till = await Till.open(t);
  const { service, url } = till.testService;
  const owner = await ownerOf(t, url);
  await limit(till, 10);
  for (const [outstandingMax, code] of [
    [12, '03'],
    [null, '00'],
  ] as const) {
    // The change has locked what the product holds, and waits for the audit.
    await owner.query(sql`select pg_advisory_lock(7311990002)`);
    const setting = products.set.run(asOperator(service), { code: 'DEFAULT', outstandingMax });
    await waitForLocks(url, 1);
    const asking = till.ask(A.generate(`order ${code}`, 1, 15));
    await waitForLocks(url, 2).finally(() => owner.query(sql`select pg_advisory_unlock(7311990002)`));
    await setting;
    assert.equal((await asking).statusCode, code);
  }
});

test('a batch in production counts with its whole price, until it is canceled', async (t) => {
  const till = await Till.open(t);
  const operator = asOperator(till.testService.service);
  await till.product('CARD', { activation: 'on-activation', outstandingMax: 100_000n });
  const order = (reference: string, quantity: number) => ({
    ...A.generate(reference, quantity, 10),
    body: { ...(A.generate(reference, quantity, 10).body as object), productCode: 'CARD' },
  });
  const { data } = await till.done(order('large', 100));
  await till.refused(A, '03', order('more', 1));
  await batches.cancel.run(operator, { transactionId: data.transactionId });
  wait(till);
  await till.done(order('small', 10));
  await till.done(order('rest', 90));
  wait(till);
  await till.refused(A, '03', order('more', 1));
  await till.reconciles();
});

test('an order of a person that a limit refuses is announced though its transaction is undone', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  await addEndpoint(
    asOperator(service),
    { merchantId: till.merchant.id, url: null, events: null, full: false },
    false,
  );
  await limit(till, 10);
  const input = { merchantId: String(till.merchant.id), quantity: 1, value: 11 };
  for (const idempotencyKey of ['one', 'two'])
    await assert.rejects(
      perform(batches.generate, { service, principal: COMMAND_LINE, input, idempotencyKey }),
      (error) => error instanceof OverLimit && error.message === MESSAGE,
    );
  assert.equal((await eventsOf(till)).length, 1);
});
