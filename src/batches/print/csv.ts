import { stringify } from 'csv-stringify/sync';
import { toText } from '../../money.ts';
import type { PrintedBatch, PrintedVoucher } from './voucher.ts';

const HEADER = [
  'serialNumber',
  'code',
  'pin',
  'voucherCode',
  'value',
  'currency',
  'expiryDate',
  'merchant',
  'product',
  'reference',
];

/**
 * RFC 4180, every cell in quotation marks. A cell that a spreadsheet could take for a formula gets an apostrophe in front:
 * a merchant chooses its references, and must not choose what runs where the file is opened.
 */
const FORM = { quoted: true, quoted_empty: true, record_delimiter: 'windows', escape_formulas: true } as const;

/** Writes vouchers as a CSV file, a piece for each page. `voucherCode` is code and PIN in one, as the QR code holds it. */
export async function* writeCsv(
  { merchant, product, reference }: PrintedBatch,
  vouchers: AsyncIterable<PrintedVoucher[]>,
): AsyncGenerator<string> {
  yield stringify([HEADER], FORM);
  for await (const page of vouchers) {
    const rows = page.map(({ serialNumber, code, pin, value, currency, expiresAt }) => [
      String(serialNumber),
      code,
      pin,
      `${code}${pin}`,
      value ? toText(value) : '',
      currency,
      expiresAt.toISOString(),
      merchant,
      product,
      reference,
    ]);
    if (rows.length > 0) yield stringify(rows, FORM);
  }
}
