import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compare, Verifier } from '@scrip/verifier';
import {
  checkpointOf,
  KINDS,
  readCheckpoint,
  signCheckpoint,
  signKeys,
  verifierKey,
} from '../../src/books/checkpoint.ts';
import { rootOf } from '../../src/books/merkle.ts';
import { compareWith, publishBooks, readPublished } from '../../src/books/publish.ts';
import { explainFile } from '../../src/cli/file.ts';
import { createProgram } from '../../src/cli/program.ts';
import type { Service } from '../../src/context.ts';
import { KeyRing, type RingKey, ringKey, type Signer, signerOf } from '../../src/keyring/ring.ts';
import { type Ledger, openLedger, sell } from '../support/books.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { exportedText } from '../support/reports.ts';
import { ofFile } from '../support/scope.ts';
import { ENVIRONMENT, MAIN } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** Closed days are published with a checkpoint, against which another history does not get through. */

const VERIFIER = fileURLToPath(new URL('../../verifier/bin/scrip-verifier.js', import.meta.url));

const t = ofFile();
let ledger: Ledger;
let service: Service;
let folder: string;

before(async () => {
  ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  ({ service } = ledger.started);
  await sell(await ledger.merchant(), 1, 25);
  await ledger.at('2026-03-04T00:30:00Z');
  await ledger.close();
});

beforeEach(async () => {
  folder = join(await temporaryFolder('scrip-published-'), 'web');
});

const differences = async (of: Pick<Service, 'db' | 'keys'> = service) =>
  (await compareWith(of, folder)).map(({ day, change, detail }) => `${day} ${change}: ${detail}`);

/** Verifies the proof of all days with what was published. */
async function verified(key?: string): Promise<string> {
  const wanted = { format: 'proof', from: '2026-03-02', to: '2026-03-04' } as const;
  const verifier = new Verifier();
  verifier.piece(await exportedText(service, wanted));
  const published = (await readPublished(folder)) ?? assert.fail();
  return compare(verifier.closings, published, key ?? published.keys[0]).then(
    () => 'verified',
    (error: Error) => error.message,
  );
}

const file = (name: string) => join(folder, name);
const replace = async (name: string, one: string | RegExp, other: string) =>
  writeFile(file(name), (await readFile(file(name), 'utf8')).replace(one, other));

test('what is published agrees with the database and with a proof, and grows day by day', async () => {
  const first = await publishBooks(service, folder);
  assert.equal(first.size, 2);
  assert.deepEqual(await differences(), []);
  assert.equal(await verified(), 'verified');
  await ledger.at('2026-03-05T00:30:00Z');
  await ledger.close();
  const second = await publishBooks(service, folder);
  assert.deepEqual([second.size, second.origin], [3, first.origin]);
  assert.deepEqual(await differences(), []);
  assert.equal(await verified(), 'verified');
  const [origin, size, root] = (await readFile(file('checkpoint'), 'utf8')).split('\n');
  assert.deepEqual([origin, size, root], [second.origin, '3', second.root.toString('base64')]);
});

test('a database that was rolled back is found, and not published over what it has lost', async () => {
  await publishBooks(service, folder);
  const text = (await readFile(file('closings'), 'utf8')).trim().split('\n').at(-1) ?? '';
  await writeFile(file('closings'), text.replace('"2026-03-', '"2026-04-'), { flag: 'a' });
  const found = await differences();
  assert.match(found.join(), /^2026-04-\d\d published: .* the database was rolled back$/);
  await assert.rejects(publishBooks(service, folder), /contains another history: 2026-04/);
});

test('a closing that was published with another hash is found', async () => {
  await publishBooks(service, folder);
  await replace('closings', '"UTC"', '"Asia/Tokyo"');
  assert.match((await differences()).join(), /^2026-03-02 published: .* there are two histories$/);
  await assert.rejects(publishBooks(service, folder), /contains another history: 2026-03-02/);
  assert.match(await verified(), /the published closings are not those of the checkpoint/);
});

