import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { Context, Operator } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { newKeyRing, newRingKey } from '../../src/keyring/file.ts';
import { checkBeforeMigration, openKeyRing } from '../../src/keyring/store.ts';
import {
  beginRotation,
  dropKey,
  estimateAll,
  finishRotation,
  listKeyRing,
} from '../../src/rotation/rotate.ts';
import { folderOf } from '../support/folder.ts';
import { asOperator, startTestService, type TestService } from '../support/harness.ts';
import { goOn } from '../support/rotation.ts';
import { Bench } from '../support/statement.ts';

/** The life of a key ring, step by step: what each operation returns, writes and refuses. */

const MINUTE = 60_000;
const stopNow = () => true;

const bench = Bench.ofTests();
let one: Context;
let given: TestService;
let operator: Operator;
let ids: readonly [newest: string, old: string];
/** The entries of the key ring that stay when the old key is dropped. */
let newest: string;
let routing: string;

before(async () => {
  one = await bench.merchant();
  await bench.cards(one, 3, { value: 25 });
  newest = newRingKey();
  const keys = `${newest},${bench.served.keys}`;
  ids = keys.split(',').map((entry) => entry.slice(0, entry.indexOf(':'))) as unknown as typeof ids;
  routing = bench.served.keys.split('\n')[1] ?? assert.fail();
  given = await startTestService({ ...bench.served, keys });
  operator = asOperator(given.service);
});

const later = (minutes: number) => new Date(bench.now.getTime() + minutes * MINUTE);
const ring = async (at = given) =>
  (await listKeyRing(at.service)).map(({ keyId, state, inKeyRing, vouchers, webhookSecrets }) =>
    [keyId === ids[0] ? 'new' : 'old', state, inKeyRing ? 'held' : 'not held', vouchers, webhookSecrets].join(
      ' ',
    ),
  );
/** The audit entries of the key ring, oldest first. */
const audited = () =>
  bench.query<{ action: string; before: object; after: object }>(
    `select action, before::json, after::json from audit where subject = 'keyring' order by sequence`,
  );
const times = async () =>
  (
    await bench.query<Record<string, Date | null>>(
      'select superseded_at, retired_at, dropped_at from keyring_keys order by activation nulls last',
    )
  ).map(({ superseded_at, retired_at, dropped_at }) =>
    [superseded_at, retired_at, dropped_at].map(
      (time) => time && (time.getTime() - bench.now.getTime()) / MINUTE,
    ),
  );

test('the work of a rotation is estimated from the statistics, without counting vouchers', async () => {
  assert.equal(await estimateAll(given.service.db), 0);
  await bench.query('analyze vouchers');
  assert.equal(await estimateAll(given.service.db), 3);
});

test('an unused key is listed only if the key ring holds it', async () => {
  assert.deepEqual(await ring(), ['new unused held 0 0', 'old in use held 3 0']);
  assert.deepEqual(await ring(bench.served), ['old in use held 3 0']);
  const [unused, inUse] = await listKeyRing(given.service);
  assert.equal(unused?.since, null);
  assert.ok(inUse?.since instanceof Date);
});

test('a rotation needs a key that was never used', async () => {
  await assert.rejects(
    beginRotation(asOperator(one.service), undefined),
    /contains no key that was not used yet: make one/,
  );
  assert.deepEqual(await ring(), ['new unused held 0 0', 'old in use held 3 0']);
  assert.deepEqual(await audited(), []);
});

test('a rotation puts the new key to use, and leaves existing vouchers under the old one', async () => {
  given.clock.set(later(1));
  assert.deepEqual(await beginRotation(operator, undefined), { keyId: ids[0], resumed: false });
  assert.equal(given.service.keys.current, ids[0]);
  assert.equal(given.service.keys.inUse.length, 2);
  assert.deepEqual(await times(), [
    [1, null, null],
    [null, null, null],
  ]);
  assert.deepEqual(await audited(), [
    { action: 'keyring.rotate', before: { keyId: ids[1] }, after: { keyId: ids[0] } },
  ]);
  assert.deepEqual(await ring(), ['new in use held 0 0', 'old being replaced held 3 0']);
  // A second call resumes the rotation.
  assert.deepEqual(await beginRotation(operator, undefined), { keyId: ids[0], resumed: true });
  assert.equal((await audited()).length, 1);
});

