import { parentPort, workerData } from 'node:worker_threads';
import { openWay } from '../test/support/way.ts';
import type { Order } from './way.ts';

const way = await openWay(workerData as string);
parentPort?.postMessage(way.url);
parentPort?.on('message', ({ to, state }: Order) => {
  if (to !== undefined) way.redirect(to);
  way.set(state);
  parentPort?.postMessage('done');
});
