import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { isAway, isUnavailable } from '../../src/db/errors.ts';
import { sql } from '../../src/db/sql.ts';
import { findTransaction } from '../../src/ledger/transactions.ts';
import { startTestService } from '../support/harness.ts';
import { until } from '../support/until.ts';

/** The sizes of the pool for calls of merchants, and of the other pool. */
const HOT_CONNECTIONS = 6;
const CONNECTIONS = 10;

const isFull = (error: unknown) =>
  (error as { code?: unknown }).code === 'EPOOLEXHAUSTED' && isUnavailable(error) && !isAway(error);

/** Runs what takes a connection, again where none can be made in time: a busy machine makes them slowly. */
async function untilConnected<T>(run: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
  }
}

test('a statement that gets no connection in time reports a full pool, not an absent database', async (t) => {
  const { service, stop } = await startTestService(undefined, { isPatient: false });
  t.after(stop);
  const { db } = service;
  const gate = Promise.withResolvers<void>();
  // One connection is idle when all of them are requested at once.
  await db.query(sql`select 1`);
  let held = 0;
  const hold = () =>
    db.transaction(() => {
      held++;
      return gate.promise;
    });
  const holders = Array.from({ length: CONNECTIONS }, () => untilConnected(hold));
  await until('every connection is in use', () => held === CONNECTIONS);
  const waiting = await db.query(sql`select 1`).catch((error: unknown) => error);
  gate.resolve();
  await Promise.all(holders);
  assert.ok(isFull(waiting), String(waiting));
  assert.equal((await db.query(sql`select 1`)).length, 1);
});

test('a full pool fails the calls that waited for it, and not those queued behind them', async (t) => {
  const testService = await startTestService(undefined, { isPatient: false });
  t.after(testService.stop);
  const { service } = testService;
  const { authorization } = await testService.createMerchant();
  const { context } = await authenticate(service, authorization);
  const released = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holder = service.db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(1)`);
    locked.resolve();
    await released.promise;
  });
  await locked.promise;
  const hold = () => service.db.hot({ name: 'hold', text: 'select pg_advisory_xact_lock(1)' }, []);
  const holding = Array.from({ length: HOT_CONNECTIONS }, () => untilConnected(hold));
  const waiting = sql`
    select count(*)::int as n from pg_locks l join pg_database d on d.oid = l.database
    where d.datname = current_database() and l.locktype = 'advisory' and not l.granted`;
  await until('every connection is in use', async () => {
    const [row] = await service.db.query<{ n: number }>(waiting);
    return row?.n === HOT_CONNECTIONS;
  });
  const calls = Array.from({ length: 300 }, (_, nth) => findTransaction(context, `reference ${nth}`));
  // Two calls of 128 wait for a connection; the third is called when one of them has failed.
  await Promise.allSettled(calls.slice(0, 256));
  released.resolve();
  const outcomes = await Promise.allSettled(calls);
  await Promise.all([holder, ...holding]);
  const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
  assert.equal(failed.length, 256);
  for (const { reason } of failed) assert.ok(isFull(reason), String(reason));
});
