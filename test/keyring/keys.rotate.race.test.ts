import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Queries } from '../../src/db/pool.ts';
import type { Sql } from '../../src/db/sql.ts';
import { newRingKey, readKeyRing } from '../../src/keyring/file.ts';
import { checkKeyRing, holdKeyRing, openKeyRing } from '../../src/keyring/store.ts';
import { beginRotation, finishRotation } from '../../src/rotation/rotate.ts';
import { DIALECTS } from '../support/dialects.ts';
import { folderOf } from '../support/folder.ts';
import { asOperator, testService } from '../support/harness.ts';
import { goOn } from '../support/rotation.ts';
import { Till } from '../support/till.ts';

const [A] = DIALECTS;

test('concurrent rotations of one key file add one key, and no key is lost', async (t) => {
  const folder = folderOf(t);
  const till = await Till.open(t);
  const card = await till.voucher();
  const file = join(folder, 'keys');
  await writeFile(file, `${till.testService.keys}\n`, { mode: 0o600 });
  const operators = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const keys = await openKeyRing(till.testService.service.db, { dataDir: folder });
      return asOperator({ ...till.testService.service, keys });
    }),
  );
  const begun = await Promise.all(
    operators.map((operator) => beginRotation(operator, { path: file, kms: undefined })),
  );
  assert.equal(begun.filter(({ resumed }) => !resumed).length, 1);
  assert.equal(new Set(begun.map(({ keyId }) => keyId)).size, 1);
  // A process that starts later finds the keys that are on the disk.
  const keys = await openKeyRing(till.testService.service.db, { dataDir: folder });
  assert.equal(keys.checks().length, 2);
  const again = asOperator({ ...till.testService.service, keys });
  const retired = await Promise.all(
    [...operators, again].map((operator) => finishRotation(operator, goOn, goOn)),
  );
  assert.deepEqual(retired.flat().length, 1);
  const restarted = await testService(t, { ...till.testService, keys: await readFile(file, 'utf8') });
  const sold = await restarted.request(till.merchant, A.redeem(card, 1, 'after all'));
  assert.equal(sold.statusCode, '00');
});

test('an answer about the keys that was read before a rotation does not take the newest key back', async (t) => {
  const { service, keys: text } = await testService(t);
  const { db } = service;
  const keys = readKeyRing(`${newRingKey()},${text}`, 'the test');
  await checkKeyRing(db, keys);
  const before = keys.current;
  const held = Promise.withResolvers<void>();
  const slow: Queries = {
    async query<Row>(statement: Sql) {
      const rows = await db.query<Row>(statement);
      await held.promise;
      return rows;
    },
  };
  const late = checkKeyRing(slow, keys);
  await beginRotation(asOperator({ ...service, keys }), undefined);
  const after = keys.current;
  assert.notEqual(after, before);
  await db.transaction(async (tx) => {
    await holdKeyRing(tx, keys);
    held.resolve();
    await late;
    assert.equal(keys.current, after);
  });
});
