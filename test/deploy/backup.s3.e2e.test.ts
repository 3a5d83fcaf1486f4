import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { listBackups } from '../../embedded/manifest.ts';
import { Installation } from '../support/installation.ts';
import { archived } from '../support/log.ts';
import { BUCKET, type S3, startRealS3, startStandInS3 } from '../support/s3.ts';

/** Backups and the archived log in S3-compatible storage. */

const PLACE = `s3://${BUCKET}/backups`;
const LOG = `s3://${BUCKET}/log`;

async function installationAt(t: TestContext, { env }: S3): Promise<Installation> {
  const installation = await Installation.make(t);
  Object.assign(installation.settings, env, { SCRIP_ARCHIVE_DIR: LOG });
  // The test reads the bucket too.
  Object.assign(process.env, env);
  return installation;
}

async function loseAndRestore(t: TestContext, s3: S3): Promise<void> {
  const installation = await installationAt(t, s3);
  await installation.serve();
  await installation.json`merchant create --name Kiosk --float 100`;
  const made = await installation.json`backup create ${PLACE} --with-keys`;
  assert.ok(made.path.startsWith(`${PLACE}/`));
  assert.equal((await installation.json`backup verify ${PLACE}`).ok, true);
  await installation.topUp('after');
  await archived(installation);
  await installation.lose();
  await installation.json('restore', PLACE);
  assert.equal(await installation.balance(), 101);
  const second = await installation.json`backup create ${PLACE} --keep 1`;
  assert.deepEqual(
    (await listBackups(PLACE)).map(({ path }) => path),
    [second.path],
  );
}

test('a lost machine is restored from a bucket to its last second', async (t) => {
  await loseAndRestore(t, await startStandInS3(t));
});

test('a lost machine is restored from a bucket of an independent S3 server', async (t) => {
  const s3 = await startRealS3(t);
  if (s3) await loseAndRestore(t, s3);
});

test('a bucket error is reported in one line that says what to do', async (t) => {
  const s3 = await startStandInS3(t);
  const installation = await installationAt(t, s3);
  const fails = (expected: RegExp, settings: Record<string, string> = {}, place = PLACE) =>
    installation.fails(expected, ['restore', place], settings);
  await fails(/there is no backup in s3:\/\/vault\/backups: check the path/);
  await fails(
    /there is no bucket elsewhere: create it, or check s3:\/\/elsewhere\/b/,
    {},
    's3://elsewhere/b',
  );
  await fails(/names no bucket: write s3:\/\/bucket\/prefix/, {}, 's3:///backups');
  await fails(/AWS_REGION is not set/, { AWS_REGION: '' });
  await fails(/cannot be reached \(ECONNREFUSED\): check the network, and AWS_ENDPOINT_URL_S3/, {
    AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1',
  });
  s3.fail('InvalidAccessKeyId', 403);
  await fails(/cannot be used with these keys \(InvalidAccessKeyId\): check AWS_ACCESS_KEY_ID/);
});
