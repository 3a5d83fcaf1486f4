import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isUnavailable } from '../../src/db/errors.ts';
import { hostAddresses, hostsOf, isAddress } from '../../src/db/health.ts';
import { openDatabase } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { startTestService } from '../support/harness.ts';
import { asOwner } from '../support/owner.ts';
import { openWay, startBehindWay } from '../support/way.ts';

/** Longer than the owner waits for a server if the address has another one. */
const LATE_MS = 6_000;

test('an address with several servers is split into one for each server', () => {
  const url =
    'postgres://user:p%40ss@one:5432,[::1]:5433,three/db?target_session_attrs=read-write&sslmode=disable';
  assert.deepEqual(hostAddresses(url), [
    'postgres://user:p%40ss@one:5432/db?sslmode=disable',
    'postgres://user:p%40ss@[::1]:5433/db?sslmode=disable',
    'postgres://user:p%40ss@three/db?sslmode=disable',
  ]);
  assert.equal(hostsOf(url), 'one:5432, [::1]:5433, three');
  assert.deepEqual(hostAddresses('postgres://one/db'), ['postgres://one/db']);
});

test('isAddress accepts PostgreSQL addresses with one or several hosts, and refuses others', () => {
  for (const url of [
    'postgres://a,b/db',
    'postgresql://u:p@a:1,b:2/db?target_session_attrs=primary',
    'postgres:///db',
  ])
    assert.equal(isAddress(url), true, url);
  for (const url of [
    'mysql://a/db',
    'postgres://a:x,b/db',
    'postgres://a,b/db?target_session_attrs=standby',
    'a,b',
  ])
    assert.equal(isAddress(url), false, url);
});

test('the owner waits for a server that accepts connections late, as on a busy machine', async (t) => {
  const { way } = await startBehindWay(t);
  way.set('waiting');
  const rows = asOwner(way.url, sql`select 1`);
  await Promise.race([rows, sleep(LATE_MS)]);
  way.set('open');
  assert.equal((await rows).length, 1);
});

test('the next server of the address is tried when one is down, in turn', async (t) => {
  const testService = await startTestService();
  t.after(testService.stop);
  const [one, two] = [await openWay(testService.url), await openWay(testService.url)];
  t.after(one.close);
  t.after(two.close);
  const { host } = new URL(two.url);
  const url = one.url.replace(new URL(one.url).host, (first) => `${first},${host}`);
  one.set('closed');
  await asOwner(url, sql`select 1`);
  const db = openDatabase(url, 'scrip-test');
  t.after(() => db.close());
  // The pool knows what the owner's connection has found out.
  assert.equal((await db.query(sql`select 1`)).length, 1);
  one.set('open');
  two.set('closed');
  // The first statement may meet the broken connection, and the second may fail to open one. After that the
  // service knows that this server is down.
  const tries = [];
  for (let turn = 1; turn <= 3; turn++)
    tries.push(await db.query(sql`select 1`).catch((error: unknown) => error));
  for (const error of tries.slice(0, 2)) assert.ok(Array.isArray(error) || isUnavailable(error));
  assert.ok(Array.isArray(tries[2]), 'the other server was not tried');
});
