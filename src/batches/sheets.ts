import { on } from 'node:events';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Worker } from 'node:worker_threads';
import type * as print from '@scrip/print';
import { kept, type Service } from '../context.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { Problem } from '../problem.ts';
import { findDesign } from '../products/designs.ts';
import { findProduct } from '../products/products.ts';
import type { Batch } from './batch.ts';
import type { Write } from './export.ts';

/** Prepares vouchers for the printer. */

/** Returns the data that all cards of a batch share. */
export async function describeCards(
  { db }: Service,
  batch: Batch,
  productCode: string,
): Promise<print.Batch> {
  const [merchant, product] = await Promise.all([
    findMerchant(db, Number(batch.merchantId)),
    findProduct(db, productCode),
  ]);
  return {
    merchant: merchant?.name ?? '',
    merchantId: batch.merchantId,
    product: product?.name ?? '',
    productCode,
    reference: batch.reference,
    transactionId: batch.transactionId,
    needsActivation: product?.activation === 'on-activation',
    gtin: product?.gtin ?? null,
    design: (product?.design && (await findDesign(db, product.design))) || null,
  };
}

/**
 * Sheets are the cards of a batch as a PDF. Those of the operator are sealed: one person downloads the file,
 * and another one knows the passphrase that opens it.
 */

/** The input of the thread. */
export type SheetWanted = {
  readonly batch: print.Batch;
  readonly options: {
    readonly count: number;
    readonly printedAt: Date;
    readonly language?: print.Language | undefined;
    readonly passphrase?: string | undefined;
  };
};
/** A message of the thread: a piece of the document, `more` to request the next cards, or `end`. */
export type SheetMessage = Uint8Array | 'more' | 'end';

/** Letters and digits that cannot be confused with one another. */
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const GROUPS = 4;
const GROUP_LENGTH = 5;

/**
 * Returns the passphrase of sheets: 100 bits, so that it cannot be guessed, in groups that can be read out.
 * It is not stored: it is derived from the key ring, under a key that is never rotated.
 * @param salt a random value for these sheets alone
 */
export function passphraseOf(keys: KeyRing, salt: Uint8Array): string {
  const bytes = keys.fingerprintOf(`sheets ${Buffer.from(salt).toString('hex')}`);
  return Array.from({ length: GROUPS }, (_, group) =>
    Array.from(
      bytes.subarray(group * GROUP_LENGTH, (group + 1) * GROUP_LENGTH),
      (byte) => LETTERS[byte % LETTERS.length],
    ).join(''),
  ).join('-');
}

/** The number of files drawn at the same time. Each takes a core. */
const AT_ONCE_MAX = 4;

/**
 * The merchants whose sheets are drawn at the moment: one file for each, so that one that reads its files
 * slowly leaves places for the others.
 */
const drawnAt = kept(() => new Set<string>());

/**
 * Draws vouchers as sheets, piece by piece.
 * @param design.language of what the cards say, if not that of their design
 * @param design.passphrase that opens the document; without it, the document is not sealed
 * @param exporting exports the vouchers, and records it
 * @throws Problem `too-many-requests` before the first piece
 */
export async function* drawSheets(
  service: Service,
  described: print.Batch,
  design: { readonly language?: print.Language | undefined; readonly passphrase?: string | undefined },
  exporting: Exporting,
): AsyncGenerator<Buffer> {
  const drawn = drawnAt(service);
  const { merchantId } = described;
  if (drawn.has(merchantId))
    throw new Problem('too-many-requests', 'sheets of this merchant are being drawn: try again in a minute');
  if (drawn.size >= AT_ONCE_MAX)
    throw new Problem('too-many-requests', 'other sheets are being drawn: try again in a minute');
  drawn.add(merchantId);
  try {
    yield* exportedPieces(exporting, (vouchers, count) =>
      drawAside({ batch: described, options: { count, printedAt: service.clock(), ...design } }, vouchers),
    );
  } finally {
    drawn.delete(merchantId);
  }
}

type Exporting = (write: Write) => Promise<unknown>;

/**
 * Yields the file of an export, piece by piece. The export is recorded as aborted if the reader disconnects
 * before the end.
 * @param exporting exports the vouchers, and records it
 * @param make makes the file
 */
export async function* exportedPieces(
  exporting: Exporting,
  make: (vouchers: AsyncIterable<print.Voucher[]>, count: number) => AsyncIterable<string | Buffer>,
): AsyncGenerator<Buffer> {
  // Hardly anything is made before it is read, so that pieces that were never read do not count as complete.
  const through = new PassThrough({ highWaterMark: 1 });
  const exported = exporting((vouchers, count) => pipeline(make(vouchers, count), through));
  exported.catch((error: Error) => through.destroy(error));
  try {
    for await (const piece of through) yield piece as Buffer;
    await exported;
  } finally {
    through.destroy();
    await exported.catch(() => {});
  }
}

/**
 * Draws sheets on a thread, so that the calls of tills do not wait: a voucher takes some three milliseconds.
 * The thread asks for the next cards when it has drawn the previous ones.
 */
async function* drawAside(
  wanted: SheetWanted,
  vouchers: AsyncIterable<print.Voucher[]>,
): AsyncGenerator<Buffer> {
  const pages = vouchers[Symbol.asyncIterator]();
  const worker = new Worker(new URL('./sheets.thread.ts', import.meta.url), {
    workerData: wanted,
    // The thread receives no arguments and no environment of the process.
    execArgv: [],
    env: {},
  });
  try {
    const said = on(worker, 'message', { close: ['exit'] }) as AsyncIterable<[SheetMessage]>;
    for await (const [message] of said) {
      if (message === 'end') return;
      if (message === 'more') {
        const { value, done } = await pages.next();
        worker.postMessage(done ? null : value);
      } else yield Buffer.from(message.buffer, message.byteOffset, message.length);
    }
    throw new Error('the thread that draws sheets has ended');
  } finally {
    await worker.terminate();
    await pages.return?.();
  }
}
