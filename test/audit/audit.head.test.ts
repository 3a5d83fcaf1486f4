import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type End, hashOf, readSealed, sealEnd } from '../../src/audit/chain.ts';
import { auditHead, listAudit } from '../../src/audit/entries.ts';
import { verifyAudit } from '../../src/audit/verify.ts';
import type { Service } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import type { Caller } from '../../src/operation.ts';
import { verifyAfter } from '../support/audit.ts';
import { asOperator, startTestService, type TestService } from '../support/harness.ts';

let testService: TestService;
let service: Service;
let operator: Caller;
let owner: Awaited<ReturnType<typeof openOwner>>;

before(async () => {
  testService = await startTestService();
  service = testService.service;
  operator = asOperator(service);
  owner = await openOwner(testService.url);
  await owner.query(sql`set search_path to scrip`);
  const { id } = await testService.createMerchant();
  for (let count = 0; count < 10; count++)
    await merchants[count % 2 === 0 ? 'suspend' : 'resume'].run(operator, { id: String(id) });
});

after(async () => {
  await owner?.close();
  await testService?.stop();
});

describe('the sealed end of the audit', () => {
  const sealedEnd = /does not end with the entry that was sealed/;

  test('reveals that the last entries, or all entries, were deleted', async () => {
    const last = (await auditHead(service.db))?.sequence ?? 0n;
    const cut = (entries: bigint) => `delete from audit where sequence > ${last - entries}`;
    for (const text of [cut(3n), cut(1n), 'truncate audit']) {
      const { ok, broken } = await verifyAfter(service, owner, text);
      assert.equal(ok, false);
      assert.match(broken?.problem ?? '', sealedEnd);
    }
    const published = (await auditHead(service.db))?.hash as string;
    // A published head is valid as long as it is one of the entries.
    await merchants.resume.run(operator, { id: '1' });
    assert.equal((await verifyAudit(service, published)).ok, true);
  });

  /** A statement that rewrites the last entry with correct hashes. */
  async function rewriteLast() {
    const [last, previous] = await listAudit(service.db, null, 2);
    assert.ok(last && previous);
    const { sequence, origin, action, subject, reason } = last;
    const previousHash = Buffer.from(previous.hash, 'hex');
    const occurredAt = '2030-01-01T00:00:00.000000Z';
    const by = { actorKind: 'command-line', actorId: null, actor: 'bert', requestId: null };
    const link = { sequence: BigInt(sequence), occurredAt, ...by, origin, action, subject, reason };
    const hash = hashOf({ ...link, before: null, after: null, states: null, previousHash }).toString('hex');
    return `update audit set actor = 'bert', occurred_at = '${occurredAt}', before = null, after = null,
      states = null, hash = '\\x${hash}' where sequence = ${sequence}`;
  }

  test('reveals that the last entry was rewritten with correct hashes', async () => {
    const { ok, broken } = await verifyAfter(service, owner, await rewriteLast());
    assert.equal(ok, false);
    assert.match(broken?.problem ?? '', sealedEnd);
  });

  test('fails the verification if it was changed, replaced by an older one, or deleted', async () => {
    const was = `'\\x${((await readSealed(service.db)) as Buffer).toString('hex')}'`;
    await merchants.resume.run(operator, { id: '1' });
    const now = `'\\x${((await readSealed(service.db)) as Buffer).toString('hex')}'`;
    for (const change of [`sealed = ${was}`, "sealed = sealed || '\\x00'", "sealed = ''"]) {
      await owner.query({ text: `update audit_head set ${change}`, values: [] });
      assert.match((await verifyAudit(service, null)).broken?.problem ?? '', sealedEnd);
    }
    await owner.query({ text: 'delete from audit_head', values: [] });
    assert.match((await verifyAudit(service, null)).broken?.problem ?? '', sealedEnd);
    await owner.query({ text: `insert into audit_head (sealed) values (${now})`, values: [] });
    assert.equal((await verifyAudit(service, null)).ok, true);
  });

  test('can be forged with the key ring, which a published head reveals', async () => {
    const published = (await auditHead(service.db))?.hash as string;
    const kept = (await readSealed(service.db)) as Buffer;
    const rewrite = await rewriteLast();
    await owner.query({ text: 'create temp table before as table audit', values: [] });
    await owner.query({ text: rewrite, values: [] });
    const [end] = await owner.query<End>(
      sql`select sequence, hash from audit order by sequence desc limit 1`,
    );
    await sealEnd(service.db, service.keys, end as End);
    assert.equal((await verifyAudit(service, null)).ok, true);
    const { ok, broken } = await verifyAudit(service, published);
    assert.equal(ok, false);
    assert.match(broken?.problem ?? '', /published head is not in the chain/);
    await owner.query({
      text: 'truncate audit; insert into audit table before; drop table before',
      values: [],
    });
    await owner.query(sql`update audit_head set sealed = ${kept}`);
    assert.equal((await verifyAudit(service, published)).ok, true);
  });

  test('can be verified while entries are appended', async () => {
    const { id } = await testService.createMerchant();
    let running = true;
    const append = async () => {
      while (running) await topUp(operator, { merchantId: id, currency: 'USD', amountMinor: 1n });
    };
    const appending = Promise.all([append(), append()]);
    for (let turn = 0; turn < 20; turn++) assert.equal((await verifyAudit(service, null)).broken, null);
    running = false;
    await appending;
  });

  test('is checked before every append: a cut chain is recorded in an entry of its own', async (t) => {
    const other = await startTestService();
    t.after(() => other.stop());
    const cutter = await openOwner(other.url);
    const by = { ...operator, service: other.service };
    assert.deepEqual(await verifyAudit(other.service, null), {
      ok: true,
      entries: 0,
      head: null,
      broken: null,
    });
    const { id } = await other.createMerchant();
    await merchants.suspend.run(by, { id: String(id) });
    const last = (await auditHead(other.service.db))?.sequence as bigint;
    await cutter.query(sql`delete from scrip.audit where sequence = ${last}`);
    await cutter.close();
    await merchants.resume.run(by, { id: String(id) });
    const [mine, found] = await listAudit(other.service.db, null, 2);
    assert.deepEqual(
      [mine?.action, found?.action, found?.actor],
      ['merchant.resume', 'audit.broken', 'scrip'],
    );
    await merchants.suspend.run(by, { id: String(id) });
    const { ok, broken } = await verifyAudit(other.service, null);
    assert.deepEqual([ok, String(broken?.sequence)], [false, found?.sequence]);
    assert.match(broken?.problem ?? '', /before it did not end with the entry that was sealed/);
  });
});
