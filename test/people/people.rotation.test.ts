import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { newRingKey } from '../../src/keyring/file.ts';
import { sealedUnder } from '../../src/keyring/ring.ts';
import { beginRotation, dropKey, finishRotation } from '../../src/rotation/rotate.ts';
import { enrolled, signIn } from '../support/browser.ts';
import { asOperator, testService } from '../support/harness.ts';

const goOn = () => false;

test('people sign in during and after a key rotation, and the old key can be dropped', async (t) => {
  const before = await testService(t);
  const { person } = await enrolled(before);
  const keys = `${newRingKey()},${before.keys}`;
  const during = await testService(t, { ...before, keys });
  const operator = asOperator(during.service);
  const old = before.service.keys.current;
  await beginRotation(operator, undefined);
  await signIn(during, person);
  await finishRotation(operator, goOn, goOn);
  const [row] = await during.service.db.query<{ totp_secret: Buffer }>(sql`select totp_secret from users`);
  assert.notEqual(sealedUnder(row?.totp_secret as Buffer), old);
  await signIn(during, person);
  assert.equal(await dropKey(operator, old, undefined, goOn), true);
});

test('a key is not dropped while the secret of an authenticator app depends on it', async (t) => {
  const before = await testService(t);
  await enrolled(before);
  const [{ totp_secret } = { totp_secret: Buffer.alloc(0) }] = await before.service.db.query<{
    totp_secret: Buffer;
  }>(sql`select totp_secret from users`);
  const during = await testService(t, { ...before, keys: `${newRingKey()},${before.keys}` });
  const operator = asOperator(during.service);
  const old = before.service.keys.current;
  await beginRotation(operator, undefined);
  await finishRotation(operator, goOn, goOn);
  await during.service.db.query(sql`update users set totp_secret = ${totp_secret}`);
  await assert.rejects(dropKey(operator, old, undefined, goOn), /1 secrets of authenticator apps/);
});
