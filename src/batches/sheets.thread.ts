import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { type Voucher, writeSheet } from '@scrip/print';
import { lowerThread } from '../priority.ts';
import type { SheetMessage, SheetWanted } from './sheets.ts';

lowerThread();

const say = (message: SheetMessage) => parentPort?.postMessage(message);
const { batch, options } = workerData as SheetWanted;

async function* asked(): AsyncGenerator<Voucher[]> {
  while (parentPort) {
    const answered = once(parentPort, 'message');
    say('more');
    const [cards] = (await answered) as [Voucher[] | null];
    if (cards === null) return;
    yield cards;
  }
}

for await (const piece of writeSheet(batch, asked(), options)) say(piece);
say('end');
