import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../../src/db/sql.ts';
import { enqueue, type Run, startJobs } from '../../src/jobs/queue.ts';
import { startBehindWay } from '../support/way.ts';

test('jobs survive an outage of the database, and a job that hangs delays no other', async (t) => {
  const { testService, way, db } = await startBehindWay(t);
  const { db: direct } = testService.service;
  const ran: string[] = [];
  const [hanging, lost, worked, over] = Array.from({ length: 4 }, () => Promise.withResolvers<void>()) as [
    PromiseWithResolvers<void>,
    PromiseWithResolvers<void>,
    PromiseWithResolvers<void>,
    PromiseWithResolvers<void>,
  ];
  const run: Run = async (_service, { subject }) => {
    ran.push(subject ?? '');
    if (subject === '1') {
      hanging.resolve();
      await over.promise;
    }
    if (subject === '2' && ran.filter((each) => each === '2').length === 1) {
      way.set('closed');
      lost.resolve();
      // The outcome of the job cannot be stored now.
      throw new Error('lost the database');
    }
    if (subject === '3') worked.resolve();
    return undefined;
  };
  const worker = startJobs({ ...testService.service, db }, [{ atOnce: 4, tasks: { task: run } }]);
  await enqueue(direct, 'task', 1);
  await hanging.promise;
  await enqueue(direct, 'task', 2);
  await lost.promise;
  await enqueue(direct, 'task', 3);
  await sleep(1_000);
  assert.deepEqual(ran, ['1', '2']);
  way.set('open');
  await worked.promise;
  // The lease of the lost job is over.
  await direct.query(sql`update jobs set leased_until = now() where subject = '2'`);
  while (ran.filter((each) => each === '2').length < 2) await sleep(20);
  over.resolve();
  await worker.stop();
  const left = await direct.query<{ subject: string }>(sql`select subject from jobs where task = 'task'`);
  assert.deepEqual(left, []);
});
