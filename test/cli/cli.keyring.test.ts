import assert from 'node:assert/strict';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { createService } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { newRingKey, readKeyRing, routingEntry } from '../../src/keyring/file.ts';
import { dropKey } from '../../src/rotation/rotate.ts';
import { folderOf } from '../support/folder.ts';
import { asOperator, startTestService } from '../support/harness.ts';
import { makeVouchers, Operator } from '../support/operator.ts';
import { ofFile } from '../support/scope.ts';
import { runScrip, typed } from '../support/scrip.ts';

const operator = Operator.ofTests();
const dataDir = folderOf(ofFile());

before(async () => {
  await writeFile(join(dataDir, 'keys'), `${operator.testService.keys}\n`, { mode: 0o600 });
});

/** Runs a command with a key file in place of SCRIP_KEYS. */
const run = (settings: Readonly<Record<string, string>>, ...args: string[]) =>
  runScrip({ SCRIP_DATABASE_URL: operator.testService.url, SCRIP_PORT: '0', ...settings }, ...args);

/** Runs `scrip keyring` on the key file of a data folder. */
const runKeyring = (...args: string[]) => run({ SCRIP_DATA_DIR: dataDir }, 'keyring', ...args);

test('scrip keyring rotates the key file, shows the use of each key, and drops the old key', async () => {
  const made = await operator.testService.createMerchant();
  await makeVouchers(await operator.enter(made), 'sealed', 3);
  const old = operator.testService.keys.split(':')[0] as string;

  const rotated = await runKeyring('rotate', '--json', '--by', 'anna');
  assert.deepEqual([rotated.status, rotated.err], [0, '']);
  const { keyId, resumed, retired } = JSON.parse(rotated.out);
  assert.deepEqual([resumed, retired], [false, [old]]);
  const file = await readFile(join(dataDir, 'keys'), 'utf8');
  assert.deepEqual(
    file
      .trim()
      .split('\n')
      .map((line) => line.split(':')[0]),
    [keyId, old, 'routing'],
  );
  assert.equal((await stat(join(dataDir, 'keys'))).mode & 0o777, 0o600);

  const status = JSON.parse((await runKeyring('show', '--json')).out);
  assert.deepEqual(
    status.map((each: Record<string, unknown>) => [
      each['keyId'],
      each['state'],
      each['vouchers'],
      each['inKeyRing'],
    ]),
    [
      [keyId, 'in use', 3, true],
      [old, 'retired', 0, true],
    ],
  );
  // A command without the new key is refused at its start, before any change.
  await operator.fails(new RegExp(`its key "${keyId}" is missing`), ...typed`audit list`);

  assert.match((await runKeyring('drop', keyId)).err, /^scrip: .* is in use/);
  const dropped = await runKeyring('drop', old);
  assert.equal(dropped.status, 0);
  assert.match(
    dropped.out,
    new RegExp(`removed from the key file. The key ring then holds ${keyId}, routing.`),
  );
  assert.deepEqual((await readFile(join(dataDir, 'keys'), 'utf8')).trim().split(':')[0], keyId);
  assert.equal((await runKeyring('show')).status, 0);
  assert.match((await runKeyring('drop', old)).err, /^scrip: .* was dropped already\n$/);
});

