import assert from 'node:assert/strict';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { CreateAliasCommand, CreateKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import { addToKeyFile, keyFile, removeFromKeyFile } from '../../src/keyring/file.ts';
import { findKms, isKms } from '../../src/keyring/kms.ts';
import { openRing, sealRing } from '../../src/keyring/sealed.ts';
import { openKeyRing } from '../../src/keyring/store.ts';
import { folderOf } from '../support/folder.ts';
import { startTestService, testDatabase } from '../support/harness.ts';
import { AWS_ENV, type StandIn, startAws, startMoto, startVault, VAULT_TOKEN } from '../support/kms.ts';
import { Operator } from '../support/operator.ts';
import { startScrip, typed } from '../support/scrip.ts';

/** A key ring that is sealed by a key management service (KMS). */

async function vaultSettings(folder: string, { url }: StandIn) {
  const vaultTokenFile = join(folder, 'token');
  await writeFile(vaultTokenFile, `${VAULT_TOKEN}\n`);
  return { kms: `vault:${url}/transit/keys/scrip`, vaultTokenFile };
}

test('a key file is sealed, used and rotated, and the KMS is needed only at a start', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  const folder = folderOf(t);
  const vault = await startVault(t);
  const kms = await vaultSettings(folder, vault);
  const dataDir = join(folder, 'data');
  const path = join(dataDir, 'keys');
  const operator = Operator.at(
    started,
    {
      SCRIP_KEYS: '',
      SCRIP_DATA_DIR: dataDir,
      SCRIP_KMS: kms.kms,
      SCRIP_VAULT_TOKEN_FILE: kms.vaultTokenFile,
    },
    true,
  );
  await mkdir(dataDir);
  await writeFile(path, `${started.keys}\n`, { mode: 0o600 });
  await operator.fails(
    /keys is not sealed, and SCRIP_KMS is set: run `scrip keyring seal` first/,
    ...typed`keyring show`,
  );
  assert.deepEqual(await operator.json`keyring seal`, { file: path, kms: kms.kms });
  const text = await readFile(path, 'utf8');
  for (const secret of started.keys.split(/[:,\n]/).filter((each) => each.length > 40))
    assert.ok(!text.includes(secret));
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  await operator.json`keyring show`;

  // The KMS goes away: a running process goes on, also through a rotation, and a start fails with the reason.
  const { db } = started.service;
  const keys = await openKeyRing(db, { dataDir, ...kms });
  await vault.close();
  await operator.fails(
    /the KMS vault:http:\/\/127.* cannot be reached \(ECONNREFUSED\), and the key ring stays sealed: start again when it is back/,
    ...typed`keyring show`,
  );
  const file = keyFile({ dataDir, ...kms });
  const keyId = await addToKeyFile(file);
  assert.equal(keys.holds(keyId), true);
  await removeFromKeyFile(file, keyId);
  assert.ok((await readFile(path, 'utf8')).startsWith('{'));
});

test('a sealed key ring is opened only with the KMS and its token', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  const folder = folderOf(t);
  const kms = await vaultSettings(folder, await startVault(t));
  const dataDir = join(folder, 'data');
  const operator = Operator.at(
    started,
    {
      SCRIP_KEYS: '',
      SCRIP_KEYS_FILE: join(dataDir, 'keys'),
      SCRIP_KMS: kms.kms,
      SCRIP_VAULT_TOKEN_FILE: kms.vaultTokenFile,
    },
    true,
  );
  await mkdir(dataDir);
  await writeFile(join(dataDir, 'keys'), await sealRing(started.keys, findKms(kms) as never), {
    mode: 0o600,
  });
  await operator.json`merchant list`;
  const plain = Operator.at(started, { SCRIP_KEYS: '', SCRIP_KEYS_FILE: join(dataDir, 'keys') }, true);
  await plain.fails(/is sealed by the KMS vault:http.*: set SCRIP_KMS to it/, ...typed`merchant list`);
  await writeFile(kms.vaultTokenFile, 'another');
  await operator.fails(
    /refuses the key ring \(403: permission denied\): check SCRIP_KMS/,
    ...typed`merchant list`,
  );
  await rm(kms.vaultTokenFile);
  await operator.fails(
    /the token in .*token \(SCRIP_VAULT_TOKEN_FILE\) cannot be read \(ENOENT\)/,
    ...typed`merchant list`,
  );
});

