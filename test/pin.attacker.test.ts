import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiRequest, DIALECTS, type Voucher } from './dialects.ts';
import { startListening } from './harness.ts';
import { Till } from './till.ts';

/**
 * Who tries PINs, with all that one can have: what counts is how many of the guesses are looked at
 * (docs/explanation/guessing.md).
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Within one UTC day, so that a key's day does not turn in the middle. */
const MORNING = new Date(Date.UTC(2030, 0, 15, 1));

/** A guess that is never right, as a balance or as a redemption, by either variant. */
function guess(voucher: Voucher, number: number): ApiRequest {
  const pin = String((Number(voucher.pin) + 1 + (number % 9_999)) % 10_000).padStart(4, '0');
  const dialect = DIALECTS[number % 2] as (typeof DIALECTS)[number];
  const wrong = { ...voucher, pin };
  return number % 3 === 0 ? dialect.redeem(wrong, 1, `guess-${number}`) : dialect.balance(wrong);
}

test('one code: fifteen guesses are looked at, with many keys, over processes, at once, and after a restart', async (t) => {
  const first = await Till.open(t);
  const { clock } = first.testService;
  clock.set(MORNING);
  const voucher = await first.voucher();
  const keys = [first];
  for (let key = 2; key <= 8; key++) keys.push(await Till.at(first.testService));
  let looked = 0;
  let guesses = 0;
  const burst = async (tills: readonly Till[]) => {
    const answers = await Promise.all(
      Array.from({ length: 24 }, () =>
        (tills[guesses % tills.length] as Till).ask(guess(voucher, guesses++)),
      ),
    );
    for (const { statusCode } of answers) {
      assert.ok(['55', '75'].includes(statusCode), statusCode);
      if (statusCode === '55') looked++;
    }
  };
  const second = await first.elsewhere(t);
  await burst([...keys, second]);
  assert.equal(looked, 5);
  clock.advance(15 * MINUTE_MS);
  await burst([second, ...keys]);
  assert.equal(looked, 10);
  // Another process, that has only just started, knows what the others have counted.
  const restarted = await first.elsewhere(t);
  await burst([restarted]);
  clock.advance(24 * HOUR_MS);
  await burst([restarted, ...keys]);
  assert.equal(looked, 15);
  for (const days of [1, 30, 300]) {
    clock.advance(days * 24 * HOUR_MS);
    await burst([restarted, ...keys]);
  }
  assert.equal(looked, 15);
});

test('many codes at one moment: of hundreds under way, no more are looked at than the limit and what a process has open', async (t) => {
  const first = await Till.open(t, { float: 100_000_00n });
  const second = await first.elsewhere(t);
  first.testService.clock.set(MORNING);
  const vouchers: Voucher[] = [];
  for (let batch = 1; batch <= 30; batch++) vouchers.push(...(await first.vouchers(10)));
  const attack = async (voucher: Voucher, number: number) => {
    const answer = await (number % 2 === 0 ? first : second).ask(guess(voucher, number));
    assert.ok(['55', '97'].includes(answer.statusCode), answer.statusCode);
    return answer.statusCode === '55' ? 1 : 0;
  };
  const sum = (numbers: readonly number[]) => numbers.reduce((one, other) => one + other, 0);
  const looked = sum(await Promise.all(vouchers.map(attack)));
  assert.ok(looked > 50 && looked <= 50 + 2 * 16, `${looked} guesses were looked at`);
});

test('many codes and many keys: each key is stopped by its own count', async (t) => {
  const first = await Till.open(t, { float: 100_000_00n });
  first.testService.clock.set(MORNING);
  const vouchers: Voucher[] = [];
  for (let batch = 1; batch <= 6; batch++) vouchers.push(...(await first.vouchers(10)));
  for (const till of [first, await Till.at(first.testService), await Till.at(first.testService)]) {
    let looked = 0;
    for (const [number, voucher] of vouchers.entries()) {
      const { statusCode } = await till.ask(guess(voucher, number));
      if (statusCode === '55') looked++;
      else assert.equal(statusCode, '97');
    }
    assert.equal(looked, 51);
  }
});

test('many codes: a key is stopped after fifty guesses a day, over processes and after a restart', async (t) => {
  const first = await Till.open(t, { float: 100_000_00n });
  const { clock } = first.testService;
  clock.set(MORNING);
  const vouchers: Voucher[] = [];
  for (let batch = 1; batch <= 9; batch++) vouchers.push(...(await first.vouchers(10)));
  const second = await first.elsewhere(t);
  let looked = 0;
  // A guess for each voucher, so that no voucher's own guard is in the way.
  for (const [number, voucher] of vouchers.entries()) {
    const till = number % 2 === 0 ? first : second;
    const { statusCode } = await till.ask(guess(voucher, number));
    assert.ok(['55', '97'].includes(statusCode), statusCode);
    if (statusCode === '55') looked++;
    // What another process has decided is known within a second.
    clock.advance(1_000);
  }
  assert.ok(looked > 50 && looked <= 52, `${looked} guesses were looked at`);
  const restarted = await startListening(first.testService);
  t.after(restarted.stop);
  assert.equal((await restarted.request(first.merchant, guess(vouchers[0] as Voucher, 1))).statusCode, '97');
});