test('a checkpoint that was changed, or is of another installation, is found', async () => {
  const { origin } = await publishBooks(service, folder);
  const other = new KeyRing([ringKey('k9', randomBytes(32))], randomBytes(32));
  assert.match((await differences({ db: service.db, keys: other })).join(), /no key of the key ring has/);
  const [foreign] = other.signers();
  const key = verifierKey(origin, KINDS.log, foreign?.publicKey ?? assert.fail());
  assert.match(await verified(key), /the checkpoint is not signed by the key/);
  const whole = await readFile(file('checkpoint'), 'utf8');
  await replace('checkpoint', `\u2014 ${origin} `, '\u2014 scrip/other ');
  assert.match((await differences()).join(), /no key of the key ring has signed the checkpoint/);
  await writeFile(file('checkpoint'), whole);
  await replace('checkpoint', '\n3\n', '\n2\n');
  assert.match((await differences()).join(), /the published closings are not those of the checkpoint/);
  assert.match(await verified(), /signature of .* is not valid/);
  await rm(file('checkpoint'));
  await assert.rejects(compareWith(service, folder), /has no checkpoint/);
});

/** Runs a witness that keeps what it has seen beside what was published. */
const witness = async () =>
  (await createProgram('witness')).parseAsync(['witness', folder, file('../state')], { from: 'user' });
const witnessed = (name: string) => readFile(file(`../state/${name}`), 'utf8');

test('a witness confirms a checkpoint, and refuses fewer days later', async () => {
  await publishBooks(service, folder);
  await witness();
  const cosigned = await witnessed('checkpoint');
  const { text } = readCheckpoint(cosigned) ?? assert.fail();
  const [, name = '', base64 = ''] = (cosigned.split('\n').at(-2) ?? '').split(' ');
  const seed = Buffer.from(await witnessed('secret'), 'hex');
  const bytes = Buffer.from(base64, 'base64');
  const signer = signerOf(seed);
  assert.match(name, /^scrip-witness\/[0-9a-f]{16}$/);
  const signed = `cosignature/v1\ntime ${bytes.readBigUInt64BE(4)}\n${text}`;
  assert.deepEqual(bytes.subarray(12), signer.sign(signed));
  const { closings = [] } = (await readPublished(folder)) ?? {};
  await writeFile(
    file('checkpoint'),
    signCheckpoint(checkpointOf(closings.slice(0, 1)), service.keys.signers()),
  );
  await assert.rejects(witness(), /not confirmed: it has 1 days, and 3 were seen before/);
  assert.equal(await witnessed('checkpoint'), cosigned);
});

test('a witness whose disk is full keeps no piece of a key, and a piece is named', async () => {
  await publishBooks(service, folder);
  const command = [process.execPath, MAIN, 'witness', folder, file('../state')].join(' ');
  // No file may grow, as on a full disk.
  const limited = ['-c', `trap '' XFSZ; ulimit -f 0; exec ${command}`];
  const full = await promisify(execFile)('/bin/sh', limited, { env: ENVIRONMENT }).catch((error) => error);
  assert.match(full.stderr, /^scrip: a file cannot be written: it would be larger .*\n$/);
  assert.deepEqual(await readdir(file('../state')), ['lock']);
  await writeFile(file('../state/secret'), '');
  await assert.rejects(witness(), /secret is no key of a witness: put it back from a copy/);
});

test('a folder is read in the order in which it is not torn while days are published', async () => {
  await publishBooks(service, folder);
  const [checkpoint, closings] = await Promise.all(
    ['checkpoint', 'closings'].map((name) => readFile(file(name), 'utf8')),
  );
  const wanted = { format: 'proof', from: '2026-03-02', to: '2026-03-03' } as const;
  await writeFile(file('proof.txt'), await exportedText(service, wanted));
  // What reads the checkpoint waits for it, and only then may it read the closings.
  await rm(file('checkpoint'));
  await promisify(execFile)('mkfifo', [file('checkpoint')]);
  await writeFile(file('closings'), '');
  const found = promisify(execFile)(process.execPath, [
    ...[VERIFIER, file('proof.txt'), '--against', folder],
  ]);
  const writing = await open(file('checkpoint'), 'w');
  await writeFile(file('closings'), closings ?? '');
  await writing.writeFile(checkpoint ?? '');
  await writing.close();
  assert.match((await found).stdout, /^verified: 1 closed day/);
  // Closings that cannot be read do not matter as long as there is no checkpoint.
  await rm(file('checkpoint'));
  await rm(file('closings'));
  await mkdir(file('closings'));
  assert.equal(await readPublished(folder), undefined);
});

