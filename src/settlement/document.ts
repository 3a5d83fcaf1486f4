import type { StatementRow } from '@scrip/print';
import { type Cell, CSV_TYPE, csvText } from '../csv.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { textIn } from '../money.ts';
import { reading } from '../operation.ts';
import { SEE } from '../principal.ts';
import { Problem } from '../problem.ts';
import { FileSchema, Word } from '../schema.ts';
import { getSettlement, type Settlement, SettlementId } from './settlements.ts';
import { type FeeRate, type Line, STEPS, stepOf, stepsOf } from './show.ts';

/**
 * The documents of a settlement: a CSV, whose hash identifies the content, and a PDF. The same settlement
 * always gives the same bytes.
 */

export type Approved = Settlement & { readonly number: string; readonly approvedAt: Date };

/**
 * Returns the statement as CSV: the amount carried over, a row for each product and kind of movement, and the
 * amount to pay.
 */
export function writeStatement(settlement: Approved, lines: readonly Line[]): string {
  const { number, merchantId, firstDay, lastDay, zone, currency, dueOn, closingHash } = settlement;
  const row = (product: string | null, kind: string, rows: number | null, amount: bigint) => ({
    ...{ 'settlement.v1': number, merchantId, firstDay, lastDay, zone, currency },
    ...{ product, kind, rows, amount: { amount: textIn(currency, amount) }, dueOn, closingHash },
  });
  const rows = [
    row(null, 'CARRIED', null, settlement.carried),
    ...lines.map((line) => row(line.product, line.kind, line.rows, line.amount)),
    row(null, 'CLOSING', null, settlement.closing),
    row(null, 'OUTSTANDING', null, settlement.outstanding),
    row(null, 'PAYABLE', null, settlement.payable),
  ] as const;
  return csvText([Object.keys(rows[0]), ...rows.map((each): Cell[] => Object.values(each))]);
}

/** The columns of a statement, each with its step. Other movements are shown under their kind. */
const GROUPS = {
  Redemptions: 'REDEEMED',
  Reversals: 'REVERSED',
  'Of earlier periods': 'EARLIER_REVERSAL',
  Commission: 'COMMISSION',
  VAT: 'COMMISSION_VAT',
};
/** The groups whose movements are counted. */
const COUNTED = ['Redemptions', 'Reversals', 'Of earlier periods'];
const GROUPED: readonly string[] = Object.values(GROUPS);

const STRONG = ['CLOSING', 'PAYABLE'];

/** Draws the statement as PDF. */
export async function drawStatement(
  settlement: Approved & { readonly contentHash: string },
  lines: readonly Line[],
  rates: readonly FeeRate[],
): Promise<Buffer> {
  const { number, merchant, merchantId, firstDay, lastDay, zone, currency, dueOn } = settlement;
  const { closingHash, contentHash, root } = settlement;
  // The import is here because loading the fonts and the PDF library would slow down every start.
  const { drawStatement: draw } = await import('@scrip/print');
  const text = (minor: bigint) => textIn(currency, minor);
  const sum = (some: readonly Line[]) => some.reduce((total, { amount }) => total + amount, 0n);
  const products = [
    ...new Set(lines.filter(({ product }) => product !== null).map(({ product }) => product)),
  ];
  const rows: StatementRow[] = products.map((product) => {
    const own = lines.filter((line) => line.product === product);
    const cells = Object.entries(GROUPS).map(([name, step]) => {
      const some = own.filter(({ kind }) => stepOf(kind) === step);
      const count = some.reduce((total, line) => total + line.rows, 0);
      return COUNTED.includes(name) ? `${text(sum(some))} (${count})` : text(sum(some));
    });
    const net = sum(own.filter(({ kind }) => GROUPED.includes(stepOf(kind))));
    return { cells: [own[0]?.productName ?? product ?? '', ...cells, text(net)] };
  });
  const blank = GROUPED.map(() => '');
  const total = (label: string, minor: bigint, isStrong = false) => ({
    cells: [label, ...blank, text(minor)],
    isStrong,
  });
  const other = lines.filter(({ kind }) => !GROUPED.includes(stepOf(kind)));
  return draw({
    title: `Settlement ${number}`,
    details: [
      ['Merchant', `${merchant} (${merchantId})`],
      ['Period', `${firstDay} to ${lastDay}, both included, ${zone}`],
      ['Currency', currency],
      ['Due on', dueOn],
    ],
    columns: ['Product', ...Object.keys(GROUPS), 'Net'],
    rows: [
      ...rows,
      ...other.map((line) => total(`${line.kind}${line.product ? ` ${line.product}` : ''}`, line.amount)),
      ...stepsOf(settlement, lines).map(({ kind, amount }) =>
        total(STEPS[kind], amount, STRONG.includes(kind)),
      ),
    ],
    notes: [
      ...rates.map((rate) => rateText(rate, text)),
      'This statement is not an invoice for the commission.',
      'Every amount is a sum of booked movements. Commission is rounded once for each product and day, half away from zero.',
      `Content (SHA-256 of the CSV): ${contentHash}`,
      `Closing of ${lastDay}: ${closingHash}`,
      `Root of its rows: ${root}`,
    ],
    madeAt: settlement.approvedAt,
  });
}

function rateText({ commission, vat, base, fee, feeVat }: FeeRate, text: (minor: bigint) => string): string {
  return `Commission of ${commission} % on ${text(base)}: ${text(fee)}. VAT of ${vat} % on it: ${text(feeVat)}.`;
}

type Documents = { readonly csv: string; readonly pdf: Buffer };

/** Returns the documents of a settlement as they were frozen at its approval; undefined for a draft. */
export async function documentsOf(db: Queries, { id }: Settlement): Promise<Documents | undefined> {
  const [found] = await db.query<Documents>(sql`
select csv, pdf from settlements where id = ${id} and csv is not null`);
  return found;
}

const MEDIA_TYPES = { pdf: 'application/pdf', csv: CSV_TYPE } as const;

export const settlementDocument = reading({
  name: 'settlement.document',
  summary: 'Get the document of an approved settlement',
  path: '/settlements/:id/document',
  input: { id: SettlementId, format: Word(['pdf', 'csv'], { examples: ['pdf'] }) },
  output: FileSchema,
  files: ['application/pdf', 'text/csv'],
  roles: SEE,
  async run({ service: { readDb } }, { id, format }) {
    const settlement = await getSettlement(readDb, id);
    const documents = await documentsOf(readDb, settlement);
    if (!documents)
      throw new Problem(
        'conflict',
        `settlement ${id} is a draft: its documents are made when it is approved`,
      );
    return {
      name: `settlement-${settlement.number}.${format}`,
      mediaType: MEDIA_TYPES[format],
      content: documents[format],
    };
  },
});
