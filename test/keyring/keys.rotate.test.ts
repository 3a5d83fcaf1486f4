import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { describe, test } from 'node:test';
import { listKeys } from '../../src/api-keys/keys.ts';
import { openOwner } from '../../src/db/pool.ts';
import { type HotStatement, sql } from '../../src/db/sql.ts';
import { newRingKey } from '../../src/keyring/file.ts';
import { openKeyRing } from '../../src/keyring/store.ts';
import { resealAll } from '../../src/rotation/reseal.ts';
import { beginRotation, dropKey, finishRotation, listKeyRing } from '../../src/rotation/rotate.ts';
import { replaceVoucher } from '../../src/vouchers/operate.ts';
import { addEndpoint } from '../../src/webhooks/endpoints.ts';
import { DIALECTS, type Voucher } from '../support/dialects.ts';
import { asOperator, produceAll, testService } from '../support/harness.ts';
import { waitForLocks } from '../support/owner.ts';
import { at, goOn, openBoth, wrongPins } from '../support/rotation.ts';
import { Till, UNKNOWN, withWrongPin } from '../support/till.ts';

const [A, B] = DIALECTS as [(typeof DIALECTS)[number], (typeof DIALECTS)[number]];

test('a rotation under load changes no answer of any process', async (t) => {
  const till = await Till.open(t);
  const keys = `${newRingKey()},${till.testService.keys}`;
  // Both processes have the new key, and neither knows that it is in use.
  const tills = await Promise.all(
    [1, 2].map(async () => at(till, await testService(t, { ...till.testService, keys }))),
  );
  const [one, two] = tills as [Till, Till];
  const reference = 'many';
  await till.done(B.generate(reference, 1_500, 25));
  const [batch] = await till.testService.service.db.query<{ id: number }>(sql`select id from batches`);
  await produceAll(till.testService.service, batch?.id as number);
  const cards: Voucher[] = (await till.done(B.download(reference))).data.vouchers;
  assert.equal(cards.length, 1_500);

  let running = true;
  let sales = 0;
  const sell = async (seller: Till, dialect: typeof A, from: number) => {
    for (let turn = 0; running || turn < 20; turn++) {
      const card = cards[(from + turn * 7) % cards.length] as Voucher;
      const sale = `sale-${from}-${turn}`;
      await seller.done(dialect.redeem(card, 0.01, sale));
      // A retry at the other process is a replay.
      const again = await (seller === one ? two : one).done(dialect.redeem(card, 0.01, sale));
      assert.equal(again.replayed, true);
      await seller.done(dialect.balance(card));
      if (turn % 5 === 0) await seller.done(dialect.generate(`more-${from}-${turn}`, 2, 5));
      sales++;
    }
  };
  const sellers = [sell(one, A, 0), sell(two, B, 400), sell(one, B, 800), sell(two, A, 1_200)];
  const operator = asOperator(one.testService.service);
  const { resumed } = await beginRotation(operator, undefined);
  assert.equal(resumed, false);
  const retired = await finishRotation(operator, goOn, goOn);
  running = false;
  await Promise.all(sellers);
  assert.equal(retired?.length, 1);
  assert.ok(sales >= 80);
  assert.equal(await wrongPins(one.testService.service), 0n);
  await one.reconciles();
  const ring = await listKeyRing(one.testService.service);
  assert.deepEqual(
    ring.map(({ state, vouchers }) => [state, vouchers > 0]),
    [
      ['in use', true],
      ['retired', false],
    ],
  );
});

