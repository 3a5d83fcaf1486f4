import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { KeyRing } from '../keyring/ring.ts';
import { makeRows, type RowsWanted } from './rows.ts';
import type { ThreadAnswer } from './rows.worker.ts';

/** Lower than the calls at the till, if both want the same core. */
const PRIORITY = 5;

// On Linux a priority is a thread's own. Elsewhere it would be the whole process's.
if (process.platform === 'linux') setPriority(PRIORITY);

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
