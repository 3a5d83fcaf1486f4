import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Context, Operator } from '../../src/context.ts';
import { maskCode } from '../../src/ledger/transaction.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { activate } from '../../src/vouchers/activate.ts';
import {
  blockVoucher,
  extendVoucher,
  replaceVoucher,
  unblockVoucher,
  unlockPin,
} from '../../src/vouchers/operate.ts';
import { movementsOf, showVoucher } from '../../src/vouchers/show.ts';
import { asOperator } from '../support/harness.ts';
import { Bench, type Card } from '../support/statement.ts';

const bench = Bench.ofTests();
let one: Context;
let operator: Operator;

before(async () => {
  one = await bench.merchant();
  operator = asOperator(one.service);
});

const shown = ({ serial }: Card) => showVoucher(one.service, serial);
const stateOf = async (card: Card) => (await shown(card)).state;
const later = (ms: number) => new Date(bench.now.getTime() + ms);

/** The audit of a voucher: the actions, with its state before and after. */
async function auditOf({ serial }: Card): Promise<object[]> {
  return bench.query(
    `
      select action, before::json, after::json from audit where subject = 'voucher ${serial}'
      order by sequence`,
  );
}

describe('showing a voucher', () => {
  test('returns all its fields, and its entries from the newest to the oldest', async () => {
    const card = await bench.card(one);
    const opened = await activate(one, { voucher: card, value: 25, reference: 'opened' });
    const sold = await redeem({ ...one, now: later(5) }, { ...card, amount: 10 });
    const { batch, batchReference, expiresAt, ...rest } = await shown(card);
    const [row] = await bench.query<{ transaction_id: string; reference: string; expires_at: Date }>(
      `
        select b.transaction_id, b.reference, v.expires_at from batches b join vouchers v
        on v.batch_id = b.id where v.serial_number = ${card.serial}`,
    );
    assert.deepEqual(
      [batch, batchReference, expiresAt],
      [row?.transaction_id, row?.reference, row?.expires_at],
    );
    const merchantId = String(one.merchant.id);
    const movement = ({ transaction }: typeof opened, reference: string | null, amount: bigint) => ({
      ...{ at: transaction.timestamp, kind: 'money', what: transaction.type, amount },
      ...{ merchantId, keyId: one.keyId, reference, transactionId: transaction.transactionId },
    });
    assert.deepEqual(rest, {
      ...{ serialNumber: String(card.serial), voucherCode: maskCode(card.code), state: 'ACTIVE', merchantId },
      ...{ product: 'DEFAULT', currency: 'USD', activatedAt: bench.now, blockedAt: null },
      ...{ balance: 1500n, value: 2500n, reserved: null, replacedBy: null, payerId: merchantId },
      ...{ wrongPins: 0, pinLocked: false, pinLockedUntil: null },
    });
    assert.deepEqual(await movementsOf(one.service, card.serial), [
      movement(sold, null, -1000n),
      movement(opened, 'opened', 2500n),
    ]);
  });

  test('returns the state for which a redemption would be declined', async () => {
    for (const [state, change] of [
      ['CANCELED', "closed = 'CANCELED', balance_minor = 0, blocked_at = now()"],
      ['BLOCKED', "blocked_at = now(), expires_at = '2029-01-01'"],
      ['EXPIRED', "expires_at = '2030-01-15T08:00Z', activated_at = null, value_minor = null"],
      ['ACTIVE', "expires_at = '2030-01-15T08:00:00.001Z'"],
      ['INACTIVE', 'activated_at = null, value_minor = null, balance_minor = 0'],
      ['REDEEMED', 'balance_minor = 0'],
    ] as const) {
      const card = await bench.card(one, 25);
      await bench.setCard(card, change);
      assert.equal(await stateOf(card), state, change);
    }
  });

  test('returns the lock of its PIN until it ends', async () => {
    const card = await bench.card(one, 25);
    const lock = async (until: string) => {
      await bench.setCard(card, `wrong_pins = 5, pin_locked_until = '${until}'`);
      const { pinLocked, pinLockedUntil } = await shown(card);
      return [pinLocked, pinLockedUntil];
    };
    assert.deepEqual(await lock('2030-01-15T08:00Z'), [false, null]);
    assert.deepEqual(await lock('2030-01-15T08:00:00.001Z'), [true, later(1)]);
    assert.deepEqual(await lock('infinity'), [true, null]);
    assert.equal((await shown(card)).wrongPins, 5);
    await unlockPin(operator, card.serial);
    assert.equal(await bench.guardOf(card), '0 open');
    assert.deepEqual(await auditOf(card), [
      { action: 'voucher.unlock-pin', before: { wrongPins: 5 }, after: { wrongPins: 0 } },
    ]);
  });

  test('fails for a voucher of a batch that is not completed', async () => {
    const card = await bench.card(one, 25);
    const batch = `(select batch_id from vouchers where serial_number = ${card.serial})`;
    await bench.query(`update batches set status = 'CANCELED' where id = ${batch}`);
    await assert.rejects(shown(card), { code: '14' });
    await assert.rejects(blockVoucher(operator, card.serial), { code: '14' });
  });
});