test('no signed checkpoint makes a witness forget what it has seen', async () => {
  const { size, ...checkpoint } = await publishBooks(service, folder);
  await witness();
  const cosigned = await witnessed('checkpoint');
  for (const forged of [
    { ...checkpoint, size: Number.NaN, root: rootOf([]) },
    { ...checkpoint, size: 0, root: rootOf([]) },
    { ...checkpoint, size: -size },
    { ...checkpoint, size: Number.POSITIVE_INFINITY },
    { ...checkpoint, size, root: Buffer.alloc(0) },
  ]) {
    await writeFile(file('checkpoint'), signCheckpoint(forged, service.keys.signers()));
    await assert.rejects(witness(), /not confirmed: it is no checkpoint/, `${forged.size}`);
    assert.equal(await witnessed('checkpoint'), cosigned);
    assert.match((await differences()).join(), /the checkpoint is none/);
    assert.notEqual(await verified(), 'verified');
  }
});

test('a witness trusts a new key only if a known one has signed it', async () => {
  const { origin } = await publishBooks(service, folder);
  await witness();
  const own = service.keys.signers();
  const stranger = signerOf(Buffer.alloc(32, 9));
  const strange = verifierKey(origin, KINDS.log, stranger.publicKey);
  const signed = await readFile(file('keys'), 'utf8');
  for (const forged of [
    `${strange}\n${signed}`,
    signed.replace('\n\n', `\n${strange}\n\n`),
    signKeys(origin, [stranger]),
    signed.slice(0, signed.indexOf('\n\n') + 1),
    await readFile(file('checkpoint'), 'utf8'),
    '',
  ]) {
    await writeFile(file('keys'), forged);
    await assert.rejects(witness(), /not confirmed: its keys are not signed by a key that was seen before/);
  }
  await writeFile(file('keys'), signKeys(origin, [stranger, ...own]));
  await witness();
  assert.ok((await witnessed('keys')).startsWith(strange));
});

test('a published file that is damaged is told, and breaks nothing', async () => {
  const { origin } = await publishBooks(service, folder);
  const short = verifierKey(origin, KINDS.log, Buffer.alloc(3));
  await writeFile(file('keys'), `${short}\n${await readFile(file('keys'), 'utf8')}`);
  await witness();
  await writeFile(file('closings'), '{"a":\n');
  assert.match((await differences()).join(), /^no day published: .* there are two histories$/);
  await writeFile(file('checkpoint'), '\n\n');
  await assert.rejects(witness(), /not confirmed: it is no checkpoint/);
});

test('a published file that is a pipe is told, and nothing waits for it', async () => {
  const tells = (reason: string) => (error: Error) => {
    assert.match(explainFile(error) ?? '', new RegExp(`cannot be used: ${reason}`));
    return true;
  };
  await publishBooks(service, folder);
  await rm(file('closings'));
  await promisify(execFile)('mkfifo', [file('closings')]);
  for (const reads of [() => publishBooks(service, folder), differences, witness])
    await assert.rejects(reads(), tells('it is a pipe or a device'));
  await rm(file('closings'));
  await writeFile(file('../state'), '');
  await assert.rejects(witness(), tells('a file has its name'));
});

test('after a rotation, the older key signs too until it is dropped', async () => {
  await publishBooks(service, folder);
  const [known = ''] = (await readPublished(folder))?.keys ?? [];
  const older = ringKey('k1', randomBytes(32));
  const newer = ringKey('k2', randomBytes(32));
  const keysAfter = async (...keys: ConstructorParameters<typeof KeyRing>[0][number][]) => {
    await rm(folder, { recursive: true });
    await publishBooks({ db: service.db, keys: new KeyRing(keys, randomBytes(32)) }, folder);
    return (await readPublished(folder))?.keys ?? [];
  };
  const [before = ''] = await keysAfter(older);
  const both = await keysAfter(newer, older);
  assert.equal(both.length, 2);
  for (const key of both) assert.equal(await verified(key), 'verified');
  assert.ok(both.includes(before) && !both.includes(known));
  assert.deepEqual(await keysAfter(newer), both.slice(0, 1));
  assert.match(await verified(before), /is not signed by the key/);
});

test('a key that was dropped before a publication is put back, or another folder begins', async () => {
  const [older, newer] = ['k1', 'k2'].map((id) => ringKey(id, randomBytes(32))) as [RingKey, RingKey];
  const publish = (into: string, ...keys: RingKey[]) =>
    publishBooks({ db: service.db, keys: new KeyRing(keys, Buffer.alloc(32)) }, into);
  await publish(folder, older);
  const refused = /web has a checkpoint of another key: no key .*Put that key back as the last/;
  await assert.rejects(publish(folder, newer), refused);
  const dropped = { db: service.db, keys: new KeyRing([newer], Buffer.alloc(32)) };
  assert.match((await differences(dropped)).join(), /it was changed, or its key was dropped$/);
  await publish(folder, newer, older);
  await publish(folder, newer);
  assert.deepEqual(await differences(dropped), []);
  await assert.rejects(publish(folder, older), refused);
  await publish(join(folder, 'new'), older);
});

