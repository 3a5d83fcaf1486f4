import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { enqueue } from '../src/jobs/enqueue.ts';
import { startWorker } from '../src/jobs/worker.ts';
import { startBehindWay } from './way.ts';

test('the job queue survives an outage of the database during a job, and runs jobs after it', async (t) => {
  const { testService, way, db } = await startBehindWay(t);
  const ran: number[] = [];
  const working = Promise.withResolvers<void>();
  const worked = Promise.withResolvers<void>();
  const run = async (_service: unknown, batchId: number) => {
    ran.push(batchId);
    if (batchId === 2) worked.resolve();
    if (batchId !== 1) return;
    way.set('closed');
    working.resolve();
    // The outcome of the job cannot be stored now.
    throw new Error('lost the database');
  };
  const tasks = { 'fill-batch': run, 'void-batch': run } as never;
  const worker = await startWorker({ ...testService.service, db }, tasks, async () => {});
  t.after(() => worker.stop());
  await enqueue(testService.service.db, 'fill-batch', 1);
  await working.promise;
  // Meanwhile the queue tries to store it, and fails.
  await sleep(4_000);
  way.set('open');
  await enqueue(testService.service.db, 'fill-batch', 2);
  await worked.promise;
  assert.ok(ran.includes(1) && ran.includes(2));
});

test('a new queue is started when the old one waits for a job that never ends', async (t) => {
  const { testService, way, db } = await startBehindWay(t);
  const [hanging, lost, worked, over] = Array.from({ length: 4 }, () => Promise.withResolvers<void>()) as [
    PromiseWithResolvers<void>,
    PromiseWithResolvers<void>,
    PromiseWithResolvers<void>,
    PromiseWithResolvers<void>,
  ];
  const run = async (_service: unknown, batchId: number) => {
    if (batchId === 3) return worked.resolve();
    if (batchId === 1) {
      hanging.resolve();
      return over.promise;
    }
    way.set('closed');
    lost.resolve();
    throw new Error('lost the database');
  };
  const tasks = { 'fill-batch': run, 'void-batch': run } as never;
  const worker = await startWorker({ ...testService.service, db }, tasks, async () => {});
  t.after(() => worker.stop());
  t.after(() => over.resolve());
  await enqueue(testService.service.db, 'fill-batch', 1);
  await hanging.promise;
  await enqueue(testService.service.db, 'fill-batch', 2);
  await lost.promise;
  await sleep(4_000);
  way.set('open');
  await enqueue(testService.service.db, 'fill-batch', 3);
  await worked.promise;
});