for (const dialect of DIALECTS) {
  describe(`while vouchers are resealed, by ${dialect.name}`, () => {
    test('a process that does not know of the rotation redeems vouchers under both keys', async (t) => {
      const { till, operator, elsewhere } = await openBoth(t);
      const [first, second] = (await till.vouchers(2)) as [Voucher, Voucher];
      const before = at(
        till,
        await testService(t, { ...till.testService, keys: elsewhere.testService.keys }),
      );
      await before.done(dialect.balance(first));
      await beginRotation(operator, undefined);
      await before.done(dialect.redeem(first, 1, 'unmoved'));
      await resealAll(operator.service, goOn);
      await before.done(dialect.redeem(second, 1, 'moved'));
      assert.equal((await before.done(dialect.redeem(first, 1, 'unmoved'))).replayed, true);
      await before.refused(dialect, '94', dialect.redeem(second, 1, 'unmoved'));
      await before.done(dialect.balance(second));
    });

    test('a wrong PIN and an unknown code count once', async (t) => {
      const { till, operator, elsewhere } = await openBoth(t);
      const [first, second] = (await till.vouchers(2)) as [Voucher, Voucher];
      await beginRotation(operator, undefined);
      await elsewhere.refused(dialect, '55', dialect.redeem(withWrongPin(first), 1, 'x'));
      await resealAll(operator.service, goOn);
      await elsewhere.refused(dialect, '55', dialect.balance(withWrongPin(second)));
      assert.equal(await wrongPins(operator.service), 2n);
      await elsewhere.refused(dialect, '14', dialect.redeem(UNKNOWN, 1, 'x'));
      const [key] = await listKeys(operator.service, till.merchant.id);
      assert.equal(key?.guesses, 3);
    });

    test('a right PIN is accepted when the voucher is resealed while the statement runs', async (t) => {
      const { till, operator, elsewhere, given } = await openBoth(t);
      const card = await till.voucher();
      // After a wrong PIN, the statement reads the voucher again under the lock.
      await till.refused(dialect, '55', dialect.balance(withWrongPin(card)));
      await beginRotation(operator, undefined);
      const owner = await openOwner(given.url);
      await owner.query({ text: 'begin', values: [] });
      await owner.query(sql`select from scrip.vouchers for update`);
      const answers = Promise.all([
        elsewhere.done(dialect.balance(card)),
        elsewhere.done(dialect.redeem(card, 1, 'under the lock')),
      ]);
      // Both have found the voucher by its old key and wait for its lock. Now it is resealed.
      await waitForLocks(given.url, 2);
      const { keys } = given.service;
      const serial = BigInt(card.serialNumber);
      await owner.query(sql`
        update scrip.vouchers set sealed = ${keys.seal(serial, card.code, card.pin)},
          code_key = ${keys.codeKey(card.code)},
          pin_key = ${keys.pinKey(card.code, card.pin)} where serial_number = ${serial}`);
      await owner.query({ text: 'commit', values: [] });
      await owner.close();
      await answers;
      assert.equal(await wrongPins(given.service), 0n);
    });
  });
}

test('an activation by code and PIN finds a voucher before, during and after the rotation', async (t) => {
  const { till, operator, elsewhere } = await openBoth(t);
  const [first, second, third] = (await till.vouchers(3, null)) as [Voucher, Voucher, Voucher];
  await beginRotation(operator, undefined);
  await elsewhere.done(A.activate(first, 'one'));
  await resealAll(operator.service, goOn);
  await elsewhere.done(A.activate(second, 'two'));
  await finishRotation(operator, goOn, goOn);
  await elsewhere.done(A.activate(third, 'three'));
  assert.equal((await elsewhere.done(A.activate(first, 'one'))).replayed, true);
});

test('a process without the new key declines with 91, and counts no guess', async (t) => {
  const { till, given, operator } = await openBoth(t);
  const [first, second] = (await till.vouchers(2)) as [Voucher, Voucher];
  await beginRotation(operator, undefined);
  await till.done(A.redeem(first, 1, 'still there'));
  await resealAll(operator.service, goOn);
  const { service } = till.testService;
  assert.equal(await service.readiness.check(service), undefined);
  // During the rotation, and after it, when no key of this process is in use any more.
  for (const end of [undefined, () => finishRotation(operator, goOn, goOn)]) {
    await end?.();
    for (const request of [
      A.redeem(second, 1, 'x'),
      A.balance(second),
      A.generate('y', 1, 1),
      A.redeem(UNKNOWN, 1, 'z'),
    ]) {
      const { status, statusCode } = await till.ask(request);
      assert.deepEqual([status, statusCode], [503, '91']);
    }
    assert.equal(await service.readiness.check(service), 'key-missing');
  }
  const [key] = await listKeys(given.service, till.merchant.id);
  assert.deepEqual([key?.guesses, await wrongPins(given.service)], [0, 0n]);
});

