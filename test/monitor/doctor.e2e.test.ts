import assert from 'node:assert/strict';
import { chmod, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Sql } from '../../src/db/sql.ts';
import { examine, type Finding } from '../../src/monitor/doctor.ts';
import { DEPLOYMENT } from '../support/doctor.ts';
import { startTestService } from '../support/harness.ts';
import { Installation } from '../support/installation.ts';
import { asOwner } from '../support/owner.ts';
import { typed } from '../support/scrip.ts';
import { until } from '../support/until.ts';

const stateOf = (findings: readonly Finding[], check: string) =>
  findings.find((each) => each.check === check)?.state;

test('the doctor reports a healthy installation as ok, and gives advice otherwise', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  await installation.serve();
  const before = await installation.json('doctor');
  assert.equal(before.ok, true);
  assert.equal(stateOf(before.findings, 'backup'), 'warning');
  await installation.json`backup create ${installation.at('backups')}`;
  const { ok, findings } = await installation.json('doctor');
  assert.equal(ok, true);
  for (const check of [
    'node',
    'network',
    'versions',
    'clocks',
    'durability',
    'checksums',
    'backup',
    'archive',
    'webhooks',
    'last close',
  ])
    assert.equal(stateOf(findings, check), 'ok', check);
  for (const { state, advice } of findings as Finding[]) assert.equal(advice === null, state === 'ok');

  // A copy that archives to the same place.
  const history = `00000002.history.key.${'A'.repeat(43)}`;
  await writeFile(installation.at('archive', history), '1\t0/3000000\tno recovery target specified\n');
  const beside = await installation.run(typed`doctor --json`);
  assert.equal(beside.status, 1);
  const archive = JSON.parse(beside.out).findings.find(({ check }: Finding) => check === 'archive');
  assert.match(archive.found, /^a restored copy of this database archives to the same place \(timeline 2\)/);
  await rm(installation.at('archive', history));

  for (const inside of [installation.at('data', 'archive'), installation.at('data')]) {
    const { out } = await installation.run(['doctor'], { SCRIP_ARCHIVE_DIR: inside });
    assert.match(out, /archive .*WARNING .*in the data folder, and lost/);
  }

  // A failure sets the exit status.
  await chmod(installation.at('data', 'keys'), 0o644);
  const old = { endedAt: '2020-01-01T00:00:00Z', path: '/backups/old', bytes: 1 };
  await writeFile(installation.at('data', 'last-backup.json'), JSON.stringify(old));
  const { status, out } = await installation.run(['doctor']);
  assert.equal(status, 1);
  assert.match(out, /key ring .*FAILURE .*can be read by other accounts/);
  assert.match(out, /→ chmod 600, then scrip keyring rotate/);
  assert.match(out, /backup .*FAILURE .*\/backups\/old/);
  assert.match(out, /2 failures/);
});

test('the doctor reports segments that wait although a process sends them, and not those of a stop', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  await installation.serve();
  await installation.stop();
  const spool = installation.at('data', 'postgres.archive');
  const archive = async () => {
    for (const name of await readdir(spool)) await utimes(join(spool, name), 0, 0);
    const { out } = await installation.run(typed`doctor --json`);
    const { findings } = JSON.parse(out) as { findings: Finding[] };
    return findings.find(({ check }) => check === 'archive');
  };
  // The stop has ended a segment, which waits for the next start.
  assert.notDeepEqual(await readdir(spool), []);
  assert.equal((await archive())?.state, 'ok');

  await installation.serve();
  await until('the segment is sent', async () => (await readdir(spool)).length === 0);
  await rename(installation.at('archive'), installation.at('elsewhere'));
  await writeFile(installation.at('archive'), 'a file, not a folder');
  // A backup ends a segment.
  await installation.json`backup create ${installation.at('backups')}`;
  assert.notDeepEqual(await readdir(spool), []);
  assert.equal((await archive())?.foundCode, 'log-waits');
});

test('the doctor reports a server with synchronous_commit off as a failure', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  const name = new URL(started.url).pathname.slice(1);
  await asOwner(started.url, `alter database ${name} set synchronous_commit = off`);
  const again = await startTestService(started);
  t.after(again.stop);
  const findings = await examine(DEPLOYMENT, again.service.db);
  assert.equal(stateOf(findings, 'durability'), 'failure');
  assert.match(
    findings.find(({ check }) => check === 'durability')?.advice ?? '',
    /set synchronous_commit to on/,
  );
  // Checks of the embedded database are left out.
  assert.equal(stateOf(findings, 'disk'), undefined);
});

test('the doctor finds wrong clocks, overdue work and a nearly full server', async (t) => {
  const started = await startTestService();
  t.after(started.stop);
  const { db } = started.service;
  const change: Readonly<Record<string, unknown>> = {
    clock: Date.now() / 1_000 - 3_600,
    connections: 99,
    most: 100,
    version: 140_005,
    oldestSeconds: 7_200,
    processing: 3,
    seconds: 500 * 3_600,
    months: 1,
    disabled: 1,
    dataBytes: 1024 ** 4,
    logBytes: 1024 ** 3,
    checkpointSeconds: 300,
    lacksCompression: true,
  };
  // The rows as the database answers them, with some values changed.
  const query = async <Row>(statement: Sql): Promise<Row[]> => {
    const rows = await db.query<Record<string, unknown>>(statement);
    return rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([key, value]) => [key, change[key] ?? value])),
    ) as Row[];
  };
  const findings = await examine(DEPLOYMENT, { query });
  for (const check of ['versions', 'clocks', 'last close', 'batches', 'webhooks'])
    assert.equal(stateOf(findings, check), 'failure', check);
  for (const check of ['connections', 'partitions', 'settings'])
    assert.equal(stateOf(findings, check), 'warning', check);
  assert.equal(
    findings.find(({ check }) => check === 'settings')?.advice,
    'set shared_buffers = RAM / 4, checkpoint_timeout = 30min, max_wal_size = 8GB, ' +
      'wal_compression = lz4 (docs/explanation/scale.md)',
  );
});

test('the doctor checks what needs no database while the database is away', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_DATABASE_URL'] = 'postgres://scrip@127.0.0.1:1/scrip';
  const { status, out } = await installation.run(typed`doctor --json`);
  assert.equal(status, 1);
  const { ok, findings } = JSON.parse(out);
  assert.equal(ok, false);
  assert.deepEqual(
    findings.map(({ check, state }: Finding) => [check, state]),
    [
      ['node', 'ok'],
      ['key ring', 'ok'],
      ['network', 'ok'],
      ['database', 'failure'],
    ],
  );
  assert.match(findings.at(-1).found, /cannot be reached/);
});

test('the doctor warns of a proxy that is not trusted, and of an address that nobody knows', async () => {
  const found = async (network: Partial<(typeof DEPLOYMENT)['network']>) => {
    const findings = await examine({ ...DEPLOYMENT, network: { ...DEPLOYMENT.network, ...network } });
    return findings.find(({ check }) => check === 'network')?.advice ?? null;
  };
  const publicUrl = 'https://vouchers.example';
  assert.equal(await found({}), null);
  assert.match(String(await found({ publicUrl })), /set SCRIP_TRUSTED_PROXIES/);
  assert.equal(await found({ publicUrl, trustedProxies: ['127.0.0.1/32'] }), null);
  assert.match(String(await found({ host: '0.0.0.0' })), /set SCRIP_PUBLIC_URL/);
});
