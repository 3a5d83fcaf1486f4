import { reading, tableOf } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { notFound } from '../problem.ts';
import { DesignName, findDesign } from '../products/designs.ts';
import { FileSchema } from '../schema.ts';
import { DAY_MS, isoDay } from '../time.ts';
import type { Write } from './export.ts';
import { drawSheets } from './sheets.ts';

/** The preview of a design: a card that is drawn as those of a product, and is no voucher. */

/** No code begins with 0. */
const NO_VOUCHER = {
  serialNumber: 10_000_000_001n,
  code: '000000000000',
  pin: '0000',
  value: '25.00',
  currency: 'USD',
};

const preview = reading({
  name: 'design.preview',
  summary: 'Draw a card with a design, as a PDF; it is no voucher',
  path: '/designs/:name/preview',
  input: { name: DesignName },
  output: FileSchema,
  files: ['application/pdf'],
  roles: SEE_VOUCHERS,
  async run({ service }, { name }) {
    const design = await findDesign(service.readDb, name);
    if (!design) throw notFound(`design ${name}`);
    const described = {
      merchant: 'Merchant',
      merchantId: '0',
      product: 'Product',
      productCode: 'PRODUCT',
      reference: 'preview',
      transactionId: 'preview',
      needsActivation: false,
      gtin: null,
      design,
    };
    const expiresAt = new Date(service.clock().getTime() + 365 * DAY_MS);
    const card = { ...NO_VOUCHER, expiresAt, lastDay: isoDay(expiresAt.getTime()) };
    const exporting = async (write: Write) => write(oneOf(card), 1);
    const content = drawSheets(service, described, {}, exporting);
    return { name: `design-${name}.pdf`, mediaType: 'application/pdf', content };
  },
});

async function* oneOf<Card>(card: Card): AsyncGenerator<Card[]> {
  yield [card];
}

export const OPERATIONS = tableOf(preview);