test('new vouchers are sealed under the new key, and their codes are unique under both', async (t) => {
  const { till, given, operator, ids, elsewhere } = await openBoth(t);
  const old = await till.voucher();
  await beginRotation(operator, undefined);
  const made = await elsewhere.voucher();
  const replaced = await replaceVoucher(operator, BigInt(old.serialNumber));
  const rows = await given.service.db.query<{ serial_number: bigint; code_key: string; key_id: string }>(
    sql`
      select serial_number, code_key, convert_from(substring(sealed from 2 for get_byte(sealed, 0)),
        'LATIN1') as key_id
      from vouchers order by serial_number`,
  );
  assert.deepEqual(
    rows.map(({ serial_number, key_id }) => [serial_number, key_id]),
    [
      [BigInt(old.serialNumber), ids[1]],
      [BigInt(made.serialNumber), ids[0]],
      [replaced, ids[0]],
    ],
  );
  // A new code is also searched under the older key, where the unique index cannot see it.
  assert.deepEqual(given.service.keys.olderCodeKeys(old.code), [rows[0]?.code_key.replaceAll('-', '')]);
});

test('a process needs a key until it is dropped, and works without it from then on', async (t) => {
  const { till, given, operator, ids, keys } = await openBoth(t);
  const oldest = ids[1] ?? assert.fail();
  const card = await till.voucher();
  await beginRotation(operator, undefined);
  await finishRotation(operator, goOn, goOn);
  const without = `${keys.split(',')[0]}\n${keys.split('\n')[1]}`;
  const open = () => openKeyRing(given.service.db, { keys: without, dataDir: tmpdir() });
  await assert.rejects(open(), new RegExp(`key "${oldest}" is missing`));
  assert.equal(await dropKey(operator, oldest, undefined, goOn), true);
  await open();
  const alone = at(till, await testService(t, { ...till.testService, keys: without }));
  await alone.done(A.redeem(card, 25, 'under the new key alone'));
  await alone.reconciles();
});

test('webhook secrets are resealed with the vouchers', async (t) => {
  const { till, given, operator, ids } = await openBoth(t);
  const wanted = { merchantId: till.merchant.id, url: 'http://127.0.0.1:1/', events: null, full: false };
  const { id, secret } = await addEndpoint(asOperator(till.testService.service), wanted, true);
  const count = async () =>
    (await listKeyRing(given.service)).map(({ keyId, webhookSecrets }) => [keyId, webhookSecrets]);
  assert.deepEqual(await count(), [
    [ids[0], 0],
    [ids[1], 1],
  ]);
  await beginRotation(operator, undefined);
  await finishRotation(operator, goOn, goOn);
  assert.deepEqual(await count(), [
    [ids[0], 1],
    [ids[1], 0],
  ]);
  const [row] = await given.service.db.query<{ secret: Buffer }>(sql`select secret from webhook_endpoints`);
  assert.equal(given.service.keys.openText(`webhook:${id}`, row?.secret as Buffer), secret);
});

test('without a rotation, a balance enquiry and a redemption run one statement each', async (t) => {
  const { till } = await openBoth(t);
  const card = await till.voucher();
  const { service } = till.testService;
  const statements: string[] = [];
  const { hot } = service.db;
  Object.assign(service.db, {
    hot: (statement: HotStatement, values: readonly unknown[]) => {
      statements.push(statement.name);
      return hot(statement, values);
    },
  });
  await till.done(A.redeem(card, 1, 'sale'));
  await till.done(A.balance(card));
  // Keys are read once a second, independent of calls.
  assert.deepEqual(
    statements.filter((name) => name !== 'changed-keys'),
    ['redeem', 'read-balances'],
  );
});