test('scrip keyring drop completes a drop that was killed between the database and the key file', async () => {
  const idsOfFile = async () =>
    (await readFile(join(dataDir, 'keys'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => line.split(':')[0])
      .filter((id) => id !== 'routing');
  const [old] = await idsOfFile();
  assert.equal((await runKeyring('rotate')).status, 0);
  const before = await readFile(join(dataDir, 'keys'), 'utf8');
  // A drop can be killed after its draft beside the key file, or after its change of the database.
  await writeFile(join(dataDir, 'keys.0123456789ab.part'), before, { mode: 0o600 });
  assert.equal((await runKeyring('drop', old ?? '')).status, 0);
  await writeFile(join(dataDir, 'keys'), before);
  await writeFile(join(dataDir, 'keys.0123456789ab.part'), before, { mode: 0o600 });
  assert.equal((await idsOfFile()).length, 2);
  const again = await runKeyring('drop', old ?? '');
  assert.deepEqual([again.status, again.err], [0, '']);
  assert.deepEqual((await idsOfFile()).includes(old), false);
  assert.deepEqual(
    (await readdir(dataDir)).filter((name) => name.startsWith('keys')),
    ['keys'],
  );
});

test('a wrong or missing key ring is reported before the schema is changed, and scrip migrate needs none', async (t) => {
  const owner = await openOwner(operator.testService.url);
  const empty = folderOf(t);
  const pending = '011-transactions.sql';
  const isPending = async () =>
    (await owner.query(sql`select from scrip.migrations where name = ${pending}`)).length === 0;
  try {
    await owner.query(sql`delete from scrip.migrations where name = ${pending}`);
    await owner.query(sql`drop function scrip.find_transactions, scrip.list_transactions`);
    const wrong = { SCRIP_DATA_DIR: empty, SCRIP_KEYS: newRingKey() };
    const refusals: [RegExp, Readonly<Record<string, string>>, string][] = [
      [/^scrip: the key ring does not fit this database: .* is missing .*\n$/, wrong, 'serve'],
      [/^scrip: the key ring does not fit this database: .* is missing .*\n$/, wrong, 'migrate'],
      [/^scrip: the key ring of this database is missing: .*\n$/, { SCRIP_DATA_DIR: empty }, 'serve'],
    ];
    for (const [message, settings, command] of refusals) {
      const { status, out, err } = await run(settings, command);
      assert.deepEqual([status, out], [5, '']);
      assert.match(err, message);
      assert.equal(await isPending(), true);
    }
    const done = await run({ SCRIP_DATA_DIR: empty }, 'migrate');
    assert.deepEqual(done, { status: 0, out: `${pending}\nthe schema is up to date\n`, err: '' });
    assert.equal(await isPending(), false);
    assert.deepEqual(await readdir(empty), []);
  } finally {
    await owner.close();
  }
});

test('a key file that others can read is used, with a warning', async () => {
  const file = join(dataDir, 'keys');
  await chmod(file, 0o644);
  const { status, err } = await runKeyring('show');
  await chmod(file, 0o600);
  assert.equal(status, 0);
  assert.match(err, /can be read by other accounts: chmod 600/);
  assert.equal((await runKeyring('show')).err, '');
});

test('scrip keyring rotate explains what to do if the key ring is a setting', async (t) => {
  const other = Operator.at(await startTestService(), {});
  t.after(other.testService.stop);
  await other.fails(/put it in front in every process/, ...typed`keyring rotate`);
  const { key } = await other.json`keyring make`;
  assert.match(key, /^[A-Za-z0-9]{1,16}:[A-Za-z0-9_-]{43}$/);
});

test('a new key ring has an entry a line, and can be used as it is printed', async () => {
  const { out } = await runKeyring('make', '--ring');
  assert.match(out, /^\w+:\S+\nrouting:\S+\n$/);
  assert.equal(readKeyRing(out, 'SCRIP_KEYS').routingFrom, undefined);
});

test('a key that the routing key is derived from is not dropped before the routing key has an entry', async () => {
  const [line = ''] = operator.testService.keys.split(/[,\n]/);
  const ring = readKeyRing(line, 'SCRIP_KEYS');
  const [id = ''] = line.split(':');
  assert.equal(ring.routingFrom, id);
  const { service } = operator.testService;
  const by = { ...asOperator(service), service: createService({ ...service, keys: ring }) };
  await assert.rejects(
    dropKey(by, id, undefined, () => false),
    /is derived from .*scrip keyring make --routing/,
  );
  const whole = readKeyRing(`${line},${routingEntry(ring)}`, 'SCRIP_KEYS');
  assert.deepEqual(
    [whole.routingFrom, whole.slotOf('482913057641')],
    [undefined, ring.slotOf('482913057641')],
  );
  const { out } = await runKeyring('make', '--routing');
  const [own = ''] = operator.testService.keys.split(/[,\n]/).filter((each) => each.startsWith('routing:'));
  assert.equal(out.trim(), own.trim());
});
