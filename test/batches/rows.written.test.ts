import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { cancelBatch, voidBatch } from '../../src/batches/cancel.ts';
import { generate } from '../../src/batches/generate.ts';
import { refundFloat } from '../../src/books/floats.ts';
import { sweepExpired } from '../../src/books/sweep.ts';
import { adjustVoucher } from '../../src/books/vouchers.ts';
import type { Context, Operator } from '../../src/context.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { balance } from '../../src/vouchers/balance.ts';
import {
  blockVoucher,
  cancelVoucher,
  extendVoucher,
  replaceVoucher,
  unlockPin,
} from '../../src/vouchers/operate.ts';
import { asOperator } from '../support/harness.ts';
import { Bench } from '../support/statement.ts';

/**
 * Every statement that moves money writes all of its rows, or the whole call fails. A trigger loses a
 * row, or the row of the bucket is missing: no balance changes without its journal row.
 */

const bench = Bench.ofTests();
let shop: Context;
/** Its vouchers are paid for when they are generated, and activated later. */
let later: Context;
let operator: Operator;
let references = 0;
const fresh = () => `r${++references}`;

before(async () => {
  shop = await bench.merchant();
  await bench.product('LATER', 'USD', 2, { activation: 'on-activation' });
  later = await bench.merchant('LATER');
  await bench.endpoint(shop, null);
  operator = {
    ...asOperator(shop.service),
    actor: { ...asOperator(shop.service).actor, reason: 'a reason' },
  };
  await bench.query(`
    create function lose_row() returns trigger language plpgsql as $$ begin return null; end $$`);
});

/** Everything that a lost row could change. */
const money = () =>
  bench.query(`
    select (select array_agg(row(v.*)::text order by v.serial_number) from vouchers v) as vouchers,
      (select array_agg(row(f.*)::text order by f.account_id) from floats f) as floats,
      (select array_agg(id order by id) from journal) as journal,
      (select array_agg(id order by id) from claims) as claims,
      (select array_agg(original_id order by original_id) from redemption_updates) as updates,
      (select array_agg(event_id order by event_id) from webhook_deliveries) as deliveries`);

/** An operation, the tables that it writes, and whether it needs the row of its bucket. */
type Case = {
  readonly tables: string;
  readonly byBucket?: true;
  prepare(): Promise<() => Promise<unknown>>;
};

/** An operation on something that is made for it. */
function on<Made>(tables: string, make: () => Promise<Made>, run: (made: Made) => Promise<unknown>): Case {
  return {
    tables,
    async prepare() {
      const made = await make();
      return () => run(made);
    },
  };
}

const atTill = (operation: Case): Case => ({ ...operation, byBucket: true });

/** Makes a voucher of 25.00, with a change of its row: one that is active, and one that is paid for. */
const card =
  (change?: string, of = () => shop) =>
  async () => {
    const made = await bench.card(of(), 25);
    if (change) await bench.setCard(made, change);
    return made;
  };
const inactive = (change?: string) => card(change, () => later);

/** Makes a voucher that is swept by itself. */
const expired = (of: () => Context) => async () => {
  const at = bench.now.toISOString();
  const { serial } = await card(`expires_at = '${at}'`, of)();
  await bench.query(`insert into voucher_expiries (serial_number, due_at) values (${serial}, '${at}')`);
};

async function redeemed() {
  const made = await bench.card(shop, 25);
  const reference = fresh();
  await redeem(shop, { ...made, amount: 10, reference });
  return { serial: made.serial, reference };
}

/** Makes an order of a shop. */
const order = (quantity: number) => async () =>
  (await generate(shop, { reference: fresh(), quantity, value: 25 })).batch;

const extended = new Date('2032-01-01T00:00:00Z');