test('a published key that is not of the key ring, or has not signed, is found', async () => {
  const { origin } = await publishBooks(service, folder);
  const own = service.keys.signers();
  const stranger = signerOf(Buffer.alloc(32, 9));
  await writeFile(file('keys'), signKeys(origin, [...own, stranger]));
  const signed = readCheckpoint(await readFile(file('checkpoint'), 'utf8')) ?? assert.fail();
  await writeFile(file('checkpoint'), signCheckpoint(signed, [...own, stranger]));
  assert.match((await differences()).join(), /is no key of the key ring, or has not signed the checkpoint$/);
  const newer = ringKey('k2', randomBytes(32));
  const older = ringKey('k1', randomBytes(32));
  const rotated = { db: service.db, keys: new KeyRing([newer, older], Buffer.alloc(32)) };
  const [one, two] = rotated.keys.signers() as [Signer, Signer];
  await writeFile(file('checkpoint'), signCheckpoint(signed, [two]));
  await writeFile(file('keys'), signKeys(origin, [two]));
  assert.deepEqual(await differences(rotated), [], 'a rotation that is not published yet');
  await writeFile(file('keys'), signKeys(origin, [one, two]));
  assert.match((await differences(rotated)).join(), /or has not signed the checkpoint$/);
  await writeFile(file('keys'), signKeys(origin, [two]).replace('\u2014', '-'));
  assert.match((await differences(rotated)).join(), /the published keys are not signed$/);
  await publishBooks(rotated, folder);
  assert.deepEqual(await differences(rotated), []);
});

test('two publications at the same time leave what agrees, whichever has read more days', async () => {
  await publishBooks(service, folder);
  const read = Promise.withResolvers<void>();
  const other = Promise.withResolvers<void>();
  // Reads the days, and then writes nothing until the other publication waits for it or has ended.
  const slow: typeof service.db = {
    ...service.db,
    transaction: (run, isolation) =>
      service.db.transaction(
        (tx) =>
          run({
            query: async (statement) => {
              const rows = await tx.query(statement);
              if (!statement.text.includes('from book_closings')) return rows as never;
              read.resolve();
              await other.promise;
              return rows as never;
            },
          }),
        isolation,
      ),
  };
  const first = publishBooks({ db: slow, keys: service.keys }, folder);
  await read.promise;
  await ledger.at('2026-03-06T00:30:00Z');
  await ledger.close();
  const second = publishBooks(service, folder);
  const isWaiting = async () =>
    (await ledger.sql("select from pg_locks where locktype = 'advisory' and not granted")).length > 0;
  await Promise.race([second, until('the second publication waits', isWaiting)]);
  other.resolve();
  assert.ok((await first).size < (await second).size);
  assert.deepEqual(await differences(), []);
  assert.equal((await publishBooks(service, folder)).size, (await second).size);
});

test('a witness waits for another one, and confirms what is published then', async () => {
  await publishBooks(service, folder);
  await witness();
  const cosigned = await witnessed('checkpoint');
  const other = new DatabaseSync(file('../state/lock'));
  other.exec('begin exclusive');
  const waiting = promisify(execFile)(process.execPath, [MAIN, 'witness', folder, file('../state')], {
    env: ENVIRONMENT,
  });
  // However far it has come until then.
  await Promise.race([waiting, sleep(2_000)]);
  assert.equal(await witnessed('checkpoint'), cosigned);
  await ledger.at('2026-03-07T00:30:00Z');
  await ledger.close();
  const { size } = await publishBooks(service, folder);
  other.close();
  assert.match((await waiting).stdout, new RegExp(`^confirmed ${size} days of`));
});

test('a witness that waits for another one can be interrupted', async () => {
  await publishBooks(service, folder);
  await witness();
  const other = new DatabaseSync(file('../state/lock'));
  other.exec('begin exclusive');
  const waiting = promisify(execFile)(process.execPath, [MAIN, 'witness', folder, file('../state')], {
    env: ENVIRONMENT,
  });
  const ended = waiting.catch((error: { code?: number; signal?: string }) => error);
  // However far it has come until then.
  await sleep(2_000);
  waiting.child.kill('SIGINT');
  const { code, signal } = (await ended) as { code?: number; signal?: string };
  other.close();
  assert.ok(code === 130 || signal === 'SIGINT', `${code} ${signal}`);
});
