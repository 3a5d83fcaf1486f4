import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patient } from '../src/db/patient.ts';
import type { Database } from '../src/db/pool.ts';

const failing = (error: Error, times: number) => {
  let asked = 0;
  const query = async () => {
    if (++asked <= times) throw error;
    return [asked];
  };
  return { db: { query } as unknown as Database, asked: () => asked };
};

const statement = { text: 'select 1', values: [] };

test('patient work waits for a connection, and repeats nothing that was sent', async () => {
  const exhausted = Object.assign(new Error('all connections are in use'), { code: 'EPOOLEXHAUSTED' });
  const { db } = failing(exhausted, 1);
  assert.deepEqual(await patient(db).query(statement), [2]);
  const lost = failing(Object.assign(new Error('it broke'), { code: 'ECONNRESET' }), 1);
  await assert.rejects(patient(lost.db).query(statement), /it broke/);
  assert.equal(lost.asked(), 1);
});
