import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { floats } from '../../src/books/floats.ts';
import { report } from '../../src/books/reports/reports.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import type { Caller } from '../../src/operation.ts';
import { show } from '../../src/vouchers/show.ts';
import { type Ledger, openLedger, sell, spend } from '../support/books.ts';
import { ofFile } from '../support/scope.ts';

/** A voucher, a float and the liability at times of the past, also within slices that were sealed later. */

const file = ofFile();
let ledger: Ledger;
let caller: Caller;
let merchantId: string;
let serialNumber: string;

before(async () => {
  ledger = await openLedger(file, '2026-03-01T09:00:00Z');
  const shop = await ledger.merchant(100_000n);
  merchantId = String(shop.merchant.id);
  await ledger.at('2026-03-01T10:01:00Z');
  const [card] = await sell(shop, 1, 60);
  assert.ok(card);
  serialNumber = String(card.serial);
  await ledger.at('2026-03-01T10:07:00Z');
  await spend(shop, card, 20, 'sale 1');
  await ledger.at('2026-03-01T10:12:00Z');
  await spend(shop, card, 5, 'sale 2');
  await ledger.at('2026-03-01T10:14:00Z');
  caller = ledger.operator as Caller;
});

/** Returns the balance of the voucher, the float and the liability at a time of 1 March. */
async function at(time: string): Promise<(number | string | undefined)[]> {
  const past = `2026-03-01T${time}Z`;
  const voucher = await show.run(caller, { serialNumber, at: past });
  const [float] = (await floats.show.run(caller, { merchantId, at: past })).items;
  const merchant = await merchants.show.run(caller, { id: merchantId, at: past });
  assert.deepEqual(merchant.floats, [{ currency: float?.currency, balance: float?.balance }]);
  const interval = { from: '2026-03-01', to: '2026-03-02', section: 'total', at: past };
  const { tables, endsAt, state } = await report.run(caller, { report: 'R2', ...interval });
  assert.deepEqual([endsAt.toISOString(), state], [new Date(past).toISOString(), 'provisional']);
  return [Number(voucher.balance), Number(float?.balance), String(tables[0]?.rows[0]?.['closing'])];
}

const EXPECTED: readonly (readonly [string, number, number, string])[] = [
  ['10:00:59', 0, 1000, 'undefined'],
  ['10:07:00', 60, 940, '60.00'],
  ['10:07:01', 40, 940, '40.00'],
  ['10:12:00.001', 35, 940, '35.00'],
];

test('a time shows what was booked before it, the same before and after the day is closed', async () => {
  for (const isClosed of [false, true]) {
    if (isClosed) {
      await ledger.at('2026-03-02T00:30:00Z');
      await ledger.close();
    }
    for (const [time, ...expected] of EXPECTED)
      assert.deepEqual(await at(time), expected, `${time} ${isClosed}`);
  }
});

test('what changes without a movement is null at a past time', async () => {
  const voucher = await show.run(caller, { serialNumber, at: '2026-03-01T10:10:00Z' });
  assert.partialDeepStrictEqual(voucher, { state: null, expiresAt: null, pinLocked: null, value: 60 });
  assert.deepEqual(
    voucher.timeline.map(({ what }) => what),
    ['REDEMPTION', 'ACTIVATION'],
  );
  const [float] = (await floats.show.run(caller, { merchantId, at: '2026-03-01T10:10:00Z' })).items;
  assert.equal(float?.low, null);
});

test('a time that is not past, or not of the report, is refused', async () => {
  const refused = (input: object, code: RegExp) =>
    assert.rejects(
      report.run(caller, { report: 'R2', from: '2026-03-01', to: '2026-03-02', ...input }),
      code,
    );
  await assert.rejects(show.run(caller, { serialNumber, at: '2030-01-01T00:00:00Z' }), /is in the future/);
  await assert.rejects(show.run(caller, { serialNumber, at: '2026-02-30T99:00:00Z' }), /is not a time/);
  await refused({ at: '2026-02-27T00:00:00Z' }, /is not in the interval of the report/);
  await refused({ report: 'R3', at: '2026-03-01T10:00:00Z' }, /R3 ends with a day: R1 and R2 can end at any/);
});
