import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { apiKeys } from '../../src/api-keys/keys.ts';
import { audit } from '../../src/audit/audit.ts';
import { auditHead, listAudit } from '../../src/audit/entries.ts';
import { verifyAudit } from '../../src/audit/verify.ts';
import type { Service } from '../../src/context.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { merchants } from '../../src/merchants/merchants.ts';
import { MINOR_MAX } from '../../src/money.ts';
import type { Caller } from '../../src/operation.ts';
import { blockVoucher } from '../../src/vouchers/operate.ts';
import { verifyAfter } from '../support/audit.ts';
import { asOperator, startTestService, type TestService } from '../support/harness.ts';

let testService: TestService;
let service: Service;
let operator: Caller;
let owner: Awaited<ReturnType<typeof openOwner>>;

before(async () => {
  testService = await startTestService();
  service = testService.service;
  operator = {
    ...asOperator(service),
    actor: {
      kind: 'command-line',
      id: null,
      requestId: null,
      name: 'anna',
      origin: 'her desk',
      reason: 'she was asked to',
    },
  };
  owner = await openOwner(testService.url);
  await owner.query(sql`set search_path to scrip`);
});

after(async () => {
  await owner?.close();
  await testService?.stop();
});

/** Runs a change, and returns the entries that it added. */
async function entriesOf(run: () => Promise<unknown>) {
  const last = (await auditHead(service.db))?.sequence ?? 0n;
  await run();
  return (await listAudit(service.db, null, 100)).filter(({ sequence }) => BigInt(sequence) > last).reverse();
}

describe('the audit', () => {
  test('records the actor, origin and reason of a change, and the state before and after', async () => {
    const { id } = await testService.createMerchant();
    const [entry, ...more] = await entriesOf(() =>
      merchants.permit.run(operator, { id: String(id), permission: 'update-redemption' }),
    );
    assert.equal(more.length, 0);
    assert.deepEqual(
      [entry?.actor, entry?.origin, entry?.reason, entry?.action, entry?.subject],
      ['anna', 'her desk', 'she was asked to', 'merchant.permit', `merchant ${id}`],
    );
    const permissions = ['generate', 'download', 'activate', 'balance', 'redeem'];
    assert.deepEqual(entry?.before, { permissions });
    assert.deepEqual(entry?.after, { permissions: [...permissions, 'update-redemption'] });
  });

  test('writes ids as text, as every other answer does', async () => {
    const { id } = await testService.createMerchant();
    const [entry] = await entriesOf(() => apiKeys.create.run(operator, { merchantId: String(id) }));
    assert.equal(entry?.after?.['merchantId'], String(id));
  });

  test('has no entry for a change that was refused or had no effect', async () => {
    const { id } = await testService.createMerchant();
    const entries = await entriesOf(async () => {
      await assert.rejects(blockVoucher(operator, 10_999_999_999n));
      await assert.rejects(merchants.suspend.run(operator, { id: '999999' }));
      await assert.rejects(apiKeys.revoke.run(operator, { keyId: 'key_unknown' }));
      await assert.rejects(topUp(operator, { merchantId: id, currency: 'USD', amountMinor: MINOR_MAX }));
      // A transaction that rolls back takes its entry with it.
      await assert.rejects(
        service.db.transaction(async (tx) => {
          await audit(tx, operator, { action: 'nothing', subject: 'nobody' });
          throw new Error('taken back');
        }),
      );
    });
    assert.deepEqual(entries, []);
  });

  test('stays one chain under concurrent appends', async () => {
    const other = await startTestService(testService);
    const { id } = await testService.createMerchant();
    const top = { merchantId: id, currency: 'EUR', amountMinor: 1n };
    const append = async (writer: number) => {
      for (let nth = 0; nth < 5; nth++) await topUp(asOperator(writer % 2 ? service : other.service), top);
    };
    // At most one append for each connection: a longer wait would time out on a busy machine.
    await Promise.all(Array.from({ length: 16 }, (_, writer) => append(writer)));
    await other.stop();
    const { ok, entries } = await verifyAudit(service, null);
    assert.ok(ok && entries > 80);
  });
});

describe('verifying the audit', () => {
  const tampered = (text: string) => verifyAfter(service, owner, text);

  before(async () => {
    const { id } = await testService.createMerchant();
    for (let count = 0; count < 10; count++)
      await merchants[count % 2 === 0 ? 'suspend' : 'resume'].run(operator, { id: String(id) });
  });

  const at = async (back: bigint) => ((await auditHead(service.db))?.sequence ?? 0n) - back;

  for (const [column, value] of [
    ['occurred_at', "occurred_at + interval '1 microsecond'"],
    ['actor', "'bert'"],
    ['origin', "'elsewhere'"],
    ['action', "'merchant.resumed'"],
    ['subject', "'merchant 0'"],
    ['reason', 'null'],
    ['reason', "reason || ' '"],
    ['before', "before || ' '"],
    ['before', 'null'],
    ['after', "'{}'"],
    ['hash', String.raw`sha256('\x01')`],
    ['previous_hash', String.raw`sha256('\x02')`],
  ]) {
    test(`finds an entry whose ${column} was edited to ${value}`, async () => {
      const sequence = await at(4n);
      const { ok, broken } = await tampered(
        `update audit set ${column} = ${value} where sequence = ${sequence}`,
      );
      assert.deepEqual([ok, broken?.sequence], [false, sequence]);
    });
  }

  test('finds a deleted entry, even if the later entries were renumbered', async () => {
    const sequence = await at(4n);
    const remove = `delete from audit where sequence = ${sequence}`;
    assert.equal((await tampered(remove)).broken?.sequence, sequence + 1n);
    const moved = `${remove}; update audit set sequence = sequence + 1000000 where sequence > ${sequence};
      update audit set sequence = sequence - 1000001 where sequence > 1000000`;
    assert.equal((await tampered(moved)).broken?.sequence, sequence);
  });

  test('finds entries that were swapped', async () => {
    const sequence = await at(4n);
    const swap = `update audit set sequence = 1000000 where sequence = ${sequence};
      update audit set sequence = ${sequence} where sequence = ${sequence + 1n};
      update audit set sequence = ${sequence + 1n} where sequence = 1000000`;
    assert.equal((await tampered(swap)).broken?.sequence, sequence);
  });

  test('finds an inserted entry at any position', async () => {
    const columns = 'occurred_at, actor, origin, action, subject';
    const values = `now(), 'bert', 'elsewhere', 'merchant.set', 'merchant 1'`;
    const last = await at(0n);
    const insert = (sequence: bigint, previous: string) =>
      `
        insert into audit (sequence, ${columns}, previous_hash, hash)
        values (${sequence}, ${values}, ${previous}, sha256('x'))`;
    const head = `(select hash from audit where sequence = ${last})`;
    assert.equal((await tampered(insert(last + 1n, head))).ok, false);
    const shifted = `
      update audit set sequence = sequence + 1000000 where sequence > 3; ${insert(4n, String.raw`'\x00'`)};
      update audit set sequence = sequence - 999999 where sequence > 1000000`;
    assert.equal((await tampered(shifted)).broken?.sequence, 4n);
    const before = `alter table audit drop constraint audit_sequence_positive; ${insert(-5n, String.raw`'\x00'`)}`;
    assert.equal((await tampered(before)).ok, false);
  });

  test('finds that the first entries were deleted', async () => {
    assert.equal((await tampered('delete from audit where sequence < 3')).broken?.sequence, 3n);
  });
});