test('a rotation that is stopped retires nothing', async () => {
  assert.equal(await finishRotation(operator, stopNow, goOn), undefined);
  assert.equal(await finishRotation(operator, goOn, stopNow), undefined);
  assert.deepEqual(await ring(), ['new in use held 3 0', 'old being replaced held 0 0']);
  assert.equal((await audited()).length, 1);
});

test('a rotation that leaves a voucher behind retires nothing', async () => {
  const vouchers = await bench.query<{ code_key: string; serial_number: bigint }>(
    'select code_key, serial_number from vouchers',
  );
  await bench.query(
    `update vouchers set code_key = gen_random_uuid() where serial_number = ${vouchers[1]?.serial_number}`,
  );
  await assert.rejects(
    finishRotation(operator, goOn, goOn),
    /^Error: 1 vouchers are not under \S+: run this again/,
  );
  assert.deepEqual(await times(), [
    [1, null, null],
    [null, null, null],
  ]);
  await bench.query(
    `update vouchers set code_key = '${vouchers[1]?.code_key}' where serial_number = ${vouchers[1]?.serial_number}`,
  );
});

test('a finished rotation retires the old key, once', async () => {
  await assert.rejects(
    dropKey(operator, ids[1], undefined, goOn),
    /is being replaced: `scrip keyring rotate` replaces it/,
  );
  given.clock.set(later(2));
  assert.deepEqual(await finishRotation(operator, goOn, goOn), [ids[1]]);
  assert.deepEqual(await ring(), ['new in use held 3 0', 'old retired held 0 0']);
  given.clock.set(later(3));
  assert.deepEqual(await finishRotation(operator, goOn, goOn), []);
  assert.deepEqual(await times(), [
    [1, 2, null],
    [null, null, null],
  ]);
  const [, retired, ...others] = await audited();
  assert.deepEqual(retired, {
    action: 'keyring.retire',
    before: { keyId: ids[0], beingReplaced: [ids[1]] },
    after: { keyId: ids[0], retired: [ids[1]] },
  });
  assert.deepEqual(others, []);
  const [progress] = await bench.query<{ started_at: Date; finished_at: Date }>(
    'select started_at, finished_at from keyring_rotations',
  );
  assert.deepEqual(progress, { started_at: later(1), finished_at: later(2) });
});

test('a key is not dropped if it is in use, if it seals anything, or if that is not verified', async () => {
  const drop = (keyId: string) => dropKey(operator, keyId, undefined, goOn);
  await assert.rejects(drop('nobody'), /^Error: no such key was ever in use$/);
  await assert.rejects(drop(ids[0]), /is in use: `scrip keyring rotate` replaces it/);
  const old = bench.served.service.keys;
  const endpoint = await bench.endpoint(one, null);
  const secret = (text: Buffer) =>
    `update webhook_endpoints set secret = '\\x${text.toString('hex')}' where id = ${endpoint}`;
  await bench.query(secret(old.sealText(`webhook:${endpoint}`, 'secret')));
  assert.equal((await ring())[1], 'old retired held 0 1');
  await assert.rejects(drop(ids[1]), /^Error: 1 webhook secrets are sealed under /);
  await bench.query('delete from webhook_endpoints');
  const [head] = await bench.query<{ sealed: Buffer }>('select sealed from audit_head');
  const sealHead = (sealed: Buffer) =>
    bench.query(`update audit_head set sealed = '\\x${sealed.toString('hex')}'`);
  await sealHead(old.sealText('audit head', 'anything'));
  await assert.rejects(drop(ids[1]), /^Error: the end of the audit is sealed under /);
  await sealHead(head?.sealed as Buffer);
  await bench.query('update vouchers set pin_key = gen_random_uuid()');
  await assert.rejects(drop(ids[1]), /^Error: 3 vouchers are not under the key in use/);
  const rows = await bench.query<{ serial_number: bigint; sealed: Buffer }>(
    'select serial_number, sealed from vouchers',
  );
  for (const { serial_number, sealed } of rows) {
    const { code, pin } = given.service.keys.open(serial_number, sealed);
    const key = given.service.keys.pinKey(code, pin);
    await bench.query(`update vouchers set pin_key = '${key}' where serial_number = ${serial_number}`);
  }
  assert.equal(await dropKey(operator, ids[1], undefined, stopNow), false);
  assert.equal((await audited()).length, 2);
  assert.equal((await ring())[1], 'old retired held 0 0');
});

