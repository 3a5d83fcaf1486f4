import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { KeyRing } from '../keyring/ring.ts';
import { makeRows, type RowsWanted } from './rows.ts';
import type { ThreadAnswer } from './rows.worker.ts';

/** Lower than the calls at the till, if both want the same core. */

/** On Linux each thread has its own priority. Elsewhere it would be that of the process. */
const PRIORITY = 5;

// On Linux a priority is a thread's own. Elsewhere it would be the whole process's.
if (process.platform === 'linux') setPriority(PRIORITY);

const keys = new KeyRing(...(workerData as ReturnType<KeyRing['share']>));

parentPort?.on('message', (wanted: RowsWanted) => {
  const answer = attempt(wanted);
  const moved = answer.made
    ? [answer.made.vouchers, answer.made.entries].flatMap((rows) => rows?.bytes.buffer ?? [])
    : [];
  parentPort?.postMessage(answer, moved as ArrayBuffer[]);
});

function attempt(wanted: RowsWanted): ThreadAnswer {
  try {
    const { keyId, at, count, codeKeys, vouchers, entries } = makeRows(keys, wanted);
    const plain = ({ bytes, rowBytes }: typeof vouchers) => ({ bytes, rowBytes });
    return {
      made: { keyId, at, count, codeKeys, vouchers: plain(vouchers), entries: entries && plain(entries) },
    };
  } catch (error) {
    return { error };
  }
}
