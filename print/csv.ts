import { stringify } from 'csv-stringify/sync';
import type { Batch, Voucher } from './batch.ts';
import { withoutFormula } from './formula.ts';

const HEADER = [
  'serialNumber',
  'code',
  'pin',
  'voucherCode',
  'value',
  'currency',
  'expiryDate',
  'lastDay',
  'merchant',
  'product',
  'reference',
];

/**
 * RFC 4180, every cell in quotation marks. What a spreadsheet would take for a formula gets an apostrophe in
 * front: merchants choose their references, and must not choose what runs where the file is opened.
 */
const FORMAT = {
  quoted: true,
  quoted_empty: true,
  record_delimiter: 'windows',
  cast: { string: withoutFormula },
} as const;

/** Writes vouchers as CSV, a piece for each page. `voucherCode` is code and PIN in one, as in the QR code. */
export async function* writeCsv(
  { merchant, product, reference }: Batch,
  vouchers: AsyncIterable<Voucher[]>,
): AsyncGenerator<string> {
  yield stringify([HEADER], FORMAT);
  for await (const page of vouchers) {
    const rows = page.map(({ serialNumber, code, pin, value, currency, expiresAt, lastDay }) => [
      String(serialNumber),
      code,
      pin,
      `${code}${pin}`,
      value ?? '',
      currency,
      expiresAt.toISOString(),
      lastDay,
      merchant,
      product,
      reference,
    ]);
    if (rows.length > 0) yield stringify(rows, FORMAT);
  }
}
