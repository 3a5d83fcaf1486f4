import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Operator } from '../support/operator.ts';
import { typed } from '../support/scrip.ts';

const operator = Operator.ofTests();

test('scrip api-key creates, shows, limits and rotates restricted keys', async () => {
  const { id } = await operator.json`merchant create --name Kiosk`;
  const terms = typed`--scope balance --scope redeem --network 127.0.0.1 --network 2001:db8::/32 --name ${'Till 3'}`;
  const made = await operator.json`api-key create --merchant ${id} ${terms} --expires 2099-01-31`;
  assert.deepEqual(Object.keys(made), ['keyId', 'secret']);
  const shown = await operator.json`api-key show ${made.keyId}`;
  assert.deepEqual(
    [shown.scopes, shown.networks],
    [
      ['balance', 'redeem'],
      ['127.0.0.1/32', '2001:db8::/32'],
    ],
  );
  assert.deepEqual(
    [shown.expiresAt, shown.limit, shown.lastUsedAt],
    ['2099-01-31T23:59:59.999Z', null, null],
  );

  assert.match(
    (await operator.run`api-key limit ${made.keyId} --per-second 5 --burst 20`).out,
    /^limit +per second: 5, burst: 20$/m,
  );
  assert.equal(shown.name, 'Till 3');
  assert.match((await operator.run`api-key rename ${made.keyId} --name ${'Till 4'}`).out, /^name +Till 4$/m);
  const rotated = await operator.json`api-key rotate ${made.keyId} --overlap 30m`;
  assert.deepEqual(Object.keys(rotated), ['keyId', 'secret', 'replaces', 'until']);
  const [, old, renewed] = await operator.json`api-key list --merchant ${id}`;
  assert.deepEqual([old.keyId, old.rotatedTo, old.expiresAt], [made.keyId, rotated.keyId, rotated.until]);
  assert.deepEqual(
    [renewed.name, renewed.scopes, renewed.limit],
    ['Till 4', ['balance', 'redeem'], { perSecond: 5, burst: 20 }],
  );
  assert.equal((await operator.json`api-key rename ${old.keyId} --name none`).name, null);
  const table = await operator.run`api-key list --merchant ${id}`;
  assert.match(table.out, new RegExp(rotated.keyId));
  assert.ok(!table.out.includes(rotated.secret));
  assert.match((await operator.run`api-key limit ${rotated.keyId} --per-second none`).out, /^limit +-$/m);
});

test('scrip api-key revoke finds the only key of a merchant, and requires the id of one of several', async () => {
  const first = await operator.json`merchant create --name Kiosk`;
  const { id, keyId } = first;
  const second = await operator.json`api-key create --merchant ${id}`;
  const third = await operator.json`api-key create --merchant ${id}`;
  // Until they are revoked, each of the keys is valid.
  for (const key of [first, second, third]) await operator.enter(key);
  await Promise.all([
    operator.fails(/which key/, ...typed`api-key revoke --merchant ${id}`),
    operator.fails(/which key/, ...typed`api-key revoke`),
    operator.fails(/no key key_thatThereIsNo000/, ...typed`api-key revoke key_thatThereIsNo000`),
    operator.fails(/no key/, ...typed`api-key revoke --merchant ${Number(id) + 1} --key ${keyId}`),
  ]);
  const revoked = async () =>
    (await operator.json`api-key list --merchant ${id}`)
      .filter((key: { revokedAt: string | null }) => key.revokedAt !== null)
      .map((key: { keyId: string }) => key.keyId);
  assert.equal((await operator.run`api-key revoke ${third.keyId}`).out, 'revoked\n');
  await operator.fails(
    new RegExp(`which key.*${keyId}, ${second.keyId}`),
    ...typed`api-key revoke --merchant ${id}`,
  );
  assert.equal((await operator.run`api-key revoke --merchant ${id} --key ${keyId}`).out, 'revoked\n');
  assert.deepEqual(await revoked(), [keyId, third.keyId]);
  assert.equal((await operator.run`api-key revoke --merchant ${id}`).out, 'revoked\n');
  assert.deepEqual(await revoked(), [keyId, second.keyId, third.keyId]);
  await operator.fails(/no key to revoke/, ...typed`api-key revoke --merchant ${id}`);
  const other = await operator.json`merchant create --name Other`;
  assert.equal((await operator.run`api-key revoke --merchant ${other.id} ${other.keyId}`).out, 'revoked\n');
});
