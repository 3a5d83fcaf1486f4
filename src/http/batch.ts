import Type, { type Static } from 'typebox';
import { type Batch, batchData } from '../batches/batch.ts';
import { readVouchers } from '../batches/download.ts';
import type { Context } from '../context.ts';
import type { Answer } from './endpoint.ts';
import { Nullable, Word } from './envelope.ts';
import { Code, Pin, SerialNumber } from './fields.ts';

/** A voucher of a batch, as its merchant gets it. */
export const BatchVoucher = Type.Object({ serialNumber: SerialNumber, code: Code, pin: Pin });

/** A batch, as generation and download answer with it. `vouchers` must stay last: they are streamed behind the rest. */
export const BatchData = Type.Object({
  reference: Type.String({ description: 'The reference of the request that generated the batch.' }),
  transactionId: Type.String({ description: 'The id of the batch, fixed when it was accepted.' }),
  status: Word(['PROCESSING', 'COMPLETED', 'CANCELED'], {
    description:
      '`PROCESSING` becomes `COMPLETED` or `CANCELED`, both final. While it is `PROCESSING`, download again later. The vouchers of a `CANCELED` batch cannot be used, and its whole price is back in your balance.',
  }),
  expiryDate: Type.String({ format: 'date-time', description: 'When the vouchers expire, in UTC.' }),
  value: Nullable(
    Type.Number({ description: 'The value of each voucher; null for vouchers that get one when activated.' }),
  ),
  vouchers: Type.Optional(
    Type.Array(BatchVoucher, {
      description: 'Exactly the quantity ordered, in order of serial number. Only there when the batch is `COMPLETED`.',
    }),
  ),
});

/** The answer of a batch: its vouchers follow page by page when it is complete. */
export function batchAnswer({ service }: Context, batch: Batch, replayed: boolean): Answer<typeof BatchData> {
  const data = batchData(batch);
  if (batch.status !== 'COMPLETED') return { data, replayed };
  return { data, replayed, vouchers: { quantity: batch.quantity, pages: renderPages(readVouchers(service, batch)) } };
}

async function* renderPages(pages: ReturnType<typeof readVouchers>): AsyncGenerator<Static<typeof BatchVoucher>[]> {
  for await (const page of pages) {
    yield page.map(({ serialNumber, code, pin }) => ({ serialNumber: Number(serialNumber), code, pin }));
  }
}
