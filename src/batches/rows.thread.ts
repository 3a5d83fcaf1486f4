import { parentPort, workerData } from 'node:worker_threads';
import { KeyRing } from '../keyring/ring.ts';
import { lowerPriority } from '../priority.ts';
import { makeRows, type RowsWanted } from './rows.ts';
import type { ThreadAnswer } from './rows.worker.ts';

/** Lower than that of the calls of tills, in case both want the same core. */
const PRIORITY = 5;

// On Linux a thread has its own priority. Elsewhere this would set the priority of the whole process.
if (process.platform === 'linux') lowerPriority(PRIORITY);

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