async function roundTrip(kms: string): Promise<void> {
  const service = findKms({ kms });
  assert.ok(service);
  const dataKey = Buffer.alloc(32, 7);
  const sealed = await service.seal(dataKey);
  assert.ok(!Buffer.from(sealed, 'base64').includes(dataKey));
  assert.deepEqual(await service.open(sealed), dataKey);
  const other = Buffer.from(sealed, 'base64');
  other[other.length - 1] = (other.at(-1) as number) ^ 1;
  await assert.rejects(service.open(other.toString('base64')), /refuses the key ring \(InvalidCiphertext/);
}

test('AWS KMS seals and opens a data key, and its errors become messages of one line', async (t) => {
  const aws = await startAws(t);
  Object.assign(process.env, AWS_ENV, { AWS_ENDPOINT_URL_KMS: aws.url });
  await roundTrip('aws:alias/scrip');
  await assert.rejects(findKms({ kms: 'aws:alias/other' })?.seal(Buffer.alloc(32)) ?? Promise.resolve(), {
    name: 'StartError',
    message:
      /the KMS aws:alias\/other refuses the key ring \(NotFoundException: no such alias\): check SCRIP_KMS/,
  });
  await aws.close();
  await assert.rejects(roundTrip('aws:alias/scrip'), /aws:alias\/scrip cannot be reached \(ECONNREFUSED\)/);
});

test('the AWS KMS of moto seals and opens a data key', async (t) => {
  const url = await startMoto(t);
  if (url === undefined) return;
  Object.assign(process.env, AWS_ENV, { AWS_ENDPOINT_URL_KMS: url });
  const client = new KMSClient({});
  const { KeyMetadata } = await client.send(new CreateKeyCommand({}));
  await client.send(new CreateAliasCommand({ AliasName: 'alias/scrip', TargetKeyId: KeyMetadata?.KeyId }));
  await roundTrip('aws:alias/scrip');
  await roundTrip(`aws:${KeyMetadata?.Arn}`);
});

test('a sealed key ring that was changed is not opened', async (t) => {
  const folder = folderOf(t);
  const kms = findKms(await vaultSettings(folder, await startVault(t))) as never;
  const sealed = JSON.parse(await sealRing('k1:secret', kms));
  const bytes = Buffer.from(sealed.ring, 'base64');
  bytes[15] = (bytes[15] as number) ^ 1;
  const changed = JSON.stringify({ ...sealed, ring: bytes.toString('base64') });
  await assert.rejects(
    openRing(changed, 'the key file k', kms),
    /the key file k is damaged: put back a copy/,
  );
  for (const text of ['{', JSON.stringify({ ...sealed, sealedKeyRing: 2 })])
    await assert.rejects(openRing(text, 'the key file k', kms), /damaged, or was sealed by another version/);
});

test('SCRIP_KMS accepts AWS KMS and Vault over HTTPS, and no other address', () => {
  for (const kms of [
    'aws:alias/scrip',
    'aws:1234-abcd',
    'aws:arn:aws:kms:eu-central-1:111122223333:key/1234-abcd',
    'aws:arn:aws-us-gov:kms:us-gov-west-1:111122223333:alias/scrip',
    'vault:https://vault.example.com:8200/transit/keys/scrip',
  ])
    assert.equal(isKms(kms), true, kms);
  for (const kms of [
    'vault:http://vault.example.com/transit/keys/scrip',
    'gcp:key',
    'vault:https://v/scrip',
    'aws:',
  ])
    assert.equal(isKms(kms), false, kms);
});

test('no key ring is created automatically for a database elsewhere', async (t) => {
  const fresh = await testDatabase(t);
  // The default data folder is below the working folder, where a service of this checkout may keep its own.
  const elsewhere = ['env', '-C', folderOf(t)];
  const create = ['merchant', 'create', '--name', 'Kiosk'];
  const { status, out, err } = await startScrip({ SCRIP_DATABASE_URL: fresh.url }, create, elsewhere).ended;
  assert.deepEqual([status, out], [5, '']);
  assert.match(
    err,
    /^scrip: there is no key ring, and none is made unasked beside a database elsewhere: set SCRIP_KEYS/,
  );
});
