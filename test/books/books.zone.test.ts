import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setBooks } from '../../src/books/days.ts';
import { spanOfDay, today } from '../../src/zone.ts';
import { fileOf } from '../support/folder.ts';
import { asOperator } from '../support/harness.ts';
import { codesOf } from '../support/imports.ts';
import { makeVouchers, Operator } from '../support/operator.ts';
import { typed } from '../support/scrip.ts';

/** Days that people name begin and end in the zone of the books, not in UTC. */

const operator = Operator.ofTests();
let merchant: { id: string; keyId: string; secret: string };

/** The last day of July in summer time. */
const DAY = '2031-07-31';
const ENDS = { 'Europe/Berlin': '2031-07-31T21:59:59.999Z', 'America/New_York': '2031-08-01T03:59:59.999Z' };
type Zone = keyof typeof ENDS;
const ZONES = Object.keys(ENDS) as Zone[];

before(async () => {
  merchant = await operator.json`merchant create --name Issuer --float 1000`;
});

const setZone = (zone: string) => setBooks(asOperator(operator.testService.service), { zone });

for (const zone of ZONES) {
  test(`a voucher that is extended to a day ends with that day in ${zone}`, async () => {
    await setZone(zone);
    const context = await operator.enter(merchant);
    const [voucher] = await makeVouchers(context, `extended ${zone}`, 1);
    const extended = await operator.json`voucher extend ${voucher?.serialNumber ?? 0n} --expiry ${DAY}`;
    assert.equal(extended.expiresAt, ENDS[zone]);
    const instant = '2031-09-01T12:00:00Z';
    const later = await operator.json`voucher extend ${voucher?.serialNumber ?? 0n} --expiry ${instant}`;
    assert.equal(later.expiresAt, '2031-09-01T12:00:00.000Z');
  });

  test(`an order ends with a day in ${zone}, named or by the validity of the product`, async () => {
    await setZone(zone);
    const order = (...more: string[]) =>
      operator.json`batch generate --merchant ${merchant.id} --quantity 1 --value 5 ${more}`;
    assert.equal((await order('--expiry', DAY)).expiryDate, ENDS[zone]);
    const { expiryDate } = await order();
    const local = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'medium' });
    assert.equal(local.format(new Date(expiryDate)), '23:59:59');
  });

  test(`a product that is valid by the calendar ends with a year in ${zone}`, async () => {
    await setZone(zone);
    const code = `CALENDAR-${zone.replace('/', '-')}`;
    await operator.json`product create --code ${code} --name Card --validity 3y-end-of-year`;
    const order = (...more: string[]) =>
      operator.json`batch generate --merchant ${merchant.id} --product ${code} --quantity 1 --value 5 ${more}`;
    const { expiryDate } = await order();
    const local = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      dateStyle: 'short',
      timeStyle: 'medium',
    });
    const year = Number(local.format(operator.testService.service.clock()).slice(0, 4));
    assert.equal(local.format(new Date(expiryDate)), `${year + 3}-12-31 23:59:59`);
    assert.equal((await order('--expiry', DAY)).expiryDate, ENDS[zone]);
    const days = await operator.json`product set ${code} --validity none --validity-days 1`;
    assert.deepEqual([days.validity, days.validityDays], [null, 1]);
  });

  test(`an imported voucher ends with its day in ${zone}, and a card shows that day`, async (t) => {
    await setZone(zone);
    const [first, second] = codesOf(2);
    const rows = `code,pin,balance,expiry\n${first},1111,10.00,${DAY}\n${second},2222,10.00,\n`;
    const file = await fileOf(t, 'cards.csv', rows);
    await operator.json`import vouchers ${file} --merchant ${merchant.id} --expiry ${DAY}`;
    const [found] = await operator.json`batch list --merchant ${merchant.id}`;
    const vouchers = await operator.json`voucher list --batch ${found.transactionId}`;
    assert.deepEqual(
      vouchers.map((each: { expiresAt: string }) => each.expiresAt),
      [ENDS[zone], ENDS[zone]],
    );
    const { out } = await operator.run`batch export ${found.transactionId} --format csv`;
    const [header = '', ...lines] = out
      .trimEnd()
      .split('\r\n')
      .map((line) => line.split(','));
    const at = (header as string[]).indexOf('"lastDay"');
    assert.deepEqual(
      lines.map((line) => line[at]),
      [`"${DAY}"`, `"${DAY}"`],
    );
  });
}

test('a day, and the day that it is now, are those of the zone of the books', async () => {
  await setZone('Asia/Kathmandu');
  const { service, clock } = operator.testService;
  // 00:10 on 3 March in Kathmandu.
  clock.set(new Date('2031-03-02T18:25:00Z'));
  assert.equal(await today(service), '2031-03-03');
  const { startsAt, endsAt } = await spanOfDay(service.db, '2031-03-03');
  assert.deepEqual(
    [startsAt.toISOString(), endsAt.toISOString()],
    ['2031-03-02T18:15:00.000Z', '2031-03-03T18:14:59.999Z'],
  );
});

test('a day that does not exist, or would end after the last year, is refused', async () => {
  await setZone('America/New_York');
  for (const day of ['2099-02-30', '9999-12-31'])
    await operator.fails(/must be a day/, ...typed`audit list --to ${day}`);
});