test('blocking a voucher twice keeps the first time, and one unblock ends it', async () => {
  const card = await bench.card(one, 25);
  await blockVoucher(operator, card.serial);
  bench.served.clock.advance(1000);
  await blockVoucher(operator, card.serial);
  bench.served.clock.set(bench.now);
  assert.deepEqual((await shown(card)).blockedAt, bench.now);
  await unblockVoucher(operator, card.serial);
  assert.equal((await shown(card)).blockedAt, null);
  const [open, blocked] = [{ blockedAt: null }, { blockedAt: bench.now.toISOString() }];
  assert.deepEqual(await auditOf(card), [
    { action: 'voucher.block', before: open, after: blocked },
    { action: 'voucher.block', before: blocked, after: blocked },
    { action: 'voucher.unblock', before: blocked, after: open },
  ]);
});

test('an expiry can only be extended, to a time in the future', async () => {
  const card = await bench.card(one, 25);
  await bench.setCard(card, `expires_at = '${later(10).toISOString()}'`);
  const extend = (expiry: Date) => extendVoucher(operator, card.serial, expiry);
  for (const ms of [9, 10]) await assert.rejects(extend(later(ms)), { code: '17' });
  await extend(later(11));
  assert.deepEqual((await shown(card)).expiresAt, later(11));
  assert.deepEqual(await auditOf(card), [
    {
      action: 'voucher.extend',
      before: { expiresAt: later(10).toISOString() },
      after: { expiresAt: later(11).toISOString() },
    },
  ]);
  await bench.setCard(card, "expires_at = '2029-01-01'");
  for (const ms of [-1, 0]) await assert.rejects(extend(later(ms)), { code: '17' });
  await extend(later(1));
  assert.equal(await stateOf(card), 'ACTIVE');
});

