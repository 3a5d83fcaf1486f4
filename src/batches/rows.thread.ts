import { parentPort, workerData } from 'node:worker_threads';
import { KeyRing } from '../keyring/ring.ts';
import { lowerThread } from '../priority.ts';
import { makeRows, type RowsWanted } from './rows.ts';
import type { ThreadAnswer } from './rows.worker.ts';

lowerThread();

const keys = new KeyRing(...(workerData as ReturnType<KeyRing['share']>));

parentPort?.on('message', (wanted: RowsWanted) => {
  parentPort?.postMessage(attempt(wanted));
});

function attempt(wanted: RowsWanted): ThreadAnswer {
  try {
    return { made: makeRows(keys, wanted) };
  } catch (error) {
    return { error };
  }
}