const CASES: Readonly<Record<string, Case>> = {
  'a redemption': atTill(
    on('claims journal vouchers webhook_deliveries', card(), (made) =>
      redeem(shop, { ...made, amount: 10, reference: fresh() }),
    ),
  ),
  'an activation': atTill(
    on(
      'claims journal vouchers webhook_deliveries',
      () => bench.card(shop),
      (voucher) => activate(shop, { voucher, value: 25, reference: fresh() }),
    ),
  ),
  'an update': atTill(
    on('redemption_updates journal vouchers webhook_deliveries', redeemed, ({ reference }) =>
      updateRedemption(shop, { reference, amountUsed: 4 }),
    ),
  ),
  'an update of a redemption from a voucher that was replaced': atTill({
    tables: 'redemption_updates journal vouchers',
    async prepare() {
      const { serial, reference } = await redeemed();
      await replaceVoucher(operator, serial);
      return () => updateRedemption(shop, { reference, amountUsed: 0 });
    },
  }),
  'a wrong PIN': on('vouchers', card(), ({ code, pin }) =>
    balance(shop, { code, pin: pin === '0000' ? '1111' : '0000' }).catch((error) => {
      if (error.code !== '55') throw error;
    }),
  ),
  'the cancelation of an inactive voucher': on('journal floats vouchers', inactive(), ({ serial }) =>
    cancelVoucher(operator, serial),
  ),
  'the sweep of an inactive voucher': on(
    'journal floats vouchers',
    expired(() => later),
    () => sweepExpired(shop.service),
  ),
  'a price that is paid again': on('journal vouchers', inactive('payer_id = null'), ({ serial }) =>
    extendVoucher(operator, serial, extended),
  ),
  'a block': on('vouchers', card(), ({ serial }) => blockVoucher(operator, serial)),
  'the reset of a PIN': on('vouchers', card('wrong_pins = 4'), ({ serial }) => unlockPin(operator, serial)),
  'an extension': on('vouchers', card(), ({ serial }) => extendVoucher(operator, serial, extended)),
  'a replacement': on('journal', card(), ({ serial }) => replaceVoucher(operator, serial)),
  'an adjustment': on('claims journal vouchers', card(), ({ serial: serialNumber }) =>
    adjustVoucher(operator, { serialNumber, deltaMinor: 100n, reference: fresh() }),
  ),
  'a refund of a float': on(
    'claims journal',
    async () => ({ merchantId: shop.merchant.id, currency: 'USD', amountMinor: 100n }),
    (wanted) => refundFloat(operator, { ...wanted, reference: fresh() }),
  ),
  'an order of vouchers': on(
    'claims journal',
    async () => ({ quantity: 2, value: 25 }),
    (wanted) => generate(shop, { ...wanted, reference: fresh() }),
  ),
  'the cancelation of a batch': on('journal floats', order(20), ({ transactionId }) =>
    cancelBatch(operator, transactionId),
  ),
  'the void of a canceled batch': {
    tables: 'journal vouchers',
    async prepare() {
      const { id } = await order(2)();
      await bench.query(`update batches set status = 'CANCELED', ended_at = now() where id = ${id}`);
      return () => voidBatch(shop.service, id);
    },
  },
  'a sweep': on(
    'journal vouchers',
    expired(() => shop),
    () => sweepExpired(shop.service),
  ),
};

for (const [name, { tables, byBucket, prepare }] of Object.entries(CASES)) {
  test(`${name} fails as a whole if a row is not written`, async () => {
    const run = await prepare();
    const initial = await money();
    const failsWithout = async (lose: string, restore: string, what: string) => {
      await bench.query(lose);
      try {
        await assert.rejects(run(), /rows of \w+ were written|there is no/, what);
      } finally {
        await bench.query(restore);
      }
      assert.deepEqual(await money(), initial, what);
    };
    for (const table of tables.split(' '))
      await failsWithout(
        `create trigger lose before insert or update on ${table} for each row execute function lose_row()`,
        `drop trigger lose on ${table}`,
        table,
      );
    if (byBucket) await failsWithout('delete from buckets', 'insert into buckets values (0, 0)', 'buckets');
    await run();
    assert.notDeepEqual(await money(), initial);
  });
}
