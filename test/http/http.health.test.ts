import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { checkOfStamps } from '../support/books.ts';
import { type ListeningService, testService } from '../support/harness.ts';
import { ownerOf } from '../support/owner.ts';
import { until } from '../support/until.ts';

/** A number that no other advisory lock has. */
const LOCK = 4_711;

const WAIT = 'select pg_advisory_lock_shared(4711), pg_advisory_unlock_shared(4711)';

/**
 * Runs `work` while more statements wait for a lock than a pool has connections.
 * @param connections of the pool
 * @param ask sends a statement, again after each failure
 */
async function whileFull(
  { url }: ListeningService,
  connections: number,
  ask: () => Promise<unknown>,
  work: () => Promise<void>,
): Promise<void> {
  const owner = await openOwner(url);
  await owner.query(sql`select pg_advisory_lock(${LOCK})`);
  let isRunning = true;
  const waiting = Array.from({ length: 3 * connections }, async () => {
    while (isRunning) await ask().catch(() => {});
  });
  const countWaiting = sql`
    select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted`;
  try {
    while (((await owner.query<{ n: number }>(countWaiting))[0]?.n ?? 0) < connections) await sleep(20);
    await work();
  } finally {
    isRunning = false;
    await owner.close();
    await Promise.all(waiting);
  }
}

async function readiness({ baseUrl }: ListeningService) {
  const response = await fetch(`${baseUrl}/readyz`);
  const { statusCode } = (await response.json()) as { statusCode: string };
  return [response.status, statusCode, response.headers.get('retry-after')];
}

test('a process is not ready while no connection for calls of merchants is free', async (t) => {
  const listening = await testService(t, undefined, { isPatient: false });
  const { db } = listening.service;
  assert.deepEqual(await readiness(listening), [200, '00', null]);
  const ask = () => db.hot({ name: 'wait', text: WAIT }, []);
  await whileFull(listening, 6, ask, async () => {
    assert.deepEqual(await readiness(listening), [503, '91', '1']);
  });
  assert.deepEqual(await readiness(listening), [200, '00', null]);
});

test('slow statements on the other pool do not make a process unready', async (t) => {
  const listening = await testService(t, undefined, { isPatient: false });
  const { db } = listening.service;
  const ask = () => db.query({ text: WAIT, values: [] });
  await whileFull(listening, 10, ask, async () => {
    assert.deepEqual(await readiness(listening), [200, '00', null]);
  });
});

test('a process is not ready while its clock is so wrong that no booking is accepted', async (t) => {
  const listening = await testService(t);
  const owner = await ownerOf(t, listening.url);
  await owner.query({ text: await checkOfStamps(), values: [] });
  for (const ms of [90_000, -180_000]) {
    assert.deepEqual(await readiness(listening), [200, '00', null]);
    listening.clock.advance(ms);
    assert.deepEqual(await readiness(listening), [503, '91', '1']);
    listening.clock.advance(-ms);
  }
});

test('a process is not ready while the database takes no writes', async (t) => {
  const listening = await testService(t);
  const owner = await ownerOf(t, listening.url);
  const setReadOnly = (value: 'on' | 'off') =>
    owner.query({
      text: `
        do $$ begin
          set transaction read write;
          execute format('alter database %I set default_transaction_read_only = ${value}', current_database());
          perform pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid();
        end $$`,
      values: [],
    });
  await setReadOnly('on');
  await until('the new connections are read-only', async () => (await readiness(listening))[0] === 503);
  await setReadOnly('off');
  await until('the new connections write', async () => (await readiness(listening))[0] === 200);
});
