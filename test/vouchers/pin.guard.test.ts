import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import type { Context } from '../../src/context.ts';
import type { CodeAndPin } from '../../src/keyring/ring.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import type { Refusal } from '../../src/refusal.ts';
import { MINUTE_MS } from '../../src/time.ts';
import { balance } from '../../src/vouchers/balance.ts';
import { unlockPin } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { type ApiRequest, DIALECTS, type Voucher } from '../support/dialects.ts';
import { asOperator } from '../support/harness.ts';
import { countCodes, Till, withWrongPin } from '../support/till.ts';

const HOUR_MS = 60 * MINUTE_MS;

for (const dialect of DIALECTS) {
  const requests: readonly (readonly [string, (voucher: Voucher) => ApiRequest])[] = [
    ['balance', (voucher) => dialect.balance(voucher)],
    ['redemption', (voucher) => dialect.redeem(voucher, 1, 'sale')],
  ];
  for (const [name, request] of requests) {
    describe(`wrong PINs of a ${name} by ${dialect.name}`, () => {
      test('lock the voucher for 15 minutes, for 24 hours, then until an operator unlocks it', async (t) => {
        const till = await Till.open(t);
        const { service, clock } = till.testService;
        clock.set(new Date(Date.UTC(2030, 0, 15, 8)));
        const voucher = await till.voucher();
        const fiveWrong = async () => {
          for (let guess = 1; guess <= 5; guess++)
            await till.refused(dialect, '55', request(withWrongPin(voucher)));
          await till.refused(dialect, '75', request(voucher));
          await till.refused(dialect, '75', request(withWrongPin(voucher)));
        };
        await fiveWrong();
        clock.advance(15 * MINUTE_MS - 1);
        await till.refused(dialect, '75', request(voucher));
        clock.advance(1);
        await fiveWrong();
        clock.advance(24 * HOUR_MS - 1);
        await till.refused(dialect, '75', request(voucher));
        clock.advance(1);
        await fiveWrong();
        clock.advance(300 * 24 * HOUR_MS);
        await till.refused(dialect, '75', request(voucher));
        await unlockPin(asOperator(service), BigInt(voucher.serialNumber));
        await till.done(request(voucher));
      });

      test('no longer count after a right one', async (t) => {
        const till = await Till.open(t);
        const voucher = await till.voucher();
        for (let round = 1; round <= 3; round++) {
          for (let guess = 1; guess <= 4; guess++)
            await till.refused(dialect, '55', request(withWrongPin(voucher)));
          await till.done(request(voucher));
        }
        const { wrongPins } = await showVoucher(till.testService.service, BigInt(voucher.serialNumber));
        assert.equal(wrongPins, 0);
      });

      test('are checked five times if a hundred arrive at two processes at the same time', async (t) => {
        const one = await Till.open(t);
        const tills = [one, await one.elsewhere(t)] as const;
        const voucher = await one.voucher();
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, index) =>
            tills[index % 2 ? 1 : 0].ask(request(withWrongPin(voucher))),
          ),
        );
        assert.deepEqual(countCodes(answers), { '55': 5, '75': 95 });
        await tills[1].refused(dialect, '75', request(voucher));
      });
    });
  }
}

test('the right PIN is refused if it arrives at the same moment as many wrong ones', async (t) => {
  const till = await Till.open(t);
  const { service } = till.testService;
  const { context } = await authenticate(service, till.merchant.authorization);
  for (const call of [balance, (asking: Context, pin: CodeAndPin) => redeem(asking, { ...pin, amount: 1 })]) {
    const voucher = await till.voucher();
    const guesses = [...Array.from({ length: 40 }, () => withWrongPin(voucher)), voucher];
    const outcomes = await Promise.allSettled(guesses.map((guess) => call(context, guess)));
    const codes = outcomes.map((each) =>
      each.status === 'fulfilled' ? '00' : (each.reason as Refusal).code,
    );
    assert.equal(codes.filter((code) => code === '55').length, 5);
    assert.equal(codes.at(-1), '75');
  }
});

test('wrong PINs of all operations and variants count together', async (t) => {
  const till = await Till.open(t);
  const [a, b] = DIALECTS;
  const voucher = await till.voucher(null);
  const wrong = withWrongPin(voucher);
  await till.refused(a, '55', a.activate(wrong, 'x'));
  await till.refused(a, '55', a.redeem(wrong, 1, 'x'));
  await till.refused(b, '55', b.redeem(wrong, 1, 'x'));
  await till.refused(a, '55', a.balance(wrong));
  await till.refused(b, '55', b.balance(wrong));
  await till.refused(a, '75', a.activate(voucher, 'x'));
  // A request by serial number carries no PIN: the lock does not stop it, and it does not end the lock.
  await till.done(b.activate(voucher, 'x'));
  await till.refused(b, '75', b.balance(voucher));
});

test('a declined redemption with the right PIN resets the count of wrong ones', async (t) => {
  const till = await Till.open(t);
  const [a] = DIALECTS;
  const voucher = await till.voucher(25);
  for (let round = 1; round <= 2; round++) {
    for (let guess = 1; guess <= 4; guess++)
      await till.refused(a, '55', a.redeem(withWrongPin(voucher), 1, 'x'));
    await till.refused(a, '51', a.redeem(voucher, 26, 'x'));
  }
});

for (const dialect of DIALECTS) {
  test(`a right PIN resets the count even if the amount is too fine, by ${dialect.name}`, async (t) => {
    const dollars = await Till.open(t);
    const { service } = dollars.testService;
    await dollars.product('YEN', {}, 'JPY', 0);
    const yen = await Till.another(dollars.testService, { product: 'YEN' });
    const [voucher] = await yen.vouchers(1, null);
    const wrongPins = async () => (await showVoucher(service, BigInt(voucher.serialNumber))).wrongPins;
    for (let guess = 1; guess <= 4; guess++) {
      await yen.refused(dialect, '55', dialect.redeem(withWrongPin(voucher), 1, 'sale'));
    }
    // Too fine for every currency: the amount is refused before the PIN is checked.
    await yen.refused(dialect, '13', dialect.redeem(voucher, 1.005, 'sale'));
    assert.equal(await wrongPins(), 4);
    await yen.refused(dialect, '13', dialect.redeem(voucher, 1.5, 'sale'));
    assert.equal(await wrongPins(), 0);
  });
}
