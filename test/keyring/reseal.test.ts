import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { findBatch } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import { bytesArray, plainArray } from '../../src/db/sql.ts';
import { newRingKey } from '../../src/keyring/file.ts';
import { countLeftBehind, countSealed, resealAll, resealVouchers } from '../../src/rotation/reseal.ts';
import { beginRotation, endProgress, finishRotation } from '../../src/rotation/rotate.ts';
import { asOperator, produceAll, startTestService, type TestService } from '../support/harness.ts';
import { goOn } from '../support/rotation.ts';
import { Bench, BUCKET } from '../support/statement.ts';

/** More than a page of each walk: 500 vouchers are resealed at a time, 2,000 verified, 20,000 counted. */
const ALL = 20_050;

const bench = Bench.ofTests();
/** Two processes with new keys. */
let one: TestService;
let two: TestService;
let ids: [newest: string, newer: string, old: string];

before(async () => {
  const context = await bench.merchant();
  await generate(context, { reference: 'many', quantity: ALL, value: 1 });
  await produceAll(bench.served.service, (await findBatch(context, 'many')).id);
  const keys = `${newRingKey()},${newRingKey()},${bench.served.keys}`;
  ids = keys.split(',').map((entry) => entry.slice(0, entry.indexOf(':'))) as typeof ids;
  [one, two] = [
    await startTestService({ ...bench.served, keys }),
    await startTestService({ ...bench.served, keys }),
  ];
});

/** A digest of the seals up to a serial number. */
const sealedUpTo = async (serial: bigint) => {
  const [row] = await bench.query<{ digest: string }>(
    `
      select md5(string_agg(sealed, '' order by serial_number)) as digest from vouchers
      where serial_number <= ${serial}`,
  );
  return row?.digest;
};
const serialAt = async (place: number) => {
  const [row] = await bench.query<{ serial: bigint }>(
    `select serial_number as serial from vouchers order by serial_number limit 1 offset ${place}`,
  );
  return row?.serial as bigint;
};
const sizesOf = (chunk: number) => [
  ...Array.from({ length: Math.floor(ALL / chunk) }, () => chunk),
  ALL % chunk,
];

test('all vouchers are sealed under the current key, which is verified page by page', async () => {
  assert.deepEqual([...(await countSealed(one.service))], [[ids[2], ALL]]);
  const seen: number[] = [];
  assert.equal(await countLeftBehind(one.service, (vouchers) => seen.push(vouchers) === 0), 0);
  assert.deepEqual(seen, sizesOf(2_000));
});

test('a run reseals all vouchers page by page, each once, and resumes where it was stopped', async () => {
  await beginRotation(asOperator(one.service), undefined);
  assert.equal(one.service.keys.current, ids[0]);
  // The progress of another rotation is not used.
  const elsewhere = [{ key_id: 'kother', resealed_to: 10_000_000_005n, finished_at: null }];
  await bench.query(
    "insert into keyring_rotations (key_id, bucket, started_at, resealed_to) values ('kother', 0, now(), 10000000005)",
  );
  assert.equal(await countLeftBehind(one.service, goOn), ALL);
  const [stop, seen] = [2, [] as number[]];
  assert.equal(await resealAll(one.service, (vouchers) => seen.push(vouchers) === stop), false);
  assert.deepEqual(seen.splice(0), [500, 500]);
  assert.deepEqual(Object.fromEntries(await countSealed(one.service)), {
    [ids[0]]: 1_000,
    [ids[2]]: ALL - 1_000,
  });
  const done = await serialAt(999);
  const sealedSoFar = await sealedUpTo(done);
  const [row] = await bench.query<{ resealed_to: bigint }>(
    `select resealed_to from keyring_rotations where key_id = '${ids[0]}'`,
  );
  assert.equal(row?.resealed_to, done);
  assert.equal(await resealAll(one.service, (vouchers) => seen.push(vouchers) === 0), true);
  assert.deepEqual(seen, sizesOf(500).slice(2));
  assert.deepEqual([...(await countSealed(one.service))], [[ids[0], ALL]]);
  // Each seal has a nonce of its own: a voucher that was sealed once more would differ.
  assert.equal(await sealedUpTo(done), sealedSoFar);
  assert.equal(await countLeftBehind(one.service, goOn), 0);
  await one.service.db.query(endProgress(ids[0], bench.now));
  const others = "select key_id, resealed_to, finished_at from keyring_rotations where key_id = 'kother'";
  assert.deepEqual(await bench.query(others), elsewhere);
});

