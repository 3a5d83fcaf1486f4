import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MINUTE_MS } from '../../src/time.ts';
import { type ApiRequest, DIALECTS, type Voucher } from '../support/dialects.ts';
import { startListening } from '../support/harness.ts';
import { Till } from '../support/till.ts';

/**
 * An attacker tries PINs with many keys, vouchers and processes. The tests count how many guesses the
 * service checks (docs/explanation/guessing.md).
 */

const HOUR_MS = 60 * MINUTE_MS;
/** Early in a UTC day, so that the daily count of a key does not start again during a test. */
const MORNING = new Date(Date.UTC(2030, 0, 15, 1));

/** A guess with a wrong PIN: a balance or a redemption, by either variant. */
function guess(voucher: Voucher, number: number): ApiRequest {
  const pin = String((Number(voucher.pin) + 1 + (number % 9_999)) % 10_000).padStart(4, '0');
  const dialect = DIALECTS[number % 2] as (typeof DIALECTS)[number];
  const wrong = { ...voucher, pin };
  return number % 3 === 0 ? dialect.redeem(wrong, 1, `guess-${number}`) : dialect.balance(wrong);
}

test('at most fifteen guesses at one voucher are checked, over all keys, processes and restarts', async (t) => {
  const first = await Till.open(t);
  const { clock } = first.testService;
  clock.set(MORNING);
  const voucher = await first.voucher();
  const keys = [first];
  for (let key = 2; key <= 8; key++) keys.push(await Till.another(first.testService));
  let checked = 0;
  let guesses = 0;
  const burst = async (tills: readonly Till[]) => {
    const answers = await Promise.all(
      Array.from({ length: 24 }, () =>
        (tills[guesses % tills.length] as Till).ask(guess(voucher, guesses++)),
      ),
    );
    for (const { statusCode } of answers) {
      assert.ok(['55', '75'].includes(statusCode), statusCode);
      if (statusCode === '55') checked++;
    }
  };
  const second = await first.elsewhere(t);
  await burst([...keys, second]);
  assert.equal(checked, 5);
  clock.advance(15 * MINUTE_MS);
  await burst([second, ...keys]);
  assert.equal(checked, 10);
  // A process that has just started knows the count of the others.
  const restarted = await first.elsewhere(t);
  await burst([restarted]);
  clock.advance(24 * HOUR_MS);
  await burst([restarted, ...keys]);
  assert.equal(checked, 15);
  for (const days of [1, 30, 300]) {
    clock.advance(days * 24 * HOUR_MS);
    await burst([restarted, ...keys]);
  }
  assert.equal(checked, 15);
});

test('hundreds of concurrent guesses exceed the limit of a key only by those in progress', async (t) => {
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
  const checked = sum(await Promise.all(vouchers.map(attack)));
  assert.ok(checked > 50 && checked <= 50 + 2 * 16, `${checked} guesses were checked`);
});

test('each key that guesses at many vouchers is stopped by its own count', async (t) => {
  const first = await Till.open(t, { float: 100_000_00n });
  first.testService.clock.set(MORNING);
  const vouchers: Voucher[] = [];
  for (let batch = 1; batch <= 6; batch++) vouchers.push(...(await first.vouchers(10)));
  for (const till of [first, await Till.another(first.testService), await Till.another(first.testService)]) {
    let checked = 0;
    for (const [number, voucher] of vouchers.entries()) {
      const { statusCode } = await till.ask(guess(voucher, number));
      if (statusCode === '55') checked++;
      else assert.equal(statusCode, '97');
    }
    assert.equal(checked, 51);
  }
});

test('a key is stopped after fifty guesses a day, over all processes and restarts', async (t) => {
  const first = await Till.open(t, { float: 100_000_00n });
  const { clock } = first.testService;
  clock.set(MORNING);
  const vouchers: Voucher[] = [];
  for (let batch = 1; batch <= 9; batch++) vouchers.push(...(await first.vouchers(10)));
  const second = await first.elsewhere(t);
  let checked = 0;
  // One guess for each voucher, so that no voucher is locked.
  for (const [number, voucher] of vouchers.entries()) {
    const till = number % 2 === 0 ? first : second;
    const { statusCode } = await till.ask(guess(voucher, number));
    assert.ok(['55', '97'].includes(statusCode), statusCode);
    if (statusCode === '55') checked++;
    // A process learns within a second what another one has counted.
    clock.advance(1_000);
  }
  assert.ok(checked > 50 && checked <= 52, `${checked} guesses were checked`);
  const restarted = await startListening(first.testService);
  t.after(restarted.stop);
  assert.equal((await restarted.request(first.merchant, guess(vouchers[0] as Voucher, 1))).statusCode, '97');
});