test('a replacement takes over everything but the block and the wrong PINs', async () => {
  const card = await bench.card(one, 25);
  await redeem(one, { ...card, amount: 24.99 });
  await bench.setCard(card, "wrong_pins = 3, blocked_at = now(), expires_at = '2031-01-01'");
  const serial = await replaceVoucher(operator, card.serial);
  const [old, made] = [await shown(card), await showVoucher(one.service, serial)];
  assert.deepEqual([old.state, old.balance, old.replacedBy], ['REPLACED', 0n, String(serial)]);
  const same = ['batch', 'activatedAt', 'expiresAt'] as const;
  for (const field of same) assert.deepEqual(made[field], old[field], field);
  assert.deepEqual(
    [made.state, made.balance, made.value, made.wrongPins, made.blockedAt, made.replacedBy],
    ['ACTIVE', 1n, 1n, 0, null, null],
  );
  const [moved] = await movementsOf(one.service, serial);
  assert.deepEqual(
    [moved?.what, moved?.amount, moved?.at, moved?.merchantId],
    ['REPLACEMENT', 1n, bench.now, null],
  );
  assert.notEqual(made.voucherCode, maskCode(card.code));
  const [audited] = await auditOf(card);
  assert.deepEqual(
    JSON.stringify(audited),
    `{"action":"voucher.replace","before":{"closed":null},"after":{"closed":"REPLACED","replacedBy":"${serial}"}}`,
  );
  // The money moves in the currency of the voucher's batch, whatever others have.
  await bench.product('EURO', 'EUR', 2);
  const euro = await bench.card(await bench.merchant('EURO'), 25);
  const inEuro = await replaceVoucher(operator, euro.serial);
  const text = `select currency from journal where kind = 'REPLACEMENT' and serial_number = ${inEuro}`;
  assert.deepEqual(await bench.query(text), [{ currency: 'EUR' }]);
  // Without a balance, no money moves.
  const spent = await bench.card(one, 25);
  await redeem(one, { ...spent, amount: 25 });
  const emptied = await replaceVoucher(operator, spent.serial);
  assert.equal((await showVoucher(one.service, emptied)).state, 'REDEEMED');
  assert.deepEqual(await movementsOf(one.service, emptied), []);
});

test('a replacement keeps the last use of its voucher under any number', async (t) => {
  const { clock } = bench.served;
  t.after(() => clock.set(bench.now));
  const card = await bench.card(one, 25);
  let other = await bench.card(one, 25);
  const { buckets } = one.service;
  while (buckets.ofSerial(other.serial) !== buckets.ofSerial(card.serial)) other = await bench.card(one, 25);
  await bench.setCard(card, "earlier_use_at = '2029-12-31'");
  for (const [used, minutes] of [
    [card, 1],
    [card, 2],
    [other, 3],
  ] as const) {
    clock.set(later(minutes * 60_000));
    await redeem(one, { ...used, amount: 1 });
  }
  const serial = await replaceVoucher(operator, card.serial);
  const text = `select earlier_use_at from vouchers where serial_number = ${serial}`;
  assert.deepEqual(await bench.query(text), [{ earlier_use_at: later(120_000) }]);
});

test('a replacement draws a new code if the first one exists under any key', async () => {
  const { keys, buckets } = one.service;
  const card = await bench.card(one, 20);
  // Equal codes are in the same bucket.
  let taken = await bench.card(one, 10);
  while (buckets.ofSerial(taken.serial) !== buckets.ofSerial(card.serial)) taken = await bench.card(one, 10);
  const drawn: string[] = [];
  // Two draws equal the other voucher's code: one under an older key, one under the current key.
  const draws = {
    olderCodeKeys(code: string) {
      drawn.push(code);
      return drawn.length === 1 ? [taken.codeKey] : ['c'.repeat(32)];
    },
    codeKey: (code: string) => (drawn.length === 2 ? taken.codeKey : keys.codeKey(code)),
  };
  const ring = new Proxy(keys, {
    get(target, name) {
      const own = Reflect.get(draws, name) ?? Reflect.get(target, name);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
  const serial = await replaceVoucher(asOperator({ ...one.service, keys: ring }), card.serial);
  assert.equal(drawn.length, 3);
  const made = await showVoucher(one.service, serial);
  const [, , code = ''] = drawn;
  assert.deepEqual([made.voucherCode, made.state, made.balance], [maskCode(code), 'ACTIVE', 2000n]);
  const other = await shown(taken);
  assert.deepEqual([other.voucherCode, other.state, other.balance], [maskCode(taken.code), 'ACTIVE', 1000n]);
  assert.deepEqual(
    await bench.query(`select serial_number from vouchers where code_key = '${keys.codeKey(code)}'`),
    [{ serial_number: serial }],
  );
});
