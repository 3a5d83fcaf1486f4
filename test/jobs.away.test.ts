import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { enqueue } from '../src/jobs/enqueue.ts';
import { startWorker } from '../src/jobs/worker.ts';
import { startBehindWay } from './way.ts';

test('the queue outlives a database that goes away in the middle of a job, and works on when it is back', async (t) => {
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
    // What becomes of the job cannot be written down by now.
    throw new Error('lost the database');
  };
  const tasks = { 'fill-batch': run, 'void-batch': run } as never;
  const worker = await startWorker({ ...testService.service, db }, tasks, async () => {});
  t.after(() => worker.stop());
  await enqueue(testService.service.db, 'fill-batch', 1);
  await working.promise;
  // Meanwhile the queue tries to write it down, and cannot.
  await sleep(4_000);
  way.set('open');
  await enqueue(testService.service.db, 'fill-batch', 2);
  await worked.promise;
  assert.ok(ran.includes(1) && ran.includes(2));
});

test('a queue that gives up and waits for ever for one of its jobs is followed by another one', async (t) => {
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