test('a verification that is stopped has no result', async () => {
  const seen: number[] = [];
  assert.equal(await countLeftBehind(one.service, (vouchers) => seen.push(vouchers) === 2), undefined);
  assert.deepEqual(seen, [2_000, 2_000]);
});

test('a voucher is left behind if its seal, its code key or its PIN key is old, on every page', async () => {
  const old = bench.served.service.keys;
  const vouchers = await Promise.all(
    [0, 1_999, 2_000, ALL - 1].map(async (place) => {
      const serial = await serialAt(place);
      const [row] = await bench.query<{ sealed: Buffer; code_key: string; pin_key: string }>(
        `select sealed, code_key, pin_key from vouchers where serial_number = ${serial}`,
      );
      assert.ok(row);
      return { serial, row, ...one.service.keys.open(serial, row.sealed) };
    }),
  );
  type Voucher = (typeof vouchers)[number];
  const setAll = async (what: (voucher: Voucher) => string) => {
    for (const each of vouchers)
      await bench.query(`update vouchers set ${what(each)} where serial_number = ${each.serial}`);
  };
  for (const what of [
    ({ serial, code, pin }: Voucher) => `sealed = '\\x${old.seal(serial, code, pin).toString('hex')}'`,
    ({ code }: Voucher) => `code_key = '${old.codeKey(code)}'`,
    ({ code, pin }: Voucher) => `pin_key = '${old.pinKey(code, pin)}'`,
  ]) {
    await setAll(what);
    assert.equal(await countLeftBehind(one.service, goOn), vouchers.length, String(what));
    await setAll(
      ({ row }) =>
        `sealed = '\\x${row.sealed.toString('hex')}', code_key = '${row.code_key}', pin_key = '${row.pin_key}'`,
    );
  }
  assert.equal(await countLeftBehind(one.service, goOn), 0);
});

test('a voucher that was resealed since it was read stays as it is; others are resealed', async () => {
  const [first, second] = [await serialAt(0), await serialAt(1)];
  const seals = async (serial: bigint) => {
    const [row] = await bench.query<{ sealed: Buffer }>(
      `select sealed from vouchers where serial_number = ${serial}`,
    );
    return row?.sealed as Buffer;
  };
  const { keys } = one.service;
  const secrets = keys.open(second, await seals(second));
  const [before, again] = [await seals(first), keys.seal(second, secrets.code, secrets.pin)];
  const columns = {
    serials: plainArray([first, second]),
    before: bytesArray([keys.seal(first, '123456789012', '1234'), await seals(second)]),
    sealed: bytesArray([keys.seal(first, '123456789012', '1234'), again]),
    codeKeys: plainArray(['a'.repeat(32), keys.codeKey(secrets.code)]),
    pinKeys: plainArray(['b'.repeat(32), keys.pinKey(secrets.code, secrets.pin)]),
  };
  assert.deepEqual(await one.service.db.query(resealVouchers(BUCKET, columns)), [{ reseal_vouchers: 1 }]);
  assert.deepEqual([await seals(first), await seals(second)], [before, again]);
  assert.equal(await countLeftBehind(one.service, goOn), 0);
});

test('a process does not reseal under a key that another process has replaced', async () => {
  assert.deepEqual(await finishRotation(asOperator(one.service), goOn, goOn), [ids[2]]);
  await beginRotation(asOperator(two.service), undefined);
  assert.deepEqual([one.service.keys.current, two.service.keys.current], [ids[0], ids[1]]);
  await bench.query(`update keyring_rotations set resealed_to = 0`);
  await assert.rejects(
    resealAll(one.service, goOn),
    /another key than \S+ has been put to use meanwhile: run this again/,
  );
  assert.deepEqual([...(await countSealed(two.service))], [[ids[0], ALL]]);
});
