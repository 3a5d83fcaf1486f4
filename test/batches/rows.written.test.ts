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

async function redeemed() {
  const card = await bench.card(shop, 25);
  const reference = fresh();
  await redeem(shop, { ...card, amount: 10, reference });
  return { card, reference };
}

const CASES: Readonly<Record<string, Case>> = {
  'a redemption': {
    tables: 'claims journal vouchers webhook_deliveries',
    byBucket: true,
    async prepare() {
      const card = await bench.card(shop, 25);
      return () => redeem(shop, { ...card, amount: 10, reference: fresh() });
    },
  },
  'an activation': {
    tables: 'claims journal vouchers webhook_deliveries',
    byBucket: true,
    async prepare() {
      const card = await bench.card(shop);
      return () => activate(shop, { voucher: card, value: 25, reference: fresh() });
    },
  },
  'an update': {
    tables: 'redemption_updates journal vouchers webhook_deliveries',
    byBucket: true,
    async prepare() {
      const { reference } = await redeemed();
      return () => updateRedemption(shop, { reference, amountUsed: 4 });
    },
  },
  'an update of a redemption from a voucher that was replaced': {
    tables: 'redemption_updates journal vouchers',
    byBucket: true,
    async prepare() {
      const { card, reference } = await redeemed();
      await replaceVoucher(operator, card.serial);
      return () => updateRedemption(shop, { reference, amountUsed: 0 });
    },
  },
  'a wrong PIN': {
    tables: 'vouchers',
    async prepare() {
      const { code, pin } = await bench.card(shop, 25);
      const wrong = pin === '0000' ? '1111' : '0000';
      return () =>
        balance(shop, { code, pin: wrong }).catch((error) => {
          if (error.code !== '55') throw error;
        });
    },
  },
  'the cancelation of an inactive voucher': {
    tables: 'journal floats vouchers',
    async prepare() {
      const { serial } = await bench.card(later, 25);
      return () => cancelVoucher(operator, serial);
    },
  },
  'the sweep of an inactive voucher': {
    tables: 'journal floats vouchers',
    async prepare() {
      const card = await bench.card(later, 25);
      const at = bench.now.toISOString();
      await bench.setCard(card, `expires_at = '${at}'`);
      await bench.query(
        `insert into voucher_expiries (serial_number, due_at) values (${card.serial}, '${at}')`,
      );
      return () => sweepExpired(shop.service);
    },
  },
  'a price that is paid again': {
    tables: 'journal vouchers',
    async prepare() {
      const card = await bench.card(later, 25);
      await bench.setCard(card, 'payer_id = null');
      return () => extendVoucher(operator, card.serial, new Date('2032-01-01T00:00:00Z'));
    },
  },
  'a block': onCard('vouchers', (serial) => blockVoucher(operator, serial)),
  'the reset of a PIN': {
    tables: 'vouchers',
    async prepare() {
      const card = await bench.card(shop, 25);
      await bench.setCard(card, 'wrong_pins = 4');
      return () => unlockPin(operator, card.serial);
    },
  },
  'an extension': onCard('vouchers', (serial) =>
    extendVoucher(operator, serial, new Date('2032-01-01T00:00:00Z')),
  ),
  'a replacement': onCard('journal', (serial) => replaceVoucher(operator, serial)),
  'an adjustment': onCard('claims journal vouchers', (serialNumber) =>
    adjustVoucher(operator, { serialNumber, deltaMinor: 100n, reference: fresh() }),
  ),
  'a refund of a float': {
    tables: 'claims journal',
    prepare: async () => () =>
      refundFloat(operator, {
        merchantId: shop.merchant.id,
        currency: 'USD',
        amountMinor: 100n,
        reference: fresh(),
      }),
  },
  'an order of vouchers': {
    tables: 'claims journal',
    prepare: async () => () => generate(shop, { reference: fresh(), quantity: 2, value: 25 }),
  },
  'the cancelation of a batch': {
    tables: 'journal floats',
    prepare: async () => {
      const { batch } = await generate(shop, { reference: fresh(), quantity: 20, value: 25 });
      return () => cancelBatch(operator, batch.transactionId);
    },
  },
  'the void of a canceled batch': {
    tables: 'journal vouchers',
    async prepare() {
      const { batch } = await generate(shop, { reference: fresh(), quantity: 2, value: 25 });
      await bench.query(`update batches set status = 'CANCELED', ended_at = now() where id = ${batch.id}`);
      return () => voidBatch(shop.service, batch.id);
    },
  },
  'a sweep': {
    tables: 'journal vouchers',
    async prepare() {
      const card = await bench.card(shop, 25);
      await bench.setCard(card, `expires_at = '${bench.now.toISOString()}'`);
      await bench.query(
        `insert into voucher_expiries (serial_number, due_at) values (${card.serial}, '${bench.now.toISOString()}')`,
      );
      return () => sweepExpired(shop.service);
    },
  },
};

function onCard(tables: string, run: (serial: bigint) => Promise<unknown>): Case {
  return {
    tables,
    async prepare() {
      const { serial } = await bench.card(shop, 25);
      return () => run(serial);
    },
  };
}

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
