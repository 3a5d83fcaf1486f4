import type * as print from '@scrip/print';
import { type Cell, CSV_TYPE, csvText } from '../csv.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { textIn } from '../money.ts';
import { reading, tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { Problem } from '../problem.ts';
import { FileSchema, Word } from '../schema.ts';
import { type Letterhead, readLetterhead } from '../settings/letterhead.ts';
import { WORDS } from './document.words.ts';
import { getSettlement, type Settlement, SettlementId } from './settlements.ts';
import { type FeeRate, type Line, stepOf, stepsOf } from './show.ts';
import { type Terms, termsOn } from './terms.ts';

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

/** The steps that have a column. */
const COLUMNS = ['REDEEMED', 'REVERSED', 'EARLIER_REVERSAL', 'COMMISSION', 'COMMISSION_VAT'] as const;
/** Those whose movements are counted. */
const COUNTED: readonly string[] = ['REDEEMED', 'REVERSED', 'EARLIER_REVERSAL'];
const isColumn = (kind: string) => COLUMNS.some((step) => step === stepOf(kind));

const STRONG = ['CLOSING', 'PAYABLE'];

/** The sender of a statement, and how it is written. */
type Letter = {
  readonly language: print.Language;
  readonly letterhead: Letterhead;
  /** The name on the account that is paid, and the end of its number. */
  readonly payee: Pick<Terms, 'payee' | 'last4'> | undefined;
};

/** Reads the letterhead, the language of the merchant and the account that its terms name. */
export async function readLetter(db: Queries, { merchantId, lastDay }: Settlement): Promise<Letter> {
  const merchant = await findMerchant(db, Number(merchantId));
  return {
    language: merchant?.language ?? 'en',
    letterhead: await readLetterhead(db),
    payee: await termsOn(db, merchantId, lastDay),
  };
}

export async function drawStatement(
  settlement: Approved & { readonly contentHash: string },
  lines: readonly Line[],
  rates: readonly FeeRate[],
  { language, letterhead, payee }: Letter,
): Promise<Buffer> {
  const { number, merchant, merchantId, firstDay, lastDay, zone, currency, dueOn } = settlement;
  const { closingHash, contentHash, root, approvedAt } = settlement;
  // The import is here because loading the fonts and the PDF library would slow down every start.
  const { drawStatement: draw, amountIn } = await import('@scrip/print');
  const words = WORDS[language];
  const { text, money, percent, day } = writing(language, currency, amountIn);
  const sum = (some: readonly Line[]) => some.reduce((total, { amount }) => total + amount, 0n);
  const total = (label: string, minor: bigint, isStrong = false) => ({
    cells: [label, ...COLUMNS.map(() => ''), money(minor)],
    isStrong,
    isRuled: isStrong,
  });
  const stepRows = stepsOf(settlement, lines).flatMap(({ kind, amount }) => {
    const own = lines.filter((line) => stepOf(line.kind) === kind);
    // The other movements are named one by one.
    if (kind === 'OTHER')
      return own.map((line) => {
        const names = [words.kinds[line.kind] ?? line.kind, line.product].filter((name) => name !== null);
        return total(numbered([line], names.join(' ')), line.amount);
      });
    const isStrong = STRONG.includes(kind);
    // Those with a product have their numbers in its row.
    const without = own.filter(({ product }) => product === null);
    return amount === 0n && !isStrong ? [] : [total(numbered(without, words.steps[kind]), amount, isStrong)];
  });
  return draw({
    language,
    sender: senderOf(letterhead, words.vatNumber),
    recipient: [merchant],
    title: words.title(number),
    details: [
      [words.merchant, `${merchant} (${merchantId})`],
      [words.period, words.days(day(firstDay), day(lastDay), zone)],
      [words.currency, currency],
      [words.dueOn, day(dueOn)],
      ...(payee?.payee && payee.last4
        ? [[words.payee, words.account(payee.payee, payee.last4)] as const]
        : []),
    ],
    columns: [
      words.columns.product(currency),
      ...COLUMNS.map((step) => words.columns[step]),
      words.columns.net,
    ],
    rows: [
      ...productRows(lines, text, sum),
      ...stepRows.map((row, at) => (at === 0 ? { ...row, isRuled: true } : row)),
    ],
    notes: [
      ...rates.map(({ commission, base, fee, vat, feeVat }) =>
        words.rate(percent(commission), money(base), money(fee), percent(vat), money(feeVat)),
      ),
      ...words.notes,
      words.content(contentHash),
      words.closing(day(lastDay), closingHash),
      words.root(root),
    ],
    madeAt: approvedAt,
  });
}

/** Returns how amounts, percentages and days are written in a language. */
function writing(language: print.Language, currency: string, amountIn: typeof print.amountIn) {
  const text = (minor: bigint) => amountIn(language, textIn(currency, minor)).replace('-', '−');
  const locale = language === 'de' ? 'de-DE' : 'en-GB';
  const days = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
  return {
    text,
    money: (minor: bigint) => `${currency} ${text(minor)}`,
    percent: (value: number) => amountIn(language, String(value)),
    day: (iso: string) => days.format(new Date(`${iso}T00:00:00Z`)),
  };
}

/** Returns the lines of a letterhead; none if it names no sender. */
function senderOf(
  { sender, addressLines, vatNumber, contact }: Letterhead,
  vatOf: (number: string) => string,
): string[] {
  if (sender === null) return [];
  const more = [vatNumber && vatOf(vatNumber), contact].filter((each) => each !== null);
  return [sender, ...addressLines, ...more];
}

/** Returns a label with the numbers of its lines before it, such as "1–3 Gift card". */
function numbered(lines: readonly Line[], label: string): string {
  const [first, last] = [lines[0]?.line, lines.at(-1)?.line];
  if (first === undefined) return label;
  return `${first === last ? first : `${first}–${last}`} ${label}`;
}

/** Returns a row for each product: its steps, and what is left of them. */
function productRows(
  lines: readonly Line[],
  text: (minor: bigint) => string,
  sum: (some: readonly Line[]) => bigint,
): print.StatementRow[] {
  const products = [...new Set(lines.flatMap(({ product }) => product ?? []))];
  return products.map((product) => {
    const own = lines.filter((line) => line.product === product);
    const cells = COLUMNS.map((step) => {
      const some = own.filter(({ kind }) => stepOf(kind) === step);
      const count = some.reduce((total, line) => total + line.rows, 0);
      return COUNTED.includes(step) ? `${text(sum(some))} (${count})` : text(sum(some));
    });
    const net = sum(own.filter(({ kind }) => isColumn(kind)));
    return { cells: [numbered(own, own[0]?.productName ?? product), ...cells, text(net)] };
  });
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

export const OPERATIONS = tableOf(settlementDocument);
