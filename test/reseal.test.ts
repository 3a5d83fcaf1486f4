import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findBatch } from '../src/batches/export.ts';
import { generate } from '../src/batches/generate.ts';
import { bytesArray, plainArray } from '../src/db/sql.ts';
import { newRingKey } from '../src/keyring/file.ts';
import { endProgress, resealVouchers } from '../src/rotation/queries.ts';
import { countLeftBehind, countSealed, resealAll } from '../src/rotation/reseal.ts';
import { beginRotation, finishRotation } from '../src/rotation/rotate.ts';
import { asOperator, produceAll, startTestService, type TestService } from './harness.ts';
import { Bench, BUCKET } from './statement.ts';

/**
 * More than a page of each of the walks: of 500 that are sealed anew, of 2,000 that are proven, of 20,000
 * that are counted.
 */
const ALL = 20_050;

let bench: Bench;
/** One that has a new key, and another one beside it. */
let one: TestService;
let two: TestService;
let ids: [newest: string, newer: string, old: string];

before(async () => {
  bench = await Bench.open();
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

after(async () => {
  await one?.stop();
  await two?.stop();
  await bench?.close();
});

const goOn = () => false;
/** A digest of what the first vouchers are sealed as. */
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

test('all are sealed under the key that seals, and proven to be, page by page', async () => {
  assert.deepEqual([...(await countSealed(one.service))], [[ids[2], ALL]]);
  const seen: number[] = [];
  assert.equal(await countLeftBehind(one.service, (vouchers) => seen.push(vouchers) === 0), 0);
  assert.deepEqual(seen, sizesOf(2_000));
});

test('after a new key was put to use all are left behind; sealed anew a page at a time, each once, from where a run was stopped', async () => {
  await beginRotation(asOperator(one.service), undefined);
  assert.equal(one.service.keys.current, ids[0]);
  // The progress of another rotation is nobody else's.
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

test('the proof can be stopped, and is none then', async () => {
  const seen: number[] = [];
  assert.equal(await countLeftBehind(one.service, (vouchers) => seen.push(vouchers) === 2), undefined);
  assert.deepEqual(seen, [2_000, 2_000]);
});

test('a voucher is left behind by its seal, by its look-up and by its PIN, wherever it stands', async () => {
  const old = bench.served.service.keys;
  for (const place of [0, 1_999, 2_000, ALL - 1]) {
    const serial = await serialAt(place);
    const [row] = await bench.query<{ sealed: Buffer; code_key: string; pin_key: string }>(
      `select sealed, code_key, pin_key from vouchers where serial_number = ${serial}`,
    );
    assert.ok(row);
    const { code, pin } = one.service.keys.open(serial, row.sealed);
    const set = (what: string) => bench.query(`update vouchers set ${what} where serial_number = ${serial}`);
    for (const what of [
      `sealed = '\\x${old.seal(serial, code, pin).toString('hex')}'`,
      `code_key = '${old.codeKey(code)}'`,
      `pin_key = '${old.pinKey(code, pin)}'`,
    ]) {
      await set(what);
      assert.equal(await countLeftBehind(one.service, goOn), 1, `${what} at ${place}`);
      await set(
        `sealed = '\\x${row.sealed.toString('hex')}', code_key = '${row.code_key}', pin_key = '${row.pin_key}'`,
      );
    }
  }
  assert.equal(await countLeftBehind(one.service, goOn), 0);
});

test('one that was sealed anew since it was read stays as it is, and so does every other', async () => {
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

test('nothing is sealed under a key that was replaced meanwhile, by a process that has not heard of it', async () => {
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
