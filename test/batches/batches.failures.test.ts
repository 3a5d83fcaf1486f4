import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { verifyAudit } from '../../src/audit/verify.ts';
import { findBatchOf } from '../../src/batches/batch.ts';
import { voidBatch } from '../../src/batches/cancel.ts';
import { fillBatch } from '../../src/batches/fill.ts';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { newRingKey, readKeyRing } from '../../src/keyring/file.ts';
import { KeyRing } from '../../src/keyring/ring.ts';
import { MINUTE_MS } from '../../src/time.ts';
import { A } from '../support/dialects.ts';
import { Till } from '../support/till.ts';

const FLOAT_MINOR = 1_000_00n;
const PRICE_MINOR = 600n;
/** Small enough to be produced in one transaction, and large enough for the thread. */
const QUANTITIES = [20, 300];
/** Errors that say nothing against the batch, and what the database does meanwhile. */
const TEMPORARY = [
  ['57P01', 'is shut down'],
  ['53300', 'has no connection left'],
  ['57014', 'is too slow'],
  ['40001', 'has other work in the way'],
  ['08006', 'goes away'],
] as const;

/**
 * Makes the database refuse vouchers with an error of our choice, as the server does if the disk is full.
 */
async function refuseVouchers(till: Till, state: string | undefined): Promise<void> {
  const owner = await openOwner(till.testService.url);
  const refusing = `create or replace function scrip.refuse() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file "base/1": %', new.code_key using errcode = '${state}', hint = 'Check free disk space.';
    end $$;
    create or replace trigger refuse before insert on scrip.vouchers for each row
      execute function scrip.refuse()`;
  const text = state === undefined ? 'drop trigger refuse on scrip.vouchers' : refusing;
  await owner.query({ text, values: [] }).finally(() => owner.close());
}

/** A merchant with a batch in process. */
async function ordered(t: Parameters<typeof Till.open>[0], quantity: number) {
  const till = await Till.open(t, { float: FLOAT_MINOR });
  const value = Number(PRICE_MINOR) / quantity / 100;
  const { data } = await till.done(A.generate('batch', quantity, value));
  const { service, clock } = till.testService;
  return {
    till,
    clock,
    service,
    fill: (keys = service.keys) => fillBatch({ ...service, keys }, 1, () => false),
    /** The entries of the audit for the batch, after the audit is verified. */
    async audited() {
      assert.equal((await verifyAudit(service, null)).broken, null);
      const rows = await service.db.query<{ action: string; reason: string }>(
        sql`select action, reason from audit where subject = ${`batch ${data.transactionId}`}`,
      );
      return rows.map(({ action, reason }) => `${action}: ${reason}`);
    },
    status: async () => (await till.done(A.download('batch'))).data.status,
    /** Proves that the batch is canceled and its cost returned. @returns the cause that is shown */
    async failure() {
      const batch = await findBatchOf(service.db, data.transactionId);
      assert.equal(batch?.status, 'CANCELED');
      await voidBatch(service, 1);
      // The whole float can be spent again, and not a cent more.
      await till.refused(A, '50', A.generate('too much', 2, Number(FLOAT_MINOR + 2n) / 200));
      await till.done(A.generate('all', 20, Number(FLOAT_MINOR) / 2_000));
      await till.reconciles();
      return batch?.failure;
    },
  };
}

for (const quantity of QUANTITIES) {
  describe(`a batch of ${quantity} whose production fails`, () => {
    test('is canceled if the disk stays full, after time to free it', async (t) => {
      const { till, clock, fill, status, failure, audited } = await ordered(t, quantity);
      await refuseVouchers(till, '53100');
      for (let tries = 0; tries < 10; tries++) {
        await assert.rejects(fill());
        assert.equal(await status(), 'PROCESSING');
        clock.advance(MINUTE_MS * 0.99);
      }
      clock.advance(MINUTE_MS);
      await fill();
      assert.equal(await failure(), 'the disk of the database is full (53100)');
      assert.deepEqual(await audited(), ['batch.cancel: the disk of the database is full (53100)']);
    });

    test('is completed once the disk has room again, and resets the time limit', async (t) => {
      const { till, clock, fill, status } = await ordered(t, quantity);
      await refuseVouchers(till, '53100');
      await assert.rejects(fill());
      await refuseVouchers(till, undefined);
      clock.advance(60 * MINUTE_MS);
      await fill();
      assert.equal(await status(), 'COMPLETED');
      const rows = await till.testService.service.db.query(sql`select failures, failing_since from batches`);
      assert.deepEqual(rows, [{ failures: 0, failing_since: null }]);
      await till.reconciles();
    });

    test('is canceled at the fifth error of the database, with a cause that quotes no row', async (t) => {
      const { till, fill, status, failure } = await ordered(t, quantity);
      await refuseVouchers(till, '22012');
      for (let tries = 0; tries < 4; tries++) {
        await assert.rejects(fill());
        assert.equal(await status(), 'PROCESSING');
      }
      await fill();
      assert.equal(await failure(), 'the database refused it (22012)');
    });

    test('waits for as long as the database cannot work', async (t) => {
      const { till, clock, fill, status } = await ordered(t, quantity);
      for (const [state, what] of TEMPORARY) {
        await refuseVouchers(till, state);
        for (let tries = 0; tries < 6; tries++) {
          await assert.rejects(fill(), what);
          clock.advance(60 * MINUTE_MS);
        }
        assert.equal(await status(), 'PROCESSING', what);
      }
      await refuseVouchers(till, undefined);
      await fill();
      assert.equal(await status(), 'COMPLETED');
      await till.reconciles();
    });

    test('is canceled if its key cannot seal', async (t) => {
      const { service, fill, failure, audited } = await ordered(t, quantity);
      const [ring, routing] = service.keys.share();
      const broken = new KeyRing(
        ring.map((key) => ({ ...key, seal: createSecretKey(randomBytes(5)) })),
        routing,
      );
      for (let tries = 0; tries < 4; tries++) await assert.rejects(fill(broken));
      await fill(broken);
      assert.equal(await failure(), 'vouchers could not be made: Invalid key length');
      // This process cannot seal the end of the audit either.
      assert.deepEqual(await audited(), []);
    });

    test('waits for a process whose key ring is that of the database', async (t) => {
      const { till, service, clock, fill, status } = await ordered(t, quantity);
      const other = readKeyRing(newRingKey(), 'the test');
      for (let tries = 0; tries < 6; tries++) {
        await assert.rejects(fill(other), { code: 'EKEYMISSING' });
        clock.advance(60 * MINUTE_MS);
      }
      assert.deepEqual(await service.db.query(sql`select from vouchers`), []);
      await fill();
      assert.equal(await status(), 'COMPLETED');
      await till.reconciles();
    });
  });
}