test('a dropped key is removed from the key file, even by a second run, and is dropped once', async (t) => {
  const folder = folderOf(t);
  const file = join(folder, 'keys');
  await writeFile(file, `${given.keys.replace(',', '\n')}\n`, { mode: 0o600 });
  const keys = await openKeyRing(given.service.db, { dataDir: folder });
  const filed = asOperator({ ...given.service, keys });
  given.clock.set(later(4));
  // Another retired key is not changed.
  await bench.query(
    "insert into keyring_keys (key_id, check_value, activation, superseded_at, retired_at) values ('kother', '\\x00', 0, now(), now())",
  );
  // Without a writable file, only the database records the drop.
  assert.equal(await dropKey(filed, ids[1], undefined, goOn), true);
  const [other] = await bench.query("delete from keyring_keys where key_id = 'kother' returning dropped_at");
  assert.deepEqual(other, { dropped_at: null });
  assert.deepEqual(await times(), [
    [1, 2, 4],
    [null, null, null],
  ]);
  assert.deepEqual(await ring(), ['new in use held 3 0', 'old dropped held 0 0']);
  assert.match(await readFile(file, 'utf8'), new RegExp(ids[1]));
  await assert.rejects(dropKey(filed, ids[1], undefined, goOn), /was dropped already$/);
  assert.equal(await dropKey(filed, ids[1], { path: file, kms: undefined }, goOn), true);
  assert.equal(await readFile(file, 'utf8'), `${newest}\n${routing}\n`);
  const alone = asOperator({
    ...given.service,
    keys: await openKeyRing(given.service.db, { dataDir: folder }),
  });
  await assert.rejects(dropKey(alone, ids[1], { path: file, kms: undefined }, goOn), /was dropped already$/);
  const [, , dropped, ...others] = await audited();
  assert.deepEqual(dropped, {
    action: 'keyring.drop',
    before: { keyId: ids[1], state: 'retired' },
    after: { keyId: ids[1], state: 'dropped' },
  });
  assert.deepEqual(others, []);
});

test('before a migration, a key ring must hold every key of the database but dropped ones', async (t) => {
  const owner = await openOwner(given.url);
  t.after(() => owner.close());
  const check = (keys: string) => checkBeforeMigration(owner, { keys, dataDir: folderOf(t) }, false);
  await check(`${newest}\n${routing}`);
  await assert.rejects(check(newKeyRing()), /does not fit this database: its key ".*" is missing/);
});

test('a rotation adds a new key to a key file that can be written', async (t) => {
  const folder = folderOf(t);
  const file = join(folder, 'keys');
  await writeFile(file, `${newest}\n${routing}\n`, { mode: 0o600 });
  const keys = await openKeyRing(given.service.db, { dataDir: folder });
  given.clock.set(later(5));
  const { keyId, resumed } = await beginRotation(asOperator({ ...given.service, keys }), {
    path: file,
    kms: undefined,
  });
  assert.equal(resumed, false);
  assert.ok(!ids.includes(keyId));
  // The other keys are not changed.
  assert.deepEqual(await times(), [
    [1, 2, 4],
    [5, null, null],
    [null, null, null],
  ]);
  assert.match(await readFile(file, 'utf8'), new RegExp(`^${keyId}:.*\n${ids[0]}:.*\nrouting:.*\n$`));
});
