import { findBatch } from '../batches/export.ts';
import { renderBatch } from './answer.ts';
import { endpoint } from './endpoint.ts';
import { BatchData } from './fields.ts';

/** The download of a batch, which is the same in both variants. */
export const downloadVouchers = endpoint({
  operationId: 'downloadVouchers',
  summary: 'Download vouchers',
  description:
    'The batch that you generated under a reference, with its vouchers once it is `COMPLETED`. Needs the ' +
    'permission `download` or `generate`.',
  method: 'GET',
  path: '/vouchers/:reference',
  data: BatchData,
  notFound: 'Vouchers not found',
  refusals: ['18', '03', '60'],
  async run(context, _body, reference) {
    return renderBatch(context, await findBatch(context, reference), false);
  },
});
